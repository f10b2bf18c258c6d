"""bullpen logs: the logs of services, past and live."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Sequence

import click

from bullpen.cli.command import Result, command, json_requested, print_notes
from bullpen.cli.options import SERVICES, Count
from bullpen.cli.output import echo
from bullpen.core.logs import LogFollower, LogFormatter, last_lines
from bullpen.core.settings import Settings
from bullpen.ops.services.programs import list_programs

POLL_SECONDS = 0.2

LogLine = tuple[str, str]
"""The name of a service, and a line of its log."""


@command(people_only="read the logs")
@click.argument("services", metavar="[SERVICE]...", nargs=-1, type=SERVICES)
@click.option("--follow", "-f", is_flag=True, help="Print new lines until Ctrl-C.")
@click.option(
    "--lines",
    "-n",
    type=Count(0, 10_000),
    default=50,
    show_default=True,
    help="Last N lines of each service.",
)
def logs(settings: Settings, services: tuple[str, ...], follow: bool, lines: int) -> Result | None:
    """Print the logs of services, ordered by time.

    Without a service, prints the logs of all. With --json, a line is an object; with --follow, each
    is a document of its own.

    \b
    Examples:
      bullpen logs processor
      bullpen logs -f
    """
    names = services or tuple(each.name for each in list_programs(settings))
    following = {name: LogFollower(settings.logs / f"{name}.log") for name in names}
    last = merged_lines(settings, names, lines)
    hints = [] if last else ["No log lines yet. Next: bullpen up"]
    if not follow:
        return Result(
            [_fields(each) for each in last],
            [_format(each, len(names)) for each in last],
            hints=hints,
        )
    as_json = json_requested()
    _print(last, len(names), as_json)
    print_notes([] if as_json else hints)
    while True:
        _print(new_lines(settings, following), len(names), as_json)
        time.sleep(POLL_SECONDS)


def merged_lines(settings: Settings, names: Sequence[str], count: int) -> list[LogLine]:
    """The last lines of these services, in the order of time."""
    hide = LogFormatter(settings.secrets()).redact
    timed: list[tuple[str, str, str]] = []
    for name in names:
        at = ""
        for line in _last(settings, name, count):
            at = line[:24] if line[:1].isdigit() else at  # a traceback stays with the line above it
            timed.append((at, name, hide(line)))
    return [(name, line) for _, name, line in sorted(timed, key=lambda each: each[0])]


def new_lines(settings: Settings, following: dict[str, LogFollower]) -> Iterator[LogLine]:
    """The lines that were added since the last call."""
    hide = LogFormatter(settings.secrets()).redact
    for name, each in following.items():
        for line in each.lines():
            yield name, hide(line)


def _last(settings: Settings, name: str, count: int) -> list[str]:
    try:
        return last_lines(settings.logs / f"{name}.log", count) if count else []
    except FileNotFoundError:
        return []


def _print(lines: Iterable[LogLine], services: int, as_json: bool) -> None:
    for each in lines:
        echo(json.dumps(_fields(each)) if as_json else _format(each, services))


def _format(line: LogLine, services: int) -> str:
    return f"{line[0]:<9} | {line[1]}" if services > 1 else line[1]


def _fields(line: LogLine) -> dict[str, str]:
    return {"service": line[0], "line": line[1]}
