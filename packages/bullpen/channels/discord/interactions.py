"""Slash commands and buttons, which Discord wants answered within three seconds.

The first answer says only that something follows, and only to the person. The response is a
message like any other, since these have a nonce; then the first answer is deleted.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import aiohttp
import discord

from bullpen.channels.discord.events import SLASH_COMMAND, Data, text_of
from bullpen.channels.discord.rest import Rest
from bullpen.channels.failures import SendFailed

DEFER_SECONDS = 2.0
"""How long the commit is waited for, which live events may have to wait for after a reconnect."""
ANSWER_SECONDS = 60.0
"""How long a slash command is shown as being answered."""
DEFER_MESSAGE = 5
DEFER_UPDATE = 6
EPHEMERAL = 1 << 6
TEXT_OPTION = 3
IN_SERVERS_AND_WITH_THE_BOT = [0, 1]
DESCRIPTION_CHARS = 100


async def register_commands(
    rest: Rest, application: str, summaries: Mapping[str, str], directory: Path, log: logging.Logger
) -> None:
    """Register the slash commands if they have changed: Discord allows few changes a day.

    `summaries` has them by name. `directory` remembers what was registered last.
    """
    commands: list[dict[str, object]] = [
        {
            "name": name,
            "description": summary[:DESCRIPTION_CHARS],
            "options": [{"type": TEXT_OPTION, "name": "text", "description": "An argument."}],
            "contexts": IN_SERVERS_AND_WITH_THE_BOT,
            "integration_types": [0],
        }
        for name, summary in summaries.items()
    ]
    digest = hashlib.sha256(json.dumps([application, commands]).encode()).hexdigest()
    path = directory / "commands.sha256"
    if path.exists() and path.read_text() == digest:
        return
    try:
        with rest.reading():
            await rest.bulk_upsert_global_commands(application, commands)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(digest)
    except (SendFailed, OSError) as error:
        log.warning("the slash commands were not registered: %s", error)


class Interactions:
    """The interactions that are open."""

    def __init__(self, rest: Rest, application: str, log: logging.Logger) -> None:
        self._rest = rest
        self._application = application
        self._log = log
        self._open: dict[str, asyncio.Event] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def take(self, data: Data, stored: asyncio.Future[None]) -> None:
        """Answer an interaction when it is stored, or just in time if that takes long.

        Of one that could not be stored, the person sees that it failed.
        """
        self._open[text_of(data, "id")] = asyncio.Event()
        task = asyncio.create_task(self._serve(data, stored))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def is_open(self, interaction: str) -> bool:
        """Whether this is the id of an interaction, and not of a message."""
        return interaction in self._open

    def answered(self, interaction: str) -> None:
        """The response has been sent."""
        if interaction in self._open:
            self._open[interaction].set()

    async def close(self) -> None:
        """Cancel the tasks; Discord ends the interactions themselves."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, data: Data, stored: asyncio.Future[None]) -> None:
        interaction, token = text_of(data, "id"), text_of(data, "token")
        try:
            await asyncio.wait([stored], timeout=DEFER_SECONDS)
            if stored.done() and not _is_stored(stored):
                return
            await self._defer(interaction, token, stored, data.get("type") == SLASH_COMMAND)
        except (discord.DiscordException, aiohttp.ClientError, OSError, ValueError) as error:
            # Without the text of the error: URLs of interactions contain their token.
            self._log.info("interaction %s: %s", interaction, type(error).__name__)
        finally:
            del self._open[interaction]

    async def _defer(
        self, interaction: str, token: str, stored: asyncio.Future[None], slash: bool
    ) -> None:
        if not slash:
            await self._rest.answer_interaction(interaction, token, {"type": DEFER_UPDATE})
            return
        first = {"type": DEFER_MESSAGE, "data": {"flags": EPHEMERAL}}
        await self._rest.answer_interaction(interaction, token, first)
        await asyncio.wait([stored])
        if _is_stored(stored):
            with suppress(TimeoutError):
                async with asyncio.timeout(ANSWER_SECONDS):
                    await self._open[interaction].wait()
        await self._rest.delete_interaction_answer(self._application, token)


def _is_stored(stored: asyncio.Future[None]) -> bool:
    """Whether what is done was stored."""
    return not stored.cancelled() and stored.exception() is None
