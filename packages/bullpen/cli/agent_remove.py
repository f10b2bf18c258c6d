"""bullpen agent remove: remove agents, after a confirmation that lists the effects."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click

from bullpen.cli import completion
from bullpen.cli.command import Result, command, read_transaction, write_transaction
from bullpen.cli.options import dry_run, yes
from bullpen.cli.output import confirm, echo, format_count
from bullpen.core.company import remove_agent
from bullpen.core.errors import LaneBusy
from bullpen.core.inspect.removal import RemovalPreview, preview_removal
from bullpen.core.queue.lanes import lock_lane
from bullpen.core.settings import Settings


@command(people_only="remove agents")
@click.argument(
    "agent_id", metavar="AGENT...", nargs=-1, required=True, shell_complete=completion.agents
)
@click.option("--force", is_flag=True, help="Cancel pending and processing messages.")
@click.option("--delete-files", is_flag=True, help="Delete its directory if Bullpen created it.")
@yes
@dry_run
def remove(
    settings: Settings,
    agent_id: tuple[str, ...],
    force: bool,
    delete_files: bool,
    yes: bool,
    dry_run: bool,
) -> Result:
    """Remove agents.

    History stays. Files stay unless --delete-files is given.

    \b
    Examples:
      bullpen agent remove coder
      bullpen agent remove coder tester --force --delete-files --dry-run
    """
    names = sorted(set(agent_id))
    with read_transaction(settings) as tx:
        previews = [preview_removal(tx, each) for each in names]
    if not force:
        _check_idle(previews)
    actions = [_describe_removal(each, settings, delete_files) for each in previews]
    if dry_run:
        fields = [{**asdict(each), "removed": False} for each in previews]
        return Result(fields, [f"Would {each[0].lower()}{each[1:]}" for each in actions])
    confirm("\n".join(actions), yes)
    with write_transaction(settings) as tx:
        for each in names:  # all lanes before anything else, as every verb does
            lock_lane(tx, each)
        previews = []
        for each in names:
            previews.append(preview_removal(tx, each))
            remove_agent(tx, each, force=force)
    fields, lines = [], []
    for removed in previews:
        deleted = delete_files and _delete(settings.workspace / removed.agent)
        fields.append({**asdict(removed), "removed": True, "files_deleted": deleted})
        lines += _lines(removed, settings, deleted)
    return Result(fields, lines)


def _check_idle(previews: Sequence[RemovalPreview]) -> None:
    """Refuse agents with unfinished messages before the person is asked to confirm."""
    for each in previews:
        if each.waiting or each.running:
            raise LaneBusy(
                f"agent {each.agent!r} has {format_count(each.waiting, 'pending message')} "
                f"and {each.running} processing",
                hint="Wait until they are completed, or cancel them with --force.",
            )


def _describe_removal(preview: RemovalPreview, settings: Settings, delete_files: bool) -> str:
    """Return the question to confirm, with counts of what is affected."""
    counts = [
        (preview.waiting, "pending message", "cancelled"),
        (preview.running, "processing message", "cancelled"),
        (len(preview.schedules), "schedule", "paused"),
        (int(preview.heartbeat), "heartbeat", "removed"),
        (len(preview.disbanded), "team", "removed"),
    ]
    home = settings.workspace / preview.agent
    if delete_files and _made_by_bullpen(home):
        files = sum(1 for each in home.rglob("*") if not each.is_dir())
        counts.append((files, "file", "deleted"))
    parts = [f"{format_count(count, noun)} {done}" for count, noun, done in counts if count]
    return f"Remove @{preview.agent}" + (f" ({', '.join(parts)})" if parts else "")


def _lines(removed: RemovalPreview, settings: Settings, deleted: bool) -> list[str]:
    cancelled = removed.waiting + removed.running
    lines = [f"Removed @{removed.agent}."]
    if cancelled:
        lines.append(f"Cancelled {format_count(cancelled, 'message')}.")
    home = settings.workspace / removed.agent
    if deleted:
        lines.append(f"Deleted {home}.")
    elif home.is_dir():
        lines.append(f"Its files stay in {home}.")
    return [*lines, *orphan_notices(removed.schedules)]


def _delete(home: Path) -> bool:
    """Delete an agent's directory if Bullpen created it; return whether it was deleted."""
    if _made_by_bullpen(home):
        shutil.rmtree(home)
        return True
    if home.is_dir():
        echo(f"{home} stays because Bullpen did not create it.", err=True)
    return False


def _made_by_bullpen(home: Path) -> bool:
    marker = home / ".bullpen" / "made_by_bullpen"
    return home.is_dir() and marker.is_file() and not home.is_symlink()


def orphan_notices(schedules: Sequence[str]) -> list[str]:
    """Return the lines about schedules that are paused because their agent was removed."""
    if not schedules:
        return []
    return [
        f"Paused {format_count(len(schedules), 'schedule')} without an agent: "
        f"{', '.join(sorted(schedules))}",
        "Next: bullpen schedule set NAME --agent AGENT, then: bullpen schedule resume NAME",
    ]
