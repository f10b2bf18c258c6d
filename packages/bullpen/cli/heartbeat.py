"""bullpen heartbeat: agents that look after their work without being asked."""

from __future__ import annotations

from dataclasses import asdict
from typing import TypedDict, Unpack

import click

from bullpen.cli import completion
from bullpen.cli.command import Result, command
from bullpen.cli.lazy import LazyGroup
from bullpen.cli.options import combine_options, limit_option
from bullpen.cli.output import format_fields
from bullpen.core.clock import (
    format_interval,
    format_time,
    get_zone,
    owner_zone_name,
    parse_duration,
    start_of_day,
)
from bullpen.core.heartbeats.history import HeartbeatRun, count_sent_since, list_heartbeat_runs
from bullpen.core.heartbeats.manage import (
    HeartbeatChange,
    change_heartbeat,
    get_heartbeat,
    list_heartbeats,
)
from bullpen.core.heartbeats.model import ActiveHours, Heartbeat, HeartbeatState
from bullpen.core.outbox.addresses import OWNER, parse_address
from bullpen.core.roster.agents import get_agent
from bullpen.core.store.transaction import Transaction
from bullpen.core.workspace.contents import heartbeat_path, read_heartbeat_text

ALL_DAY = "all"

heartbeat_options = combine_options(
    click.option("--every", help="How often, as 30m; a minute or more, an hour if never said."),
    click.option("--hours", help="When, by the owner's clock, as 08:00-18:00; or all."),
    click.option("--budget", type=int, help="How many beats a day at most; 24 if never said."),
    click.option(
        "--max-silent",
        type=int,
        help="It pauses after so many silent beats in a row; 48 if never said, 0 is never.",
    ),
    click.option(
        "--to", help="Who is told what it has to say: channel:address, or owner if never said."
    ),
)


class HeartbeatOptions(TypedDict, total=False):
    """The options of a heartbeat; None is an option that was not given."""

    every: str | None
    hours: str | None
    budget: int | None
    max_silent: int | None
    to: str | None


@click.group(cls=LazyGroup)
def heartbeat() -> None:
    """Wake agents from time to time, so that they look after their work.

    \b
    Example:
      bullpen heartbeat on coder --every 1h --hours 08:00-18:00
    """


@command(heartbeat, tx="read")
def list_(tx: Transaction) -> Result:
    """List the agents whose heartbeat was ever turned on or changed.

    \b
    Example:
      bullpen heartbeat list
    """
    heartbeats, zone = list_heartbeats(tx), owner_zone_name(tx.settings)
    rows: list[tuple[str, ...]] = [("AGENT", "STATE", "EVERY", "HOURS", "NEXT", "LAST", "WHY")]
    rows += [_heartbeat_row(each, zone) for each in heartbeats]
    return Result(
        [_heartbeat_fields(tx, each) for each in heartbeats],
        rows=rows,
        empty="No agent has a heartbeat. Next: bullpen heartbeat on assistant --every 1h",
    )


@command(heartbeat, tx="read")
@click.argument("agent", shell_complete=completion.agents)
def show(tx: Transaction, agent: str) -> Result:
    """Show an agent's heartbeat, and what it is told by it.

    \b
    Example:
      bullpen heartbeat show coder
    """
    get_agent(tx, agent)
    heartbeat = get_heartbeat(tx, agent)
    path, text = heartbeat_path(tx.settings, agent), read_heartbeat_text(tx.settings, agent)
    lines = text.strip().splitlines() or ["(nothing: it is not woken)"]
    return Result(
        {**_heartbeat_fields(tx, heartbeat), "path": str(path), "text": text},
        [
            *_format_heartbeat(tx, heartbeat),
            *format_fields(("told by", path), width=12),
            *(f"  {line}" for line in lines),
        ],
    )


@command(heartbeat, people_only="change heartbeats", tx="write")
@click.argument("agent", shell_complete=completion.agents)
@heartbeat_options
def on(tx: Transaction, /, agent: str, **options: Unpack[HeartbeatOptions]) -> Result:
    """Turn an agent's heartbeat on, or let one that was paused go on.

    \b
    Example:
      bullpen heartbeat on coder --every 30m --hours 08:00-18:00 --budget 12
    """
    return _change(tx, agent, options, on=True)


@command(heartbeat, people_only="change heartbeats", tx="write")
@click.argument("agent", shell_complete=completion.agents)
@heartbeat_options
def set_(tx: Transaction, /, agent: str, **options: Unpack[HeartbeatOptions]) -> Result:
    """Change what is named; the rest stays, and so does whether it is on.

    \b
    Example:
      bullpen heartbeat set coder --hours all --to telegram:123456789
    """
    return _change(tx, agent, options)


@command(heartbeat, people_only="change heartbeats", tx="write")
@click.argument("agent", shell_complete=completion.agents)
def off(tx: Transaction, agent: str) -> Result:
    """Turn an agent's heartbeat off; what was set up for it is kept.

    \b
    Example:
      bullpen heartbeat off coder
    """
    return _change(tx, agent, HeartbeatOptions(), on=False)


@command(heartbeat, tx="read")
@click.argument("agent", shell_complete=completion.agents)
@limit_option()
def history(tx: Transaction, agent: str, limit: int) -> Result:
    """Show what became of an agent's beats, the newest first.

    \b
    Example:
      bullpen heartbeat history coder --limit 5
    """
    get_agent(tx, agent)
    runs, zone = list_heartbeat_runs(tx, agent, None, limit), owner_zone_name(tx.settings)
    rows: list[tuple[str, ...]] = [("DUE", "OUTCOME", "MESSAGE", "WHY")]
    rows += [_run_row(each, zone) for each in runs]
    empty = f"@{agent} was never woken. Next: bullpen heartbeat show {agent}"
    return Result(runs, rows=rows, empty=empty)


def _change(
    tx: Transaction, agent: str, options: HeartbeatOptions, *, on: bool | None = None
) -> Result:
    change = HeartbeatChange()
    if on is not None:
        change["on"] = on
    if (every := options.get("every")) is not None:
        change["every"] = parse_duration(every)
    if (hours := options.get("hours")) is not None:
        change["hours"] = None if hours == ALL_DAY else ActiveHours.parse(hours)
    if (budget := options.get("budget")) is not None:
        change["budget"] = budget
    if (max_silent := options.get("max_silent")) is not None:
        change["max_silent"] = max_silent
    if (to := options.get("to")) is not None:
        address = parse_address(to, tx.settings)
        change["place"] = None if to == OWNER else address
    get_agent(tx, agent)
    change_heartbeat(tx, agent, **change)
    changed = get_heartbeat(tx, agent)
    return Result(_heartbeat_fields(tx, changed), _format_heartbeat(tx, changed))


def _heartbeat_fields(tx: Transaction, heartbeat: Heartbeat) -> dict[str, object]:
    """Return a heartbeat for a JSON document; times are milliseconds since 1970."""
    zone = owner_zone_name(tx.settings)
    fields = asdict(heartbeat)
    del fields["place"]
    return {
        **fields,
        "hours": None if heartbeat.hours is None else str(heartbeat.hours),
        "to": _format_recipient(heartbeat),
        "next": _next_due(heartbeat, zone),
        "left_today": _left_today(tx, heartbeat),
    }


def _left_today(tx: Transaction, heartbeat: Heartbeat) -> int:
    today = start_of_day(tx.now, get_zone(owner_zone_name(tx.settings)))
    return max(0, heartbeat.budget - count_sent_since(tx, heartbeat.agent, today))


def _format_heartbeat(tx: Transaction, heartbeat: Heartbeat) -> list[str]:
    zone = owner_zone_name(tx.settings)
    state = f"{heartbeat.state}: {heartbeat.reason}" if heartbeat.reason else heartbeat.state
    silent = heartbeat.max_silent or "never"
    fields = format_fields(
        ("agent", f"@{heartbeat.agent}"),
        ("heartbeat", state),
        ("every", format_interval(heartbeat.every)),
        ("hours", f"{heartbeat.hours or ALL_DAY} ({zone})"),
        ("budget", f"{heartbeat.budget} a day, {_left_today(tx, heartbeat)} of them left today"),
        ("max silent", f"{silent}, {heartbeat.silent} in a row now"),
        ("tells", _format_recipient(heartbeat)),
        ("last beat", _format_optional(heartbeat.last_at, zone) or "never"),
        ("next beat", _format_optional(_next_due(heartbeat, zone), zone) or "none"),
        width=12,
    )
    if heartbeat.state is HeartbeatState.ON:
        return [*fields]
    return [*fields, f"Next: bullpen heartbeat on {heartbeat.agent}"]


def _heartbeat_row(heartbeat: Heartbeat, zone: str) -> tuple[str, ...]:
    return (
        heartbeat.agent,
        heartbeat.state.value,
        format_interval(heartbeat.every),
        str(heartbeat.hours or ALL_DAY),
        _format_optional(_next_due(heartbeat, zone), zone),
        _format_optional(heartbeat.last_at, zone),
        heartbeat.reason or "",
    )


def _next_due(heartbeat: Heartbeat, zone: str) -> int | None:
    """Return when a heartbeat is due: one that comes due outside its hours waits for them."""
    due, hours = heartbeat.due_at, heartbeat.hours
    return due if due is None or hours is None else hours.next(due, get_zone(zone))


def _run_row(run: HeartbeatRun, zone: str) -> tuple[str, ...]:
    return format_time(run.due_at, zone), run.outcome, run.message_id or "", run.reason or ""


def _format_optional(at: int | None, zone: str) -> str:
    return "" if at is None else format_time(at, zone)


def _format_recipient(heartbeat: Heartbeat) -> str:
    return OWNER if heartbeat.place is None else str(heartbeat.place)
