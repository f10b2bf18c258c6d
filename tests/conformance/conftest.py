"""What holds after every conformance test: the lanes' counters and heads are true."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from bullpen.core.models import LANES, MESSAGES
from bullpen.core.store.base import Store
from tests.conformance.verbs import Row, rows
from tests.stores import FakeClock


@pytest.fixture(autouse=True)
def lanes_tell_the_truth(store: Store, clock: FakeClock) -> Iterator[None]:
    """Each lane's count, head and claim are what its messages say."""
    yield
    messages = rows(store, MESSAGES)
    for lane in rows(store, LANES):
        mine = [row for row in messages if row["agent"] == lane["agent"]]
        assert lane["pending"] == sum(row["status"] == "pending" for row in mine), lane
        assert lane["head_key"] == _head(lane, mine), lane
        claimed = [row for row in mine if row["status"] == "processing"]
        assert {row["claim_token"] for row in claimed} <= {lane["claim_token"]}, lane
        if lane["claim_token"] is not None:
            assert sorted(row["id"] for row in claimed) == sorted(json.loads(lane["batch"])), lane
        assert all(row["claim_token"] is None for row in mine if row not in claimed), lane


def _head(lane: Row, mine: list[Row]) -> int | None:
    """The key of what can be claimed next."""
    runs = lane["state"] in ("active", "draining") and lane["claim_token"] is None
    # A wait that is over counts until the next claim looks at the clock.
    if not runs or lane["not_before"] is not None:
        return None
    ready = (row["sort_key"] for row in mine if row["status"] == "pending" and row["ready"])
    return min(ready, default=None)
