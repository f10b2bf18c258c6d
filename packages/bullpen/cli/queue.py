"""bullpen queue: status and lists of messages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

import click

from bullpen.cli.command import acting_agent, read_transaction
from bullpen.cli.lazy import LazyGroup
from bullpen.cli.options import message_filters, message_selection
from bullpen.cli.output import (
    as_json,
    format_duration,
    limit_option,
    one_line,
    print_json,
    print_table,
)
from bullpen.core.errors import OutOfReach
from bullpen.core.inspect.messages import MessageRecord, message_scans, newest_messages
from bullpen.core.inspect.queue import (
    LaneActivity,
    QueueOverview,
    list_lane_activity,
    queue_overview,
)
from bullpen.core.queue.dead_letters import list_failure_groups
from bullpen.core.settings import Settings
from bullpen.core.states import LaneState, MessageState
from bullpen.core.store.scan import BatchCursor


@click.group(
    cls=LazyGroup,
    modules={
        "agents": "bullpen.cli.queue:agents",
        "cancel": "bullpen.cli.queue_actions:cancel",
        "causes": "bullpen.cli.queue:causes",
        "dead": "bullpen.cli.queue:dead",
        "drain": "bullpen.cli.queue_lanes:drain",
        "drop": "bullpen.cli.queue_actions:drop",
        "held": "bullpen.cli.queue:held",
        "list": "bullpen.cli.queue:list_",
        "pause": "bullpen.cli.queue_lanes:pause",
        "resume": "bullpen.cli.queue_actions:resume",
        "retry": "bullpen.cli.queue_actions:retry",
        "show": "bullpen.cli.queue_show:show",
        "status": "bullpen.cli.queue:status",
    },
    aliases={"let-go": "resume"},
)
def queue() -> None:
    """Look at the queue, and take messages out of it or put them back.

    \b
    Examples:
      bullpen queue status
      bullpen queue dead
      bullpen queue retry --agent coder --error timeout --since 2h
    """


LANE_REASON_CHARS = 100
LANE_TEXT_CHARS = 60


def format_age(now: int, since: int | None) -> str:
    """How long ago, or nothing."""
    return "" if since is None else format_duration(now - since)


def lane_activity(lane: LaneActivity, now: int) -> str:
    """What the lane is at, and since when."""
    if lane.message_id is None or lane.claimed_at is None:
        return ""
    more = f" and {lane.processing - 1} more" if lane.processing > 1 else ""
    return f"{lane.message_id}{more}, {format_duration(now - lane.claimed_at)}"


def blocked_reason(lane: LaneActivity, now: int) -> str:
    """Why it does not run, if it does not."""
    if lane.state != LaneState.ACTIVE:
        return one_line(f"{lane.state}: {lane.reason or 'nobody said why'}", LANE_REASON_CHARS)
    if lane.not_before is not None and lane.not_before > now:
        return f"its provider asked it to wait {format_duration(lane.not_before - now)}"
    if lane.lease_expires_at is not None and lane.lease_expires_at < now:
        return f"its worker was not heard of for {format_duration(now - lane.lease_expires_at)}"
    return ""


LANES_HEADING = ("AGENT", "STATE", "ORDER", "WAITING", "FOR", "RUNS", "WHY NOT")


@click.command()
@click.option("--all", "everybody", is_flag=True, help="Agents that were removed as well.")
@as_json
@click.pass_obj
def agents(settings: Settings, everybody: bool, as_json: bool) -> None:
    """Show the queue of each agent: its state and order, what waits and what runs for how long.

    \b
    Example:
      bullpen queue agents
    """
    with read_transaction(settings) as tx:
        found, now = list_lane_activity(tx), tx.now
    found = tuple(lane for lane in found if everybody or lane.state != LaneState.ARCHIVED)
    if as_json:
        print_json(list(found))
        return
    print_table(
        [LANES_HEADING, *(_lane_row(lane, now) for lane in found)],
        "There are no agents yet. Next: bullpen agent add coder --provider claude",
    )


def _lane_row(lane: LaneActivity, now: int) -> tuple[str, ...]:
    since = format_age(now, lane.waiting_since)
    return (
        *(lane.agent, lane.state, lane.ordering, str(lane.pending), since),
        *(lane_activity(lane, now), blocked_reason(lane, now).removeprefix(f"{lane.state}: ")),
    )


CAUSES_HEADING = ("KIND", "DEATHS", "FIRST", "LAST", "ERROR")
ERROR_CHARS = 160
NO_CAUSES = "Nothing has died of anything yet; deaths are counted every minute while Bullpen runs."


@click.command()
@limit_option()
@as_json
@click.pass_obj
def causes(settings: Settings, limit: int, as_json: bool) -> None:
    """Show what messages died of, and how many: the cause of the latest death first.

    Errors that differ in numbers and ids alone are one cause. Its deaths are counted for good,
    whatever became of the messages afterwards.

    \b
    Examples:
      bullpen queue causes
      bullpen queue retry --error "connection refused" --dry-run
    """
    with read_transaction(settings) as tx:
        found, now = list_failure_groups(tx, limit), tx.now
    if as_json:
        print_json(found)
        return
    rows: list[tuple[str, ...]] = [CAUSES_HEADING]
    rows += [
        (
            *(each.kind, str(each.deaths), f"{format_duration(now - each.first_at)} ago"),
            *(f"{format_duration(now - each.last_at)} ago", one_line(each.error, ERROR_CHARS)),
        )
        for each in found
    ]
    print_table(rows, NO_CAUSES)
    if found:
        click.echo('Next: bullpen queue retry --error "A PART OF IT" --dry-run', err=True)


MESSAGES_HEADING = ("MESSAGE", "AGENT", "STATE", "AGE", "TEXT")
DEAD_HEADING = ("MESSAGE", "AGENT", "KIND", "TRIES", "AGE", "WHY")
HELD_HEADING = ("MESSAGE", "AGENT", "AGE", "WHY")
TEXT_CHARS = 60
REASON_CHARS = 160


def message_rows(found: Sequence[MessageRecord], now: int) -> list[tuple[str, ...]]:
    """Any messages, with a heading."""
    return [MESSAGES_HEADING, *(_message_row(each, now) for each in found)]


def dead_rows(found: Sequence[MessageRecord], now: int) -> list[tuple[str, ...]]:
    """The dead, with a heading."""
    return [
        DEAD_HEADING,
        *(
            (
                *(each.message_id, each.agent, each.error_kind or "", str(count_attempts(each))),
                *(
                    format_duration(now - each.updated_at),
                    one_line(each.last_error or "", REASON_CHARS),
                ),
            )
            for each in found
        ),
    ]


def held_rows(found: Sequence[MessageRecord], now: int) -> list[tuple[str, ...]]:
    """The held, with a heading."""
    return [
        HELD_HEADING,
        *(
            (
                *(each.message_id, each.agent, format_duration(now - each.updated_at)),
                one_line(each.last_error or "", REASON_CHARS),
            )
            for each in found
        ),
    ]


def message_fields(seen: MessageRecord) -> dict[str, object]:
    """All of it for a program, and in short why it waits for a person and since when."""
    fields = asdict(seen)
    if seen.status in (MessageState.DEAD, MessageState.HELD):
        fields |= {"why": seen.last_error or "", "since": seen.updated_at}
    return fields


def count_attempts(seen: MessageRecord) -> int:
    """How many runs failed."""
    return seen.retry_count + seen.crash_count


def _message_row(seen: MessageRecord, now: int) -> tuple[str, ...]:
    age = format_duration(now - seen.created_at)
    return seen.message_id, seen.agent, seen.status, age, one_line(seen.message, TEXT_CHARS)


OWN_MESSAGES_HINT = "`bullpen queue list` shows its own."


def visible_agent(agent: str | None) -> str | None:
    """Whose messages are looked at: of anybody by a person, by an agent its own."""
    acting = acting_agent()
    if acting is None or agent in (None, acting):
        return acting or agent
    raise OutOfReach(f"@{acting} may not look at the messages of @{agent}", hint=OWN_MESSAGES_HINT)


def require_visible(message_id: str, *agents: str | None) -> None:
    """Refuse an agent a message that is neither for it nor by it."""
    acting = acting_agent()
    if acting is not None and acting not in agents:
        raise OutOfReach(f"{message_id} is neither for @{acting} nor by it", hint=OWN_MESSAGES_HINT)


STATES = click.Choice([each.value for each in MessageState])
NO_MESSAGES = 'There is no message like that. Next: bullpen send "hello", or fewer filters.'


@click.command(name="list")
@message_filters("agent")
@click.option("--state", type=STATES, help="Only those in this state.")
@message_filters("conversation", "channel", "sender", "since", "before")
@click.option("--archived", is_flag=True, help="Those that were archived after a day as well.")
@limit_option()
@as_json
@click.pass_obj
def list_(
    settings: Settings,
    /,
    state: str | None,
    archived: bool,
    limit: int,
    as_json: bool,
    **given: Any,  # noqa: ANN401 - the filters
) -> None:
    """List messages, the newest first.

    \b
    Examples:
      bullpen queue list --state pending --agent coder
      bullpen queue list --since 2h --sender ann --json
    """
    given["agent"] = visible_agent(given["agent"])
    wanted = None if state is None else MessageState(state)
    with read_transaction(settings) as tx:
        found = newest_messages(
            tx, message_selection(tx.now, given), wanted, limit, archived=archived
        )
        now = tx.now
    if as_json:
        print_json([message_fields(each) for each in found])
        return
    print_table(message_rows(found, now), NO_MESSAGES)
    if len(found) == limit:
        click.echo("There may be more: --limit shows them.", err=True)


STATUS_HEADING = ("AGENT", "WAITING", "FOR", "RUNS", "WHY NOT")


@click.command()
@as_json
@click.pass_obj
def status(settings: Settings, as_json: bool) -> None:
    """Show how many messages wait, run, are held or dead, and what each agent is at.

    Agents that have nothing to do are not shown: bullpen queue agents shows all.

    \b
    Example:
      bullpen queue status --json
    """
    with read_transaction(settings) as tx:
        found, now = queue_overview(tx), tx.now
    if as_json:
        print_json(found)
        return
    click.echo(_counts(found, now))
    lanes = [lane for lane in found.lanes if _shown(lane)]
    if lanes:
        click.echo()
        print_table([STATUS_HEADING, *(_agent_row(lane, now) for lane in lanes)], "")
    for line in _next(found, lanes):
        click.echo(line, err=True)


def _counts(found: QueueOverview, now: int) -> str:
    since = found.oldest_waiting_since
    oldest = "" if since is None else f" (for {format_duration(now - since)} at the most)"
    lost = [
        f"  {name} {count}"
        for name, count in (("undelivered", found.undelivered), ("unknown", found.unknown))
        if count
    ]
    return (
        f"pending {found.pending}{oldest}  processing {found.processing}  held {found.held}  "
        f"dead {found.dead}  outgoing {found.outgoing}{''.join(lost)}"
    )


def _shown(lane: LaneActivity) -> bool:
    gone = lane.state == LaneState.ARCHIVED and not lane.pending and not lane.processing
    return not lane.quiet and not gone


def _agent_row(lane: LaneActivity, now: int) -> tuple[str, ...]:
    since = format_age(now, lane.waiting_since)
    return lane.agent, str(lane.pending), since, lane_activity(lane, now), blocked_reason(lane, now)


def _next(found: QueueOverview, lanes: list[LaneActivity]) -> list[str]:
    """What a person can do about it."""
    said = []
    if not found.processors and any(lane.pending and not lane.outside for lane in lanes):
        said.append("No processor runs: bullpen up")
    if found.hold is not None:
        said.append(f"Nothing goes out to people: {found.hold.reason}")
    if found.dead:
        said.append("Dead messages: bullpen queue dead")
    if found.held:
        said.append("Held messages: bullpen queue held")
    if found.undelivered or found.unknown:
        said.append(
            "Answers that did not get there, or perhaps: "
            "bullpen response list --state dead --state unknown"
        )
    stopped = [lane.agent for lane in lanes if lane.state in (LaneState.PAUSED, LaneState.DRAINING)]
    if stopped:
        said.append(f"Paused or draining: bullpen queue resume {' '.join(stopped)}")
    return said


Rows = Callable[[Sequence[MessageRecord], int], list[tuple[str, ...]]]

DEAD_NEXT_STEPS = "Next: bullpen queue show ID, bullpen queue retry ID, bullpen queue drop ID"
HELD_NEXT_STEPS = "Next: bullpen queue show ID, bullpen queue resume ID, bullpen queue cancel ID"


@click.command()
@message_filters("agent", "kind", "error", "conversation", "since", "before")
@limit_option()
@as_json
@click.pass_obj
def dead(
    settings: Settings,
    /,
    limit: int,
    as_json: bool,
    **given: Any,  # noqa: ANN401 - the filters
) -> None:
    """List the messages that will not be tried again by themselves, and why.

    The latest to die come first. What they died of, counted: bullpen queue causes.

    \b
    Examples:
      bullpen queue dead
      bullpen queue dead --agent coder --error timeout --since 2h
    """
    rows = dead_rows, "No message is dead.", DEAD_NEXT_STEPS
    _list(settings, MessageState.DEAD, given, limit, as_json, *rows)


@click.command()
@message_filters("agent", "conversation", "since", "before")
@limit_option()
@as_json
@click.pass_obj
def held(
    settings: Settings,
    /,
    limit: int,
    as_json: bool,
    **given: Any,  # noqa: ANN401 - the filters
) -> None:
    """List the messages that wait for a person, and why.

    \b
    Example:
      bullpen queue held
    """
    rows = held_rows, "No message waits for a person.", HELD_NEXT_STEPS
    _list(settings, MessageState.HELD, given, limit, as_json, *rows)


def _list(
    settings: Settings,
    state: MessageState,
    given: dict[str, Any],
    limit: int,
    as_json: bool,
    rows: Rows,
    empty: str,
    next_: str,
) -> None:
    given["agent"] = visible_agent(given["agent"])
    with read_transaction(settings) as tx:
        wanted = message_selection(tx.now, given)
        found = newest_messages(tx, wanted, state, limit)
        count = len(found)
        if count == limit:
            count = BatchCursor(message_scans(tx, (state,), wanted), wanted).count(tx)
        now = tx.now
    if as_json:
        print_json([message_fields(each) for each in found])
        return
    if any(value is not None for value in given.values()):
        empty = f"{empty[:-1]} like that."
    print_table(rows(found, now), empty)
    if count > len(found):
        click.echo(f"These are {len(found)} of {count}: --limit shows more.", err=True)
    if found:
        click.echo(next_, err=True)
