"""bullpen queue status: the queue at a glance."""

from __future__ import annotations

import click

from bullpen.cli.output import as_json, reading, show_json, show_table
from bullpen.cli.queue.shown import age, doing, why_not
from bullpen.cli.span import span
from bullpen.core.queue.overview import LaneNow, Overview, overview
from bullpen.core.settings import Settings
from bullpen.core.states import LaneState

HEADING = ("AGENT", "WAITING", "FOR", "RUNS", "WHY NOT")


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
    with reading(settings) as tx:
        found, now = overview(tx), tx.now
    if as_json:
        show_json(found)
        return
    click.echo(_counts(found, now))
    lanes = [lane for lane in found.lanes if _shown(lane)]
    if lanes:
        click.echo()
        show_table([HEADING, *(_row(lane, now) for lane in lanes)], "")
    for line in _next(found, lanes):
        click.echo(line, err=True)


def _counts(found: Overview, now: int) -> str:
    since = found.oldest_waiting_since
    oldest = "" if since is None else f" (for {span(now - since)} at the most)"
    lost = [
        f"  {name} {count}"
        for name, count in (("undelivered", found.undelivered), ("unknown", found.unknown))
        if count
    ]
    return (
        f"pending {found.pending}{oldest}  processing {found.processing}  held {found.held}  "
        f"dead {found.dead}  outgoing {found.outgoing}{''.join(lost)}"
    )


def _shown(lane: LaneNow) -> bool:
    gone = lane.state == LaneState.ARCHIVED and not lane.pending and not lane.processing
    return not lane.quiet and not gone


def _row(lane: LaneNow, now: int) -> tuple[str, ...]:
    since = age(now, lane.waiting_since)
    return lane.agent, str(lane.pending), since, doing(lane, now), why_not(lane, now)


def _next(found: Overview, lanes: list[LaneNow]) -> list[str]:
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
