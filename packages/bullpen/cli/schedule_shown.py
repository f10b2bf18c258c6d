"""How a schedule and its runs are shown: lines for a person, or fields of a JSON document."""

from __future__ import annotations

from dataclasses import asdict

import click

from bullpen.core.schedules.history import ScheduleRun, next_times
from bullpen.core.schedules.meaning import meaning
from bullpen.core.schedules.schedule import Schedule, ScheduleState
from bullpen.core.schedules.timing import Kind
from bullpen.core.schedules.when import lasting, written
from bullpen.core.states import ResponseState


def target(schedule: Schedule) -> str:
    """Who is asked."""
    return f"@{schedule.agent or schedule.team_id}"


def as_fields(schedule: Schedule, now: int) -> dict[str, object]:
    """All of it for a JSON document; times are milliseconds since 1970."""
    fields = asdict(schedule)
    fields.update(fields.pop("timing"))
    del fields["anchor"], fields["place"], fields["paused"]
    return {
        **fields,
        "to": str(schedule.place),
        "meaning": meaning(schedule.timing),
        "next": next_times(schedule, now),
    }


def as_row(schedule: Schedule) -> tuple[str, ...]:
    """A line of the list."""
    zone = schedule.timing.zone
    state = f"{schedule.state} ({schedule.reason})" if schedule.reason else schedule.state
    due = "" if schedule.due_at is None else written(schedule.due_at, zone)
    to = str(schedule.place)
    return schedule.id, schedule.label or "", target(schedule), _brief(schedule), due, to, state


def show_next(schedule: Schedule, now: int) -> None:
    """When it is due next, in its zone; or why it is not."""
    if schedule.state is ScheduleState.DONE:
        click.echo("Nothing of it comes any more.")
    elif schedule.state is ScheduleState.PAUSED:
        click.echo(f"It is paused: {schedule.reason}. Next: bullpen schedule resume {schedule.id}")
    else:
        click.echo("It is due next at")
        for each in next_times(schedule, now):
            click.echo(f"  {written(each, schedule.timing.zone)}")


def show_all(schedule: Schedule, now: int) -> None:
    """Everything about one."""
    timing = schedule.timing
    for name, value in (
        ("id", schedule.id),
        ("label", schedule.label or ""),
        ("asks", target(schedule)),
        ("text", schedule.message),
        ("when", meaning(timing)),
        ("cron", timing.cron or ""),
        ("zone", timing.zone),
        ("answers to", str(schedule.place)),
        ("missed", schedule.missed),
        ("overlap", schedule.overlap),
        ("jitter", lasting(schedule.jitter) if schedule.jitter else ""),
        ("state", schedule.state),
        ("made by", schedule.made_by),
        ("made at", written(schedule.created_at, timing.zone)),
    ):
        if value:
            click.echo(f"{name:<11} {value}")
    show_next(schedule, now)


def run_row(run: ScheduleRun, zone: str) -> tuple[str, ...]:
    """A line of the history."""
    due = f"by hand {written(run.fired_at, zone)}" if run.due_at is None else ""
    due = due or written(run.due_at or 0, zone)
    if run.until is not None and run.times > 1:
        due = f"{due} to {written(run.until, zone)}"
    outcome = f"{run.outcome} ({run.times} times)" if run.times > 1 else run.outcome
    cost = f"${run.cost:.4f}" if run.cost else ""
    why = run.error or run.reason or ""
    return due, outcome, run.message_id or "", run.state or "", cost, arrived(run), why


def arrived(run: ScheduleRun) -> str:
    """Whether its answers got there; empty if there are none."""
    said = []
    for each in run.deliveries:
        taken = each.status == ResponseState.ACKED
        text = "delivered" if taken else each.status
        receipts = f" {','.join(each.receipts)}" if each.receipts else ""
        error = f" ({each.error})" if each.error and not taken else ""
        said.append(f"{each.channel}: {text}{receipts}{error}")
    return "; ".join(said)


def _brief(schedule: Schedule) -> str:
    timing = schedule.timing
    if timing.kind is Kind.CRON:
        return f"{timing.cron} {timing.zone}"
    said = meaning(timing)
    return said[0].lower() + said[1:]
