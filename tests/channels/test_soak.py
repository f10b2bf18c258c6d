"""Kills and cuts on the way lose nothing, repeat nothing, and change no order.

`make soak-channels` sends SOAK messages through each channel, with hundreds of random faults. The
suite sends a few through one of them, another one each day, with one fault of each kind.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from tests.channels.conformance.kinds import KINDS
from tests.channels.soak import FAULTS, Outcome, soak
from tests.stores import Stores

MANY = int(os.environ.get("SOAK", "0"))
FEW = 40
TODAY = datetime.now(UTC).toordinal()
CHANNELS = list(KINDS) if MANY else [list(KINDS)[TODAY % len(KINDS)]]


@pytest.fixture(scope="module")
def lines() -> Iterator[list[str]]:
    """A line for each channel, printed at the end."""
    found: list[str] = []
    yield found
    print("\n", *found, sep="\n")


def test_only_a_labelled_repetition_of_an_unknown_answer_is_allowed() -> None:
    kept = Outcome(
        said={1: ["a", "b", "c"]},
        stored={1: ["a", "b", "c"]},
        seen={1: ["a", "c"]},
        labelled={1: ["a", "b"]},
        unknown=["a", "b"],
        unfinished=[],
    )
    assert kept.repeated_with_label == ["a"]
    assert not kept.problems(can_tell=False, in_order=True)
    assert kept.problems(can_tell=True, in_order=True)  # it had to find out
    assert replace(kept, unknown=["a"]).problems(can_tell=False, in_order=True)
    again = replace(kept, seen={1: ["a", "c", "c"]})
    assert again.repeated == ["c"]
    assert again.problems(can_tell=False, in_order=True)
    assert replace(kept, labelled={1: ["a"]}).lost == ["b"]
    assert replace(kept, seen={1: ["c", "a"]}).swapped(in_order=True)


@pytest.mark.slow
@pytest.mark.parametrize("channel", CHANNELS)
def test_kills_and_cuts_lose_nothing_and_repeat_nothing(
    stores: Stores, channel: str, lines: list[str]
) -> None:
    seed = random.randrange(1_000_000) if MANY else TODAY
    chance = random.Random(seed)
    faults = () if MANY else chance.sample(FAULTS, len(FAULTS))
    outcome = soak(stores, channel, MANY or FEW, faults=faults, chance=chance)
    # A webhook that Twilio lost is found in a list with whole seconds, after later ones.
    in_order = channel not in ("sms", "whatsapp")
    lines.append(outcome.line(channel, in_order=in_order))
    problems = outcome.problems(can_tell=KINDS[channel].recovers, in_order=in_order)
    assert not problems, (seed, lines[-1])
