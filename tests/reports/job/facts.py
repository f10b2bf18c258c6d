"""Facts that the tests of the job write, and a report that depends on everything in them."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import insert

from bullpen.core.clock import DAY, HOUR, MINUTE
from bullpen.core.models import ATTEMPTS, EVENTS
from bullpen.core.store.base import Store
from bullpen.reports import Column, Facts, Report, Table, Type
from bullpen.reports import functions as F
from bullpen.reports.expressions import local_day

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SPRING = 1_774_612_800_000
"""2026-03-27 12:00 UTC: in Berlin, the clocks change in the night to the 29th."""


@dataclass(frozen=True, slots=True)
class Run:
    """A run of an agent."""

    claimed_at: int
    finished_at: int
    conversation_at: int | None = None
    agent: str = "coder"
    hop: int = 0


def write_runs(store: Store, runs: Iterable[Run]) -> None:
    """Write them in one transaction; their ids follow their order."""
    values: list[dict[str, Any]] = [
        {
            **{"message_id": f"m{each.finished_at}", "messages": 1, "agent": each.agent},
            **{"worker": "w", "outcome": "completed", "retry_count": 0, "channel": "slack"},
            **{"input_tokens": 1, "output_tokens": 2, "cost": 0.5, "hop": each.hop},
            **{"conversation_id": f"c{each.conversation_at}", "enqueued_at": each.claimed_at},
            **{"claimed_at": each.claimed_at, "started_at": each.claimed_at},
            **{"finished_at": each.finished_at, "conversation_at": each.conversation_at},
            **{"sender": "ann", "available_at": each.claimed_at, "attempt": 1, "dead": 0},
        }
        for each in runs
    ]
    if values:
        with store.engine.begin() as connection:
            connection.execute(insert(ATTEMPTS), values)


def write_messages(store: Store, times: Iterable[int], type_: str = "message_enqueued") -> None:
    """Write an event for each time, all in one transaction."""
    values = [
        {
            **{"type": type_, "agent": "coder", "conversation_id": f"c{at}"},
            **{"message_id": f"m{at}", "created_at": at, "data": json.dumps(_fields(at))},
        }
        for at in times
    ]
    if values:
        with store.engine.begin() as connection:
            connection.execute(insert(EVENTS), values)


def _fields(at: int) -> Mapping[str, object]:
    return {"channel": "slack", "sender": "ann", "sender_id": f"U{at // MINUTE % 3}"}


def write_history(store: Store, chance: random.Random, at: int, count: int) -> None:
    """Write runs and events around a time: some late, some long, some with a clock set back."""
    runs, events = [], []
    for _ in range(count):
        end = at + chance.randrange(36 * HOUR)
        begin = end - chance.choice([0, MINUTE, 20 * MINUTE, 30 * HOUR, -HOUR])
        began = begin - chance.choice([0, HOUR, 3 * DAY, -2 * DAY])
        runs.append(Run(begin, end, chance.choice([None, began]), chance.choice("abc")))
        events.append(end - chance.choice([0, 0, 0, 5 * DAY]))
    write_runs(store, runs)
    write_messages(store, events)
    write_messages(store, events, "agent_progress")


def finished(facts: Facts) -> DataFrame:
    """The runs that finished on each day and hour."""
    return facts.attempts.groupBy("day", "hour", "agent").agg(F.count("*").alias("runs"))


def busy(facts: Facts) -> DataFrame:
    """The runs on each day, also those that only passed through it."""
    first = F.least(*(local_day(each, facts.zone) for each in ("claimed_at", "finished_at")))
    last = local_day("finished_at", facts.zone)
    days = F.explode(F.sequence(first, last)).alias("day")
    is_forward = F.col("claimed_at") <= F.col("finished_at")
    return (
        facts.attempts.where(is_forward).select(days).groupBy("day").agg(F.count("*").alias("runs"))
    )


def began(facts: Facts) -> DataFrame:
    """The runs of the conversations that began on each day."""
    day = local_day("conversation_at", facts.zone)
    return (
        facts.attempts.where(F.col("conversation_at").isNotNull())
        .groupBy(day.alias("day"))
        .agg(F.count("*").alias("runs"))
    )


def wrote(facts: Facts) -> DataFrame:
    """The messages of each sender and day."""
    is_message = F.col("type") == "message_enqueued"
    return (
        facts.events.where(is_message)
        .groupBy("day", "sender_id")
        .agg(F.count("*").alias("messages"))
    )


def column(name: str, type_: Type = Type.INTEGER) -> Column:
    """A column of a report."""
    return Column(name, type_, "For a test.")


DAY_COLUMN = column("day", Type.DATE)


def make_report(name: str, *tables: Table, facts: tuple[str, ...] = ("attempts",)) -> Report:
    """A report without views."""
    return Report(name=name, title=name, question="What?", facts=facts, tables=tables, views=())


RUNS = make_report(
    "runs",
    Table(
        name="runs",
        grain=("day", "hour", "agent"),
        columns=(DAY_COLUMN, column("hour"), column("agent", Type.TEXT), column("runs")),
        transform=finished,
    ),
    Table(name="busy", grain=("day",), columns=(DAY_COLUMN, column("runs")), transform=busy),
    Table(name="began", grain=("day",), columns=(DAY_COLUMN, column("runs")), transform=began),
)
WRITERS = make_report(
    "writers",
    Table(
        name="writers",
        grain=("day", "sender_id"),
        columns=(DAY_COLUMN, column("sender_id", Type.TEXT), column("messages")),
        transform=wrote,
    ),
    facts=("events",),
)
BOTH = (RUNS, WRITERS)
