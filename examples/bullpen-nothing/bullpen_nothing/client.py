"""The channel `nothing`: it receives nothing, and writes responses to its log."""

from __future__ import annotations

import asyncio

from bullpen.channels import Document, Identity, Inbound, Intake, Note, Payload, Platform, Sending

MOST_CHARACTERS = 4000


class Nothing(Platform):
    """An account on a platform that does not exist."""

    async def start(self) -> Identity:
        """Check the token."""
        token = self.context.setting("token")
        self.context.log.info("ready, with a token of %s characters", len(token))
        return Identity(id="nothing")

    async def receive(self, intake: Intake) -> None:
        """Receive nothing."""
        intake.connected()
        await asyncio.Event().wait()

    def parse(self, payload: Payload) -> Inbound | None:
        """No payload is of interest."""
        return None

    def fits(self, text: Document) -> bool:
        """Whether a text is small enough for one part."""
        return text.length <= MOST_CHARACTERS

    async def send(self, sending: Sending, note: Note) -> str:
        """Write a part to the log."""
        text = sending.text.plain() if sending.text is not None else "(a file)"
        self.context.log.info("to %s: %s", sending.to.person, text)
        return sending.key
