"""bullpen queue status: the queue at a glance."""

from __future__ import annotations

import click

from bullpen.cli.output import as_json, print_json, print_table, read_transaction
from bullpen.cli.queue.shown import blocked_reason, format_age, lane_activity
from bullpen.cli.span import format_duration
from bullpen.core.queue.overview import LaneActivity, QueueOverview, queue_overview
from bullpen.core.settings import Settings
from bullpen.core.states import LaneState

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
