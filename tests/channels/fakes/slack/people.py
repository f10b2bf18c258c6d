"""What people do in a workspace of Slack: they write, edit, delete, and press buttons."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from tests.channels.fakes.slack.blocks import Json, values
from tests.channels.fakes.slack.events import Events
from tests.channels.fakes.slack.workspace import APP, BOT_USER, TEAM


class People(Events):
    """The people of a workspace."""

    def say(
        self,
        chat: str,
        person: str,
        text: str,
        *,
        mention: bool = True,
        files: Sequence[tuple[str, bytes]] = (),
        thread: str = "",
        live: bool = True,
        **extra: object,
    ) -> str:
        """A person writes; returns the time of the message, which is its id."""
        found = self.chats[chat]
        if mention and not found.direct:
            text = f"<@{BOT_USER}> {text}"
        message: Json = {
            "type": "message",
            "user": person,
            "text": text,
            "ts": self.next_time(),
            "client_msg_id": str(uuid.uuid4()),
            "team": TEAM,
            "user_team": TEAM,
        }
        if thread:
            message["thread_ts"] = thread
            root = self.find(chat, thread)
            message["parent_user_id"] = "" if root is None else root.get("user", "")
        if files:
            message["subtype"] = "file_share"
            message["files"] = [self.add_file(name, data) for name, data in files]
        message.update(extra)
        self._keep({"message": message, "in": chat})
        if live:
            self.push_message(chat, message)
        return str(message["ts"])

    def push_message(self, chat: str, message: Json) -> None:
        """Push the events for a message: a mention has two of them."""
        found = self.chats[chat]
        event = {**message, "channel": chat, "channel_type": found.kind, "event_ts": message["ts"]}
        self.push_event("message", event)
        if not found.direct and f"<@{BOT_USER}>" in str(message.get("text")):
            mention = {key: value for key, value in event.items() if key != "channel_type"}
            self.push_event("app_mention", {**mention, "type": "app_mention"})

    def edit(self, chat: str, message: str, text: str, *, edited: bool = True) -> None:
        """A person changes a message; or Slack does, to show a link."""
        found = self.find(chat, message)
        assert found is not None
        before = dict(found)
        found["text"] = text
        if edited:
            found["edited"] = {"user": found["user"], "ts": self.next_time()}
        self.push_event(
            "message", self._change(chat, "message_changed", before, message=dict(found))
        )

    def delete(self, chat: str, message: str) -> None:
        """A person deletes a message."""
        found = self.find(chat, message)
        assert found is not None
        self.chats[chat].messages.remove(found)
        self.push_event("message", self._change(chat, "message_deleted", found, deleted_ts=message))

    def _change(self, chat: str, subtype: str, before: Json, **rest: object) -> Json:
        at = self.next_time()
        return {
            "type": "message",
            "subtype": subtype,
            "hidden": True,
            "channel": chat,
            "channel_type": self.chats[chat].kind,
            "ts": at,
            "event_ts": at,
            "previous_message": before,
            **rest,
        }

    def press(self, chat: str, person: str, value: str) -> None:
        """A person presses the button with this value, which must be there."""
        message = next(
            each for each in reversed(self.chats[chat].messages) if value in values(each)
        )
        self.push(
            "interactive",
            {
                "type": "block_actions",
                "team": {"id": TEAM},
                "user": {"id": person, "username": person.lower(), "team_id": TEAM},
                "api_app_id": APP,
                "container": {"type": "message", "message_ts": message["ts"], "channel_id": chat},
                "trigger_id": f"{next(self._turn)}.{uuid.uuid4().hex}",
                "channel": {"id": chat, "name": self.chats[chat].name or "directmessage"},
                "message": message,
                "actions": [
                    {
                        "type": "button",
                        "action_id": "bullpen_0",
                        "value": value,
                        "action_ts": self.next_time(),
                    }
                ],
            },
            "interactive",
        )

    def command(self, chat: str, person: str, command: str, text: str = "") -> None:
        """A person writes a slash command."""
        body: Json = {
            "command": command,
            "text": text,
            "team_id": TEAM,
            "user_id": person,
            "user_name": person.lower(),
            "channel_id": chat,
            "channel_name": self.chats[chat].name or "directmessage",
            "trigger_id": f"{next(self._turn)}.{uuid.uuid4().hex}",
            "response_url": f"{self.url}/commands/1",
            "api_app_id": APP,
        }
        self.push("slash_commands", body, "slash_commands")

    def stop_session(self, chat: str, person: str, thread: str) -> None:
        """A person presses the Stop of an agent's session."""
        event: Json = {
            "type": "agent_session_stopped",
            "channel": chat,
            "thread_ts": thread,
            "user": person,
            "streaming_message_ts": [],
            "event_ts": self.next_time(),
        }
        self.push_event("agent_session_stopped", event)
