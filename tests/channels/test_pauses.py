"""A pause, and its end, take effect at once, whenever they are asked for."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from bullpen.channels.health import HealthReporter, Pause
from bullpen.channels.pauses import Pauses
from bullpen.core.channels.health import ChannelState

SOON = 5.0
"""Less than the interval at which the store is read anyway."""


class Health:
    """A channel that is paused or resumed in the middle of the first look at its row."""

    def __init__(self, *found: Pause | None) -> None:
        self.found = list(found)
        self.pauses = Pauses(cast(HealthReporter, self))
        self.states: list[ChannelState] = []

    async def find_pause(self) -> Pause | None:
        """What the row said when it was read; then it changes."""
        found = self.found.pop(0)
        self.pauses.wake()
        return found

    def set(self, state: ChannelState, *why: str) -> None:
        """Report this state."""
        self.states.append(state)


@pytest.mark.parametrize("begins", [True, False])
def test_a_wake_up_during_the_look_is_not_lost(begins: bool) -> None:
    async def work() -> list[ChannelState]:
        health = Health(None, Pause()) if begins else Health(Pause(), None)
        async with asyncio.timeout(SOON):
            await (health.pauses.until_one() if begins else health.pauses.until_none())
        return health.states

    assert asyncio.run(work()) == ([] if begins else [ChannelState.PAUSED])
