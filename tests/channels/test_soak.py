"""Kills and cuts on the way lose nothing, repeat nothing, and change no order.

`make soak-channels` runs SOAK messages on each channel; without it the suite sends a few, with one
fault of each kind.
"""

from __future__ import annotations

import os
import random
import time

import pytest

from tests.channels.conformance.harness import KINDS
from tests.channels.soak import FAULTS, soak
from tests.stores import Stores

MANY = int(os.environ.get("SOAK", "0"))
FEW = 40


@pytest.mark.slow
@pytest.mark.parametrize("channel", KINDS)
def test_kills_and_cuts_lose_nothing_and_repeat_nothing(stores: Stores, channel: str) -> None:
    seed = time.time_ns() % 1_000_000
    faults = () if MANY else random.Random(seed).sample(FAULTS, len(FAULTS))
    outcome = soak(stores, channel, MANY or FEW, faults=faults, chance=random.Random(seed))
    print(f"{channel}, seed {seed}: {outcome}")
    assert not outcome.problems(can_tell=KINDS[channel].recovers), (seed, outcome)
