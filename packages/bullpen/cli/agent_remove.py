"""bullpen agent remove: what goes with an agent, and the question before it."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click

from bullpen.cli import completion
from bullpen.cli.command import Result, command, read_transaction, write_transaction
from bullpen.cli.options import dry_run, yes
from bullpen.cli.output import confirm, echo
from bullpen.core.company import remove_agent
from bullpen.core.errors import LaneBusy
from bullpen.core.inspect.removal import RemovalPreview, preview_removal
from bullpen.core.queue.lanes import lock_lane
from bullpen.core.settings import Settings


@command(people_only="remove agents")
@click.argument("agent_id", nargs=-1, required=True, shell_complete=completion.agents)
@click.option("--force", is_flag=True, help="Cancel what it still has to do.")
@click.option("--delete-files", is_flag=True, help="Delete its directory, if Bullpen made it.")
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
    """Let agents go. Their history stays, and their files unless you say otherwise.

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
    """Refuse agents with open messages before the person is asked to confirm."""
    for each in previews:
        if each.waiting or each.running:
            raise LaneBusy(
                f"{each.agent} has {each.waiting} messages to answer, and {each.running} in work",
                hint="Wait until it is through, or cancel all of it with --force.",
            )


def _describe_removal(preview: RemovalPreview, settings: Settings, delete_files: bool) -> str:
    """Return the question to confirm, with counts of what is affected."""
    counts = [
        (preview.waiting, "waiting message cancelled", "waiting messages cancelled"),
        (preview.running, "message in work cancelled", "messages in work cancelled"),
        (len(preview.schedules), "schedule paused", "schedules paused"),
        (int(preview.heartbeat), "heartbeat ended", ""),
        (len(preview.disbanded), "team disbanded", "teams disbanded"),
    ]
    home = settings.workspace / preview.agent
    if delete_files and _made_by_bullpen(home):
        files = sum(1 for each in home.rglob("*") if not each.is_dir())
        counts.append((files, "file deleted", "files deleted"))
    parts = [f"{count} {one if count == 1 else more}" for count, one, more in counts if count]
    return f"Remove @{preview.agent}" + (f" ({', '.join(parts)})" if parts else "")


def _lines(removed: RemovalPreview, settings: Settings, deleted: bool) -> list[str]:
    cancelled = removed.waiting + removed.running
    lines = [f"@{removed.agent} is removed"]
    if cancelled:
        lines.append(f"{cancelled} of its messages {'is' if cancelled == 1 else 'are'} cancelled")
    home = settings.workspace / removed.agent
    if deleted:
        lines.append(f"{home} is deleted")
    elif home.is_dir():
        lines.append(f"Its files stay in {home}")
    return [*lines, *orphan_notices(removed.schedules)]


def _delete(home: Path) -> bool:
    """Delete an agent's directory if Bullpen created it; return whether it was deleted."""
    if _made_by_bullpen(home):
        shutil.rmtree(home)
        return True
    if home.is_dir():
        echo(f"{home} was not made by Bullpen and stays", err=True)
    return False


def _made_by_bullpen(home: Path) -> bool:
    marker = home / ".bullpen" / "made_by_bullpen"
    return home.is_dir() and marker.is_file() and not home.is_symlink()


def orphan_notices(schedules: Sequence[str]) -> list[str]:
    """Return the lines about schedules that are paused because their agent was removed."""
    if not schedules:
        return []
    count = f"{len(schedules)} schedules are" if len(schedules) > 1 else "1 schedule is"
    return [
        f"{count} paused, since nobody is there to ask: {', '.join(sorted(schedules))}",
        "Next: bullpen schedule set NAME --agent ANOTHER, and bullpen schedule resume",
    ]
