"""bullpen logs: what the services log, as it was and as it comes."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence

import click

from bullpen.cli.command import require_person
from bullpen.cli.options import SERVICES
from bullpen.cli.output import as_json
from bullpen.core.logs import LogFollower, LogFormatter, last_lines
from bullpen.core.settings import Settings
from bullpen.ops.services.programs import list_programs

POLL_SECONDS = 0.2

LogLine = tuple[str, str]
"""A service, and a line of its."""


@click.command()
@click.argument("services", nargs=-1, type=SERVICES)
@click.option("--follow", "-f", is_flag=True, help="Go on with what comes, until Ctrl-C.")
@click.option(
    "--lines",
    "-n",
    type=click.IntRange(0, 10_000),
    default=50,
    show_default=True,
    help="How many of each service's last lines.",
)
@as_json
@click.pass_obj
def logs(
    settings: Settings, services: tuple[str, ...], follow: bool, lines: int, as_json: bool
) -> None:
    """Print what the services logged last: those that are named, or all, in the order of time.

    With --json each line is an object, and with --follow as well a document of its own.

    \b
    Examples:
      bullpen logs processor
      bullpen logs -f
    """
    require_person("read the logs")
    names = services or tuple(each.name for each in list_programs())
    following = {name: LogFollower(settings.logs / f"{name}.log") for name in names}
    found = merged_lines(settings, names, lines)
    if as_json and not follow:
        click.echo(json.dumps([_object(each) for each in found]))
    else:
        _print(found, len(names), as_json)
    if not found and not as_json:
        click.echo("Nothing is logged yet. Next: bullpen up", err=True)
    while follow:
        _print(new_lines(settings, following), len(names), as_json)
        time.sleep(POLL_SECONDS)


def merged_lines(settings: Settings, names: Sequence[str], count: int) -> list[LogLine]:
    """The last lines of these services. Each begins with its time, so they can be put in order."""
    hide = LogFormatter(settings.secrets()).redact
    said: list[tuple[str, str, str]] = []
    for name in names:
        at = ""
        for line in _last(settings, name, count):
            at = line[:24] if line[:1].isdigit() else at  # a traceback stays with its line
            said.append((at, name, hide(line)))
    return [(name, line) for _, name, line in sorted(said, key=lambda each: each[0])]


def new_lines(settings: Settings, following: dict[str, LogFollower]) -> Iterator[LogLine]:
    """What was logged since the last look."""
    hide = LogFormatter(settings.secrets()).redact
    for name, each in following.items():
        for line in each.lines():
            yield name, hide(line)


def _last(settings: Settings, name: str, count: int) -> list[str]:
    try:
        return last_lines(settings.logs / f"{name}.log", count) if count else []
    except FileNotFoundError:
        return []


def _print(said: Sequence[LogLine] | Iterator[LogLine], of: int, as_json: bool) -> None:
    for each in said:
        if as_json:
            click.echo(json.dumps(_object(each)))
        else:
            click.echo(f"{each[0]:<9} | {each[1]}" if of > 1 else each[1])


def _object(said: LogLine) -> dict[str, str]:
    return {"service": said[0], "line": said[1]}
