"""Schedules that tests make over the API."""

from __future__ import annotations

import itertools
import time
from typing import Any

from tests.api.served import Served

Document = dict[str, Any]


NUMBERS = itertools.count(1)


ALL = "/api/schedules"


DAILY: Document = {"agentId": "coder", "message": "report", "cron": "0 9 * * 1-5", "zone": "UTC"}


HOUR = 3_600_000


def label() -> str:
    """A label that no other test has."""
    return f"label {next(NUMBERS)}"


def made(served: Served, **more: Any) -> Document:  # noqa: ANN401
    """A new schedule."""
    done = served.post(ALL, {**DAILY, **more})
    assert done["ok"] is True
    found: Document = done["schedule"]
    return found


def later(seconds: int = 3600) -> int:
    """A moment to come."""
    return (int(time.time()) + seconds) * 1000
