"""A view in this process: what stands on its screen, what is typed, and waiting for both."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any
from zoneinfo import ZoneInfo

from textual.pilot import Pilot

from bullpen.cli.views.app import LiveView
from bullpen.cli.views.company import WatchView
from bullpen.cli.views.room import RoomView
from bullpen.core.settings import Settings

SOON = 40.0
"""Generous: what is waited for takes half a second on a quiet machine."""

UTC = ZoneInfo("UTC")
USUAL = (80, 24)


class Look:
    """One who sits before a view."""

    def __init__(self, pilot: Pilot[None], view: LiveView) -> None:
        self.pilot = pilot
        self.app = view

    @property
    def lines(self) -> list[str]:
        """What stands on the screen."""
        strips = self.app.screen._compositor.render_strips()
        return ["".join(segment.text for segment in strip).rstrip() for strip in strips]

    @property
    def text(self) -> str:
        """All of it."""
        return "\n".join(self.lines)

    async def until(self, condition: Callable[[], bool], what: str) -> None:
        """Wait until this holds."""
        deadline = time.monotonic() + SOON
        while not condition():
            assert time.monotonic() < deadline, f"not within {SOON} s: {what}\n{self.text}"
            await self.pilot.pause(0.02)

    async def sees(self, *texts: str) -> None:
        """Wait until all of this stands on the screen."""
        await self.until(lambda: all(each in self.text for each in texts), f"{texts} is seen")

    async def sees_no_more(self, text: str) -> None:
        """Wait until this is gone."""
        await self.until(lambda: text not in self.text, f"{text!r} is gone")

    async def done(self) -> None:
        """Wait until what was asked for by keys has been done."""
        await asyncio.wrap_future(self.app._actions.submit(lambda: None))

    async def types(self, text: str) -> None:
        """Write this, a key after the other."""
        await self.pilot.press(*(each if each != " " else "space" for each in text))

    async def press(self, *keys: str) -> None:
        """Press these keys."""
        await self.pilot.press(*keys)

    def count(self, text: str) -> int:
        """In how many lines this stands."""
        return sum(text in each for each in self.lines)


@asynccontextmanager
async def looking(view: LiveView, size: tuple[int, int] = USUAL) -> AsyncIterator[Look]:
    """The view, open."""
    async with view.run_test(size=size, notifications=True) as pilot:
        yield Look(pilot, view)


def watching(settings: Settings, team: str | None = None) -> WatchView:
    """The view of the agents."""
    return WatchView(settings, team, UTC)


def sitting_in(settings: Settings, team: str = "dev") -> RoomView:
    """The view of a room."""
    return RoomView(settings, team, UTC)


def run(story: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Let it happen."""
    asyncio.run(story())
