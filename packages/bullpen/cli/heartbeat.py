"""bullpen heartbeat: agents that look after their work without being asked."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click

from bullpen.cli import completion
from bullpen.cli.command import read_transaction, require_person, write_transaction
from bullpen.cli.lazy import LazyGroup
from bullpen.cli.output import Function, as_json, limit_option, print_json, print_table
from bullpen.core.clock import (
    format_interval,
    format_time,
    get_zone,
    owner_zone_name,
    parse_duration,
    start_of_day,
)
from bullpen.core.heartbeats.manage import (
    HeartbeatChange,
    HeartbeatRun,
    change_heartbeat,
    count_sent_since,
    get_heartbeat,
    list_heartbeat_runs,
    list_heartbeats,
)
from bullpen.core.heartbeats.model import ActiveHours, Heartbeat, HeartbeatState
from bullpen.core.outbox.addresses import OWNER, parse_address
from bullpen.core.roster.agents import get_agent
from bullpen.core.settings import Settings
from bullpen.core.store.transaction import Transaction
from bullpen.core.workspace.contents import heartbeat_path, read_heartbeat_text

ALL_DAY = "all"

_OPTIONS = (
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


def _heartbeat_options(function: Function) -> Function:
    """The options that describe a heartbeat."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


@click.group(cls=LazyGroup, modules={})
def heartbeat() -> None:
    """Wake agents from time to time, so that they look after their work.

    \b
    Example:
      bullpen heartbeat on coder --every 1h --hours 08:00-18:00
    """


@heartbeat.command(name="list")
@as_json
@click.pass_obj
def list_(settings: Settings, as_json: bool) -> None:
    """List the agents whose heartbeat was ever turned on or changed.

    \b
    Example:
      bullpen heartbeat list
    """
    with read_transaction(settings) as tx:
        found = list_heartbeats(tx)
        fields = [_fields(tx, each) for each in found]
    if as_json:
        print_json(fields)
        return
    rows: list[tuple[str, ...]] = [("AGENT", "STATE", "EVERY", "HOURS", "NEXT", "LAST", "WHY")]
    rows += [_row(each, owner_zone_name(settings)) for each in found]
    print_table(rows, "No agent has a heartbeat. Next: bullpen heartbeat on assistant --every 1h")


@heartbeat.command()
@click.argument("agent", shell_complete=completion.agents)
@as_json
@click.pass_obj
def show(settings: Settings, agent: str, as_json: bool) -> None:
    """Show an agent's heartbeat, and what it is told by it.

    \b
    Example:
      bullpen heartbeat show coder
    """
    with read_transaction(settings) as tx:
        get_agent(tx, agent)
        found = get_heartbeat(tx, agent)
        fields = _fields(tx, found)
    path, text = heartbeat_path(settings, agent), read_heartbeat_text(settings, agent)
    if as_json:
        print_json({**fields, "path": str(path), "text": text})
        return
    _show(found, owner_zone_name(settings), fields["left_today"])
    click.echo(f"{'told by':<12} {path}")
    lines = text.strip().splitlines() or ["(nothing: it is not woken)"]
    click.echo("\n".join(f"  {line}" for line in lines))


@heartbeat.command()
@click.argument("agent", shell_complete=completion.agents)
@_heartbeat_options
@as_json
@click.pass_obj
def on(settings: Settings, /, agent: str, as_json: bool, **given: Any) -> None:  # noqa: ANN401
    """Turn an agent's heartbeat on, or let one that was paused go on.

    \b
    Example:
      bullpen heartbeat on coder --every 30m --hours 08:00-18:00 --budget 12
    """
    _change(settings, agent, as_json, True, **given)


@heartbeat.command(name="set")
@click.argument("agent", shell_complete=completion.agents)
@_heartbeat_options
@as_json
@click.pass_obj
def set_(settings: Settings, /, agent: str, as_json: bool, **given: Any) -> None:  # noqa: ANN401
    """Change what is named; the rest stays, and so does whether it is on.

    \b
    Example:
      bullpen heartbeat set coder --hours all --to telegram:123456789
    """
    _change(settings, agent, as_json, None, **given)


@heartbeat.command()
@click.argument("agent", shell_complete=completion.agents)
@as_json
@click.pass_obj
def off(settings: Settings, agent: str, as_json: bool) -> None:
    """Turn an agent's heartbeat off; what was set up for it is kept.

    \b
    Example:
      bullpen heartbeat off coder
    """
    _change(settings, agent, as_json, False)


@heartbeat.command()
@click.argument("agent", shell_complete=completion.agents)
@limit_option()
@as_json
@click.pass_obj
def history(settings: Settings, agent: str, limit: int, as_json: bool) -> None:
    """Show what became of an agent's beats, the newest first.

    \b
    Example:
      bullpen heartbeat history coder --limit 5
    """
    with read_transaction(settings) as tx:
        get_agent(tx, agent)
        found = list_heartbeat_runs(tx, agent, None, limit)
    if as_json:
        print_json(found)
        return
    rows: list[tuple[str, ...]] = [("DUE", "OUTCOME", "MESSAGE", "WHY")]
    rows += [_beat_row(each, owner_zone_name(settings)) for each in found]
    print_table(rows, f"@{agent} was never woken. Next: bullpen heartbeat show {agent}")


def _change(
    settings: Settings,
    agent: str,
    as_json: bool,
    on: bool | None,
    *,
    every: str | None = None,
    hours: str | None = None,
    budget: int | None = None,
    max_silent: int | None = None,
    to: str | None = None,
) -> None:
    require_person("change heartbeats")
    change = HeartbeatChange()
    if on is not None:
        change["on"] = on
    if every is not None:
        change["every"] = parse_duration(every)
    if hours is not None:
        change["hours"] = None if hours == ALL_DAY else ActiveHours.parse(hours)
    if budget is not None:
        change["budget"] = budget
    if max_silent is not None:
        change["max_silent"] = max_silent
    if to is not None:
        found = parse_address(to, settings)
        change["place"] = None if to == OWNER else found
    with write_transaction(settings) as tx:
        get_agent(tx, agent)
        change_heartbeat(tx, agent, **change)
        changed = get_heartbeat(tx, agent)
        fields = _fields(tx, changed)
    if as_json:
        print_json(fields)
    else:
        _show(changed, owner_zone_name(settings), fields["left_today"])


def _fields(tx: Transaction, heartbeat: Heartbeat) -> dict[str, object]:
    """All of it for a JSON document; times are milliseconds since 1970."""
    today = start_of_day(tx.now, get_zone(owner_zone_name(tx.settings)))
    fields = asdict(heartbeat)
    del fields["place"]
    return {
        **fields,
        "hours": None if heartbeat.hours is None else str(heartbeat.hours),
        "to": _to(heartbeat),
        "next": _next(heartbeat, owner_zone_name(tx.settings)),
        "left_today": max(0, heartbeat.budget - count_sent_since(tx, heartbeat.agent, today)),
    }


def _show(heartbeat: Heartbeat, here: str, left: object) -> None:
    state = f"{heartbeat.state}: {heartbeat.reason}" if heartbeat.reason else heartbeat.state
    silent = heartbeat.max_silent or "never"
    for name, value in (
        ("agent", f"@{heartbeat.agent}"),
        ("heartbeat", state),
        ("every", format_interval(heartbeat.every)),
        ("hours", f"{heartbeat.hours or 'all'} ({here})"),
        ("budget", f"{heartbeat.budget} a day, {left} of them left today"),
        ("max silent", f"{silent}, {heartbeat.silent} in a row now"),
        ("tells", _to(heartbeat)),
        ("last beat", _time(heartbeat.last_at, here) or "never"),
        ("next beat", _time(_next(heartbeat, here), here) or "none"),
    ):
        click.echo(f"{name:<12} {value}")
    if heartbeat.state is not HeartbeatState.ON:
        click.echo(f"Next: bullpen heartbeat on {heartbeat.agent}")


def _row(heartbeat: Heartbeat, here: str) -> tuple[str, ...]:
    return (
        heartbeat.agent,
        heartbeat.state.value,
        format_interval(heartbeat.every),
        str(heartbeat.hours or ALL_DAY),
        _time(_next(heartbeat, here), here),
        _time(heartbeat.last_at, here),
        heartbeat.reason or "",
    )


def _next(heartbeat: Heartbeat, here: str) -> int | None:
    """When it is due within its hours: a beat that comes due outside of them waits for them."""
    due, hours = heartbeat.due_at, heartbeat.hours
    return due if due is None or hours is None else hours.next(due, get_zone(here))


def _beat_row(beat: HeartbeatRun, here: str) -> tuple[str, ...]:
    return format_time(beat.due_at, here), beat.outcome, beat.message_id or "", beat.reason or ""


def _time(at: int | None, here: str) -> str:
    return "" if at is None else format_time(at, here)


def _to(heartbeat: Heartbeat) -> str:
    return OWNER if heartbeat.place is None else str(heartbeat.place)
