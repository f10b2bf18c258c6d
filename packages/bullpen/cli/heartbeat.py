"""bullpen heartbeat: agents that are woken at an interval."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import TypedDict, Unpack

import click

from bullpen.cli import completion
from bullpen.cli.command import Result, command
from bullpen.cli.lazy import LazyGroup
from bullpen.cli.options import Function, combine_options, limit_option, require_change
from bullpen.cli.output import format_duration, format_fields, format_state
from bullpen.core.background import count_live_workers
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
from bullpen.core.heartbeats.run import send_heartbeat_now
from bullpen.core.inspect.queue import PROCESSOR
from bullpen.core.outbox.addresses import OWNER, parse_address
from bullpen.core.roster.agents import get_agent
from bullpen.core.store.transaction import Transaction
from bullpen.core.workspace.contents import heartbeat_path, read_heartbeat_text

ALL_DAY = "all"

agent_argument = click.argument("agent", metavar="AGENT", shell_complete=completion.agents)


def heartbeat_options(*, defaults: bool) -> Callable[[Function], Function]:
    """The options of a heartbeat, with their defaults or without."""
    return combine_options(
        click.option(
            "--every",
            metavar="DURATION",
            show_default="1h" if defaults else False,
            help="Interval of at least one minute.",
        ),
        click.option(
            "--hours",
            metavar="HOURS",
            show_default="all" if defaults else False,
            help="Hours in the owner's time zone, for example 08:00-18:00.",
        ),
        click.option(
            "--budget",
            type=int,
            metavar="N",
            show_default="24" if defaults else False,
            help="At most N heartbeats a day.",
        ),
        click.option(
            "--max-silent",
            type=int,
            metavar="N",
            show_default="48" if defaults else False,
            help="Pause after N silent heartbeats in a row; 0 = never.",
        ),
        click.option(
            "--to",
            metavar="ADDRESS",
            show_default="owner" if defaults else False,
            help="Reply address: channel:address, owner or nowhere.",
        ),
    )


class HeartbeatOptions(TypedDict, total=False):
    """The options of a heartbeat; None for an option that was not given."""

    every: str | None
    hours: str | None
    budget: int | None
    max_silent: int | None
    to: str | None


@click.group(cls=LazyGroup)
def heartbeat() -> None:
    """Wake agents at an interval.

    A heartbeat sends the agent the text of its file heartbeat.md. An answer goes to the owner
    unless it is HEARTBEAT_OK.

    \b
    Examples:
      bullpen heartbeat on coder --every 1h --hours 08:00-18:00
      bullpen heartbeat now coder
    """


@command(heartbeat, tx="read", listing=True)
def list_(tx: Transaction) -> Result:
    """List heartbeats.

    Agents without a heartbeat that was turned on or changed are left out.

    \b
    Example:
      bullpen heartbeat list
    """
    heartbeats, zone = list_heartbeats(tx), owner_zone_name(tx.settings)
    rows: list[tuple[str, ...]] = [("AGENT", "STATE", "EVERY", "HOURS", "NEXT", "LAST", "REASON")]
    rows += [_heartbeat_row(each, zone, tx.now) for each in heartbeats]
    return Result(
        [_heartbeat_fields(tx, each) for each in heartbeats],
        rows=rows,
        empty="No heartbeats. Next: bullpen heartbeat on assistant --every 1h",
        ids=(each.agent for each in heartbeats),
    )


@command(heartbeat, tx="read")
@agent_argument
def show(tx: Transaction, agent: str) -> Result:
    """Show the heartbeat of an agent, and its text.

    \b
    Example:
      bullpen heartbeat show coder
    """
    get_agent(tx, agent)
    heartbeat = get_heartbeat(tx, agent)
    path, text = heartbeat_path(tx.settings, agent), read_heartbeat_text(tx.settings, agent)
    lines = text.strip().splitlines() or ["(empty: no heartbeats are sent)"]
    return Result(
        {**_heartbeat_fields(tx, heartbeat), "path": str(path), "text": text},
        [
            *_format_heartbeat(tx, heartbeat),
            *format_fields(("text", path), width=12),
            *(f"  {line}" for line in lines),
        ],
    )


@command(heartbeat, people_only="change heartbeats", tx="write")
@agent_argument
@heartbeat_options(defaults=True)
def on(tx: Transaction, /, agent: str, **options: Unpack[HeartbeatOptions]) -> Result:
    """Turn on or resume the heartbeat of an agent.

    \b
    Example:
      bullpen heartbeat on coder --every 30m --hours 08:00-18:00 --budget 12
    """
    return _change(tx, agent, options, "Turned on", on=True)


@command(heartbeat, people_only="change heartbeats", tx="write")
@agent_argument
@heartbeat_options(defaults=False)
def set_(tx: Transaction, /, agent: str, **options: Unpack[HeartbeatOptions]) -> Result:
    """Change the given options of a heartbeat.

    Does not turn it on or off.

    \b
    Example:
      bullpen heartbeat set coder --hours all --to telegram:123456789
    """
    require_change(options)
    return _change(tx, agent, options, "Changed")


@command(heartbeat, people_only="change heartbeats", tx="write")
@agent_argument
def off(tx: Transaction, agent: str) -> Result:
    """Turn off the heartbeat of an agent.

    Its options are kept.

    \b
    Example:
      bullpen heartbeat off coder
    """
    return _change(tx, agent, HeartbeatOptions(), "Turned off", on=False)


@command(heartbeat, people_only="send heartbeats", tx="write")
@agent_argument
def now(tx: Transaction, agent: str) -> Result:
    """Send a heartbeat to an agent now.

    Works while the heartbeat is off, paused or outside its hours, and does not change its next due
    time. It counts for the daily budget. The agent must be idle, and its heartbeat.md not empty.

    \b
    Example:
      bullpen heartbeat now coder
    """
    get_agent(tx, agent)
    text = read_heartbeat_text(tx.settings, agent).strip()
    message_id = send_heartbeat_now(tx, agent, text)
    hints = [f"Next: bullpen trace {message_id} -f, bullpen heartbeat history {agent}"]
    if not count_live_workers(tx).get(PROCESSOR):
        hints.insert(0, "No processor is running. Next: bullpen up")
    return Result(
        {"agent": agent, "message_id": message_id},
        f"Enqueued message {message_id}: heartbeat of @{agent}.",
        hints=hints,
    )


@command(heartbeat, tx="read", listing=True)
@agent_argument
@limit_option()
def history(tx: Transaction, agent: str, limit: int) -> Result:
    """List past heartbeats of an agent, newest first.

    \b
    Example:
      bullpen heartbeat history coder -n 5
    """
    get_agent(tx, agent)
    runs, zone = list_heartbeat_runs(tx, agent, None, limit), owner_zone_name(tx.settings)
    rows: list[tuple[str, ...]] = [("DUE", "OUTCOME", "MESSAGE", "REASON")]
    rows += [_run_row(each, zone) for each in runs]
    empty = f"No heartbeats of @{agent} yet. Next: bullpen heartbeat show {agent}"
    ids = (each.message_id for each in runs if each.message_id is not None)
    return Result(runs, rows=rows, empty=empty, ids=ids)


def _change(
    tx: Transaction, agent: str, options: HeartbeatOptions, done: str, *, on: bool | None = None
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
    return Result(
        _heartbeat_fields(tx, changed),
        [f"{done} the heartbeat of @{agent}.", *_format_heartbeat(tx, changed)],
    )


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
        ("budget", f"{heartbeat.budget} a day, {_left_today(tx, heartbeat)} left today"),
        ("max silent", f"{silent}, {heartbeat.silent} in a row now"),
        ("reply to", _format_recipient(heartbeat)),
        ("last", _format_optional(heartbeat.last_at, zone) or "never"),
        ("next", _format_optional(_next_due(heartbeat, zone), zone) or "none"),
        width=12,
    )
    if heartbeat.state is HeartbeatState.ON:
        return [*fields]
    return [*fields, f"Next: bullpen heartbeat on {heartbeat.agent}"]


def _heartbeat_row(heartbeat: Heartbeat, zone: str, now: int) -> tuple[str, ...]:
    due, last = _next_due(heartbeat, zone), heartbeat.last_at
    return (
        heartbeat.agent,
        format_state(heartbeat.state.value),
        format_interval(heartbeat.every),
        str(heartbeat.hours or ALL_DAY),
        "" if due is None else f"in {format_duration(due - now)}",
        "" if last is None else f"{format_duration(now - last)} ago",
        heartbeat.reason or "",
    )


def _next_due(heartbeat: Heartbeat, zone: str) -> int | None:
    """Return the next due time; outside the hours of a heartbeat, their start."""
    due, hours = heartbeat.due_at, heartbeat.hours
    return due if due is None or hours is None else hours.next(due, get_zone(zone))


def _run_row(run: HeartbeatRun, zone: str) -> tuple[str, ...]:
    return format_time(run.due_at, zone), run.outcome, run.message_id or "", run.reason or ""


def _format_optional(at: int | None, zone: str) -> str:
    return "" if at is None else format_time(at, zone)


def _format_recipient(heartbeat: Heartbeat) -> str:
    return OWNER if heartbeat.place is None else str(heartbeat.place)
