"""The Web API of Slack, and the upload and download of files."""

from __future__ import annotations

import json
import uuid
from typing import Unpack, cast

from aiohttp import web

from tests.channels.fakes.base import Options
from tests.channels.fakes.faults import SIGN_IN_PAGE
from tests.channels.fakes.slack.blocks import Json
from tests.channels.fakes.slack.events import Events
from tests.channels.fakes.slack.workspace import (
    APP,
    APP_TOKEN,
    BOT,
    BOT_TOKEN,
    BOT_USER,
    TEAM,
    FakeChat,
)

SCOPES = (
    "app_mentions:read,assistant:write,channels:history,channels:read,chat:write,"
    "chat:write.customize,commands,files:read,files:write,groups:history,groups:read,im:history,"
    "im:read,im:write,metadata.message:read,mpim:history,mpim:read,reactions:write,users:read"
)


class WebApi(Events):
    """The methods that the app calls; each is named like Slack's, with `_` for its dots."""

    def __init__(self, port: int = 0, **options: Unpack[Options]) -> None:
        super().__init__(port, **options)
        self.statuses: dict[tuple[str, str], str] = {}
        self.sessions: dict[tuple[str, str], str] = {}
        self.reactions: dict[tuple[str, str], list[str]] = {}
        self.refusals: dict[str, list[str]] = {}
        """For each method, the errors of its next calls."""
        self.token_error = ""
        """The error of every call, for example `token_revoked`."""
        self.app_token_error = ""
        self.scopes = SCOPES
        self.agents = False
        """Whether the plan has sessions of agents."""
        self.status_works = True
        self.look_ups = True
        """Whether history and files can be read."""
        self.max_page = 1_000

    def refuse(self, method: str, error: str, times: int = 1) -> None:
        """Answer the next calls of a method with this error."""
        self.refusals.setdefault(method, []).extend([error] * times)

    def failed(self, request: web.Request, status: int) -> web.Response:
        return web.Response(
            status=status, text="<html>Internal Error</html>", content_type="text/html"
        )

    async def _api(self, request: web.Request) -> web.Response:
        method = request.match_info["method"]
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        app_level = method == "apps.connections.open"
        if app_level:
            error = self.app_token_error or ("" if token == APP_TOKEN else "invalid_auth")
        else:
            error = self.token_error or ("" if token == BOT_TOKEN else "invalid_auth")
        if not error and self.refusals.get(method):
            error = self.refusals[method].pop(0)
        if error:
            needed = {"needed": "chat:write", "provided": ""} if error == "missing_scope" else {}
            return web.json_response({"ok": False, "error": error, **needed})
        handler = getattr(self, f"_{method.replace('.', '_')}", None)
        if handler is None:
            return web.json_response({"ok": False, "error": "unknown_method"})
        answer = handler(await _arguments(request))
        headers = {"X-OAuth-Scopes": self.scopes}
        return web.json_response({"ok": "error" not in answer, **answer}, headers=headers)

    def _auth_test(self, given: Json) -> Json:
        return {
            "url": "https://fake.slack.com/",
            "team": "Fake",
            "user": "bullpen",
            "team_id": TEAM,
            "user_id": BOT_USER,
            "bot_id": BOT,
        }

    def _apps_connections_open(self, given: Json) -> Json:
        ticket = uuid.uuid4().hex
        self._tickets.add(ticket)
        return {"url": f"ws://127.0.0.1:{self.port}/link?ticket={ticket}&app_id={APP}"}

    def _chat_postMessage(self, given: Json) -> Json:  # noqa: N802 - the platform's names
        chat = self.chats.get(str(given.get("channel")))
        if chat is None:
            return {"error": "channel_not_found"}
        if chat.archived:
            return {"error": "is_archived"}
        if not given.get("text") and not given.get("blocks"):
            return {"error": "no_text"}
        message: Json = {
            "type": "message",
            "user": BOT_USER,
            "bot_id": BOT,
            "app_id": APP,
            "team": TEAM,
            "ts": self.next_time(),
            "text": given.get("text", ""),
        }
        for name in ("blocks", "metadata", "thread_ts", "username"):
            if given.get(name):
                message[name] = given[name]
        if given.get("username"):
            message["subtype"] = "bot_message"
        self._keep({"message": message, "in": chat.id})
        self._echo(chat, message)
        return {"channel": chat.id, "ts": message["ts"], "message": message}

    def _echo(self, chat: FakeChat, message: Json) -> None:
        """The app gets its own messages too, and their metadata as an event."""
        shown = {key: value for key, value in message.items() if key != "metadata"}
        self.push_event("message", {**shown, "channel": chat.id, "channel_type": chat.kind})
        if message.get("metadata"):
            event: Json = {
                "app_id": APP,
                "bot_id": BOT,
                "user_id": BOT_USER,
                "team_id": TEAM,
                "channel_id": chat.id,
                "metadata": message["metadata"],
                "message_ts": message["ts"],
                "event_ts": message["ts"],
            }
            self.push_event("message_metadata_posted", event)

    def _chat_delete(self, given: Json) -> Json:
        chat, found = self.chats[str(given["channel"])], str(given["ts"])
        chat.messages = [each for each in chat.messages if each["ts"] != found]
        return {}

    def _conversations_history(self, given: Json) -> Json:
        chat = self.chats.get(str(given.get("channel")))
        if chat is None:
            return {"error": "channel_not_found"}
        roots = [
            each
            for each in chat.messages
            if each.get("thread_ts", each["ts"]) == each["ts"]
            or each.get("subtype") == "thread_broadcast"
        ]
        return self._page(sorted(roots, key=lambda each: str(each["ts"]), reverse=True), given)

    def _conversations_replies(self, given: Json) -> Json:
        chat = self.chats.get(str(given.get("channel")))
        if chat is None:
            return {"error": "channel_not_found"}
        root = given.get("ts")
        if self.find(chat.id, str(root)) is None:
            return {"error": "thread_not_found"}
        thread = [each for each in chat.messages if root in (each["ts"], each.get("thread_ts"))]
        oldest = {**given, "oldest": "0"}
        after = str(given.get("oldest") or "0")
        thread = [
            each for each in thread if each["ts"] == root or float(str(each["ts"])) > float(after)
        ]
        return self._page(thread, oldest)

    def _page(self, messages: list[Json], given: Json) -> Json:
        if not self.look_ups:
            return {"error": "service_unavailable"}
        oldest, limit = float(str(given.get("oldest") or 0)), int(str(given.get("limit") or 100))
        at_least = str(given.get("inclusive")) in ("1", "True", "true")
        kept = [
            each
            for each in messages
            if float(str(each["ts"])) > oldest or (at_least and float(str(each["ts"])) == oldest)
        ]
        start, size = int(str(given.get("cursor") or 0)), min(limit, self.max_page)
        page = kept[start : start + size]
        if str(given.get("include_all_metadata")) not in ("1", "True", "true"):
            page = [{name: each[name] for name in each if name != "metadata"} for each in page]
        more = start + size < len(kept)
        return {
            "messages": page,
            "has_more": more,
            "response_metadata": {"next_cursor": str(start + size) if more else ""},
        }

    def _conversations_open(self, given: Json) -> Json:
        person = str(given.get("users"))
        if not person.startswith("U"):
            return {"error": "user_not_found"}
        return {"channel": {"id": self.open_chat(person)}}

    def _users_conversations(self, given: Json) -> Json:
        if not self.look_ups:
            return {"error": "service_unavailable"}
        types = str(given.get("types", "public_channel")).split(",")
        channels = [
            {
                "id": each.id,
                "is_im": each.direct,
                "is_ext_shared": each.shared,
                "name": each.name,
                "user": each.person,
            }
            for each in self.chats.values()
            if not each.archived and ("im" if each.direct else "public_channel") in types
        ]
        return {"channels": channels, "response_metadata": {"next_cursor": ""}}

    def _users_info(self, given: Json) -> Json:
        person = str(given.get("user"))
        return {"user": {"id": person, "name": person.lower(), "profile": {"display_name": ""}}}

    def _reactions_add(self, given: Json) -> Json:
        marks = self.reactions.setdefault((str(given["channel"]), str(given["timestamp"])), [])
        if given["name"] in marks:
            return {"error": "already_reacted"}
        marks.append(str(given["name"]))
        return {}

    def _reactions_remove(self, given: Json) -> Json:
        marks = self.reactions.setdefault((str(given["channel"]), str(given["timestamp"])), [])
        if given["name"] not in marks:
            return {"error": "no_reaction"}
        marks.remove(str(given["name"]))
        return {}

    def _assistant_threads_setStatus(self, given: Json) -> Json:  # noqa: N802
        if not self.status_works:
            return {"error": "not_allowed"}
        self.statuses[str(given["channel_id"]), str(given["thread_ts"])] = str(given["status"])
        return {}

    def _agents_sessions_setStatus(self, given: Json) -> Json:  # noqa: N802
        if not self.agents:
            return {"error": "feature_not_enabled"}
        self.sessions[str(given["channel_id"]), str(given["thread_ts"])] = str(given["status"])
        return {"status": given["status"]}

    def _files_getUploadURLExternal(self, given: Json) -> Json:  # noqa: N802
        file = self.add_file(str(given["filename"]), b"")
        file["size"] = int(str(given["length"]))
        return {"file_id": file["id"], "upload_url": f"{self.url}/upload/{file['id']}"}

    async def _upload(self, request: web.Request) -> web.Response:
        self.contents[request.match_info["file"]] = await request.read()
        return web.Response(text="OK")

    def _files_completeUploadExternal(self, given: Json) -> Json:  # noqa: N802
        files = cast(list[Json], json.loads(str(given["files"])))
        chat = self.chats.get(str(given.get("channel_id")))
        if chat is None:
            return {"error": "channel_not_found"}
        shared = []
        for each in files:
            file = self.files[str(each["id"])]
            message: Json = {
                "type": "message",
                "subtype": "file_share",
                "user": BOT_USER,
                "bot_id": BOT,
                "text": "",
                "ts": self.next_time(),
                "files": [file],
            }
            if given.get("thread_ts"):
                message["thread_ts"] = given["thread_ts"]
            file["shares"] = {
                "private" if chat.direct else "public": {chat.id: [{"ts": message["ts"]}]}
            }
            self._keep({"message": message, "in": chat.id})
            self._echo(chat, message)
            shared.append(file)
        return {"files": shared}

    def _files_info(self, given: Json) -> Json:
        file = self.files.get(str(given.get("file")))
        if not self.look_ups:
            return {"error": "service_unavailable"}
        return {"error": "file_not_found"} if file is None else {"file": file}

    async def _download(self, request: web.Request) -> web.Response:
        if request.headers.get("Authorization") != f"Bearer {BOT_TOKEN}":
            return web.Response(text=SIGN_IN_PAGE, content_type="text/html")
        return web.Response(body=self.contents[request.match_info["file"]])


async def _arguments(request: web.Request) -> Json:
    given: Json = dict(request.query)
    if request.content_type == "application/json":
        body = await request.json()
        assert isinstance(body, dict)
        return given | body
    return given | dict(await request.post())
