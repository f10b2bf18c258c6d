"""bullpen agent remove: what goes with an agent, and the question before it."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click

from bullpen.cli import completion
from bullpen.cli.command import read_transaction, require_person, write_transaction
from bullpen.cli.output import as_json, confirm, dry_run, print_result, yes
from bullpen.core.company import remove_agent
from bullpen.core.errors import LaneBusy
from bullpen.core.inspect.removal import RemovalPreview, preview_removal
from bullpen.core.queue.lanes import lock_lane
from bullpen.core.settings import Settings


def orphan_notices(schedules: Sequence[str]) -> list[str]:
    """That they are paused, and what can be done."""
    if not schedules:
        return []
    count = f"{len(schedules)} schedules are" if len(schedules) > 1 else "1 schedule is"
    return [
        f"{count} paused, since nobody is there to ask: {', '.join(sorted(schedules))}",
        "Next: bullpen schedule set NAME --agent ANOTHER, and bullpen schedule resume",
    ]


@click.command()
@click.argument("agent_id", nargs=-1, required=True, shell_complete=completion.agents)
@click.option("--force", is_flag=True, help="Cancel what it still has to do.")
@click.option("--delete-files", is_flag=True, help="Delete its directory, if Bullpen made it.")
@yes
@dry_run
@as_json
@click.pass_obj
def remove(
    settings: Settings,
    agent_id: tuple[str, ...],
    force: bool,
    delete_files: bool,
    yes: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Let agents go. Their history stays, and their files unless you say otherwise.

    \b
    Examples:
      bullpen agent remove coder
      bullpen agent remove coder tester --force --delete-files --dry-run
    """
    require_person("remove agents")
    names = sorted(set(agent_id))
    with read_transaction(settings) as tx:
        found = [preview_removal(tx, each) for each in names]
    if not force:
        _check_idle(found)
    what = [_what(each, settings, delete_files) for each in found]
    if dry_run:
        fields = [{**asdict(each), "removed": False} for each in found]
        print_result(as_json, fields, *(f"Would {each[0].lower()}{each[1:]}" for each in what))
        return
    confirm("\n".join(what), yes)
    with write_transaction(settings) as tx:
        for each in names:  # all lanes before anything else, as every verb does
            lock_lane(tx, each)
        found = []
        for each in names:
            found.append(preview_removal(tx, each))
            remove_agent(tx, each, force=force)
    fields, lines = [], []
    for gone in found:
        deleted = delete_files and _delete(settings.workspace / gone.agent)
        fields.append({**asdict(gone), "removed": True, "files_deleted": deleted})
        lines += _lines(gone, settings, deleted)
    print_result(as_json, fields, *lines)


def _check_idle(found: Sequence[RemovalPreview]) -> None:
    """Said before anybody is asked."""
    for each in found:
        if each.waiting or each.running:
            raise LaneBusy(
                f"{each.agent} has {each.waiting} messages to answer, and {each.running} in work",
                hint="Wait until it is through, or cancel all of it with --force.",
            )


def _what(gone: RemovalPreview, settings: Settings, delete_files: bool) -> str:
    """What is done, with how much of it."""
    counts = [
        (gone.waiting, "waiting message cancelled", "waiting messages cancelled"),
        (gone.running, "message in work cancelled", "messages in work cancelled"),
        (len(gone.schedules), "schedule paused", "schedules paused"),
        (int(gone.heartbeat), "heartbeat ended", ""),
        (len(gone.disbanded), "team disbanded", "teams disbanded"),
    ]
    home = settings.workspace / gone.agent
    if delete_files and _made_by_bullpen(home):
        files = sum(1 for each in home.rglob("*") if not each.is_dir())
        counts.append((files, "file deleted", "files deleted"))
    said = [f"{count} {one if count == 1 else more}" for count, one, more in counts if count]
    return f"Remove @{gone.agent}" + (f" ({', '.join(said)})" if said else "")


def _lines(gone: RemovalPreview, settings: Settings, deleted: bool) -> list[str]:
    cancelled = gone.waiting + gone.running
    lines = [f"@{gone.agent} is removed"]
    if cancelled:
        lines.append(f"{cancelled} of its messages {'is' if cancelled == 1 else 'are'} cancelled")
    home = settings.workspace / gone.agent
    if deleted:
        lines.append(f"{home} is deleted")
    elif home.is_dir():
        lines.append(f"Its files stay in {home}")
    return [*lines, *orphan_notices(gone.schedules)]


def _delete(home: Path) -> bool:
    """Delete its directory, if it is there and Bullpen's own work."""
    if _made_by_bullpen(home):
        shutil.rmtree(home)
        return True
    if home.is_dir():
        click.echo(f"{home} was not made by Bullpen and stays", err=True)
    return False


def _made_by_bullpen(home: Path) -> bool:
    marker = home / ".bullpen" / "made_by_bullpen"
    return home.is_dir() and marker.is_file() and not home.is_symlink()
