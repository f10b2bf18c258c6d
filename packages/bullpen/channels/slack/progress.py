"""Progress on Slack: a status in threads, with Stop where the app is an agent; else a reaction."""

from __future__ import annotations

from slack_sdk.web.async_client import AsyncWebClient

from bullpen.channels.failures import Refused
from bullpen.channels.platform import Address, Progress, Stage
from bullpen.channels.slack.api import ask

DEFAULT_STATUS = "is working…"
WAITING_STATUS = "is waiting…"
MAX_STATUS = 100
MAX_SHOWN = 1_000

SEEN, DONE, FAILED = "eyes", "white_check_mark", "x"
"""Names of reactions."""


class SlackProgress:
    """Shows the progress of messages, in the best way that the workspace allows."""

    def __init__(self, web: AsyncWebClient, agent_view: bool) -> None:
        self._web = web
        self._sessions = agent_view
        self._without_status: set[str] = set()
        """Chats in which Slack refuses a status."""
        self._shown: dict[tuple[str, str], None] = {}

    async def show(self, progress: Progress) -> None:
        """Show a stage. A direct chat without threads has no place for a status."""
        to = progress.to
        if to.thread and to.chat not in self._without_status:
            try:
                await self._set_status(progress)
                return
            except Refused:
                self._without_status.add(to.chat)
        if to.message:
            await self._react(to, progress.stage)

    async def _set_status(self, progress: Progress) -> None:
        to, over = progress.to, progress.stage in (Stage.DONE, Stage.FAILED)
        place = (to.chat, to.thread)
        if over and place not in self._shown:
            return  # Slack has removed it
        if over:
            del self._shown[place]
        else:
            self._shown[place] = None
            while len(self._shown) > MAX_SHOWN:
                del self._shown[next(iter(self._shown))]
        if self._sessions:
            try:
                status = "active" if over else "processing"
                await ask(
                    self._web.api_call(
                        "agents.sessions.setStatus",
                        json={"channel_id": to.chat, "thread_ts": to.thread, "status": status},
                    )
                )
                return
            except Refused:
                self._sessions = False  # the plan has no agents
        await ask(
            self._web.assistant_threads_setStatus(
                channel_id=to.chat,
                thread_ts=to.thread,
                status="" if over else _status(progress),
            )
        )

    async def _react(self, to: Address, stage: Stage) -> None:
        """Mark a message as seen, and replace the mark when the message is done."""
        if stage in (Stage.QUEUED, Stage.WORKING):
            await self._add(to, SEEN)
            return
        try:
            await ask(self._web.reactions_remove(name=SEEN, channel=to.chat, timestamp=to.message))
        except Refused:
            return  # it has no mark
        await self._add(to, DONE if stage is Stage.DONE else FAILED)

    async def _add(self, to: Address, name: str) -> None:
        try:
            await ask(self._web.reactions_add(name=name, channel=to.chat, timestamp=to.message))
        except Refused as error:
            if error.code != "already_reacted":
                raise


def _status(progress: Progress) -> str:
    text = progress.text or (WAITING_STATUS if progress.stage is Stage.QUEUED else DEFAULT_STATUS)
    text = text[:MAX_STATUS]
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
