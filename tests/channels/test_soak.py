"""Kills and cuts on the way lose nothing, repeat nothing, and change no order.

`make soak-channels` sends SOAK messages through each channel, with hundreds of random faults. The
suite sends a few through one of them, another one each day, with one fault of each kind.
"""

from __future__ import annotations

import os
import random
from datetime import UTC, datetime

import pytest

from tests.channels.conformance.kinds import KINDS
from tests.channels.soak import FAULTS, soak
from tests.stores import Stores

MANY = int(os.environ.get("SOAK", "0"))
FEW = 40
TODAY = datetime.now(UTC).toordinal()
CHANNELS = list(KINDS) if MANY else [list(KINDS)[TODAY % len(KINDS)]]


@pytest.mark.slow
@pytest.mark.parametrize("channel", CHANNELS)
def test_kills_and_cuts_lose_nothing_and_repeat_nothing(stores: Stores, channel: str) -> None:
    seed = random.randrange(1_000_000) if MANY else TODAY
    chance = random.Random(seed)
    faults = () if MANY else chance.sample(FAULTS, len(FAULTS))
    outcome = soak(stores, channel, MANY or FEW, faults=faults, chance=chance)
    print(f"{channel}, seed {seed}: {outcome}")
    # A webhook that Twilio lost is found in a list with whole seconds, after later ones.
    in_order = channel not in ("sms", "whatsapp")
    problems = outcome.problems(can_tell=KINDS[channel].recovers, in_order=in_order)
    assert not problems, (seed, str(outcome))
