"""How a schedule and its runs are shown: lines for a person, or fields of a JSON document."""

from __future__ import annotations

from dataclasses import asdict

import click

from bullpen.core.schedules.history import ScheduleRun, next_due_times
from bullpen.core.schedules.meaning import describe_timing
from bullpen.core.schedules.schedule import Schedule, ScheduleState
from bullpen.core.schedules.timing import TimingKind
from bullpen.core.schedules.when import format_interval, format_time
from bullpen.core.states import ResponseState


def format_target(schedule: Schedule) -> str:
    """Who is asked."""
    return f"@{schedule.agent or schedule.team_id}"


def schedule_fields(schedule: Schedule, now: int) -> dict[str, object]:
    """All of it for a JSON document; times are milliseconds since 1970."""
    fields = asdict(schedule)
    fields.update(fields.pop("timing"))
    del fields["anchor"], fields["place"], fields["paused"]
    return {
        **fields,
        "to": str(schedule.place),
        "meaning": describe_timing(schedule.timing),
        "next": next_due_times(schedule, now),
    }


def schedule_row(schedule: Schedule) -> tuple[str, ...]:
    """A line of the list."""
    zone = schedule.timing.zone
    state = f"{schedule.state} ({schedule.reason})" if schedule.reason else schedule.state
    due = "" if schedule.due_at is None else format_time(schedule.due_at, zone)
    to = str(schedule.place)
    return (
        schedule.id,
        schedule.label or "",
        format_target(schedule),
        _brief(schedule),
        due,
        to,
        state,
    )


def print_next(schedule: Schedule, now: int) -> None:
    """When it is due next, in its zone; or why it is not."""
    if schedule.state is ScheduleState.DONE:
        click.echo("Nothing of it comes any more.")
    elif schedule.state is ScheduleState.PAUSED:
        click.echo(f"It is paused: {schedule.reason}. Next: bullpen schedule resume {schedule.id}")
    else:
        click.echo("It is due next at")
        for each in next_due_times(schedule, now):
            click.echo(f"  {format_time(each, schedule.timing.zone)}")


def print_schedule(schedule: Schedule, now: int) -> None:
    """Everything about one."""
    timing = schedule.timing
    for name, value in (
        ("id", schedule.id),
        ("label", schedule.label or ""),
        ("asks", format_target(schedule)),
        ("text", schedule.message),
        ("when", describe_timing(timing)),
        ("cron", timing.cron or ""),
        ("zone", timing.zone),
        ("answers to", str(schedule.place)),
        ("missed", schedule.missed),
        ("overlap", schedule.overlap),
        ("jitter", format_interval(schedule.jitter) if schedule.jitter else ""),
        ("state", schedule.state),
        ("made by", schedule.made_by),
        ("made at", format_time(schedule.created_at, timing.zone)),
    ):
        if value:
            click.echo(f"{name:<11} {value}")
    print_next(schedule, now)


def run_row(run: ScheduleRun, zone: str) -> tuple[str, ...]:
    """A line of the history."""
    due = f"by hand {format_time(run.fired_at, zone)}" if run.due_at is None else ""
    due = due or format_time(run.due_at or 0, zone)
    if run.until is not None and run.times > 1:
        due = f"{due} to {format_time(run.until, zone)}"
    outcome = f"{run.outcome} ({run.times} times)" if run.times > 1 else run.outcome
    cost = f"${run.cost:.4f}" if run.cost else ""
    why = run.error or run.reason or ""
    return due, outcome, run.message_id or "", run.state or "", cost, delivery_state(run), why


def delivery_state(run: ScheduleRun) -> str:
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
    if timing.kind is TimingKind.CRON:
        return f"{timing.cron} {timing.zone}"
    said = describe_timing(timing)
    return said[0].lower() + said[1:]
