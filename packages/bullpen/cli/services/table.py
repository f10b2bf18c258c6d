"""The services as a person sees them."""

from __future__ import annotations

from collections.abc import Sequence

import click

from bullpen.cli.output import print_table
from bullpen.cli.span import format_duration
from bullpen.core.clock import SECOND
from bullpen.core.errors import UnknownService
from bullpen.core.log_tail import read_log_tail
from bullpen.core.services.supervisor import DOWN_STATES, Service
from bullpen.core.settings import Settings

SERVICES_HEADING = ("SERVICE", "STATE", "PID", "FOR")


def print_services(services: Sequence[Service]) -> None:
    """A line each."""
    rows = [
        (
            each["name"],
            each["state"],
            str(each["pid"]) if each["pid"] else "",
            format_duration(each["seconds"] * SECOND) if each["pid"] else "",
        )
        for each in services
    ]
    print_table([SERVICES_HEADING, *rows], "There are no services.")


def print_last_lines(settings: Settings, services: Sequence[Service]) -> None:
    """What those said last that do not run."""
    for each in services:
        if each["state"] in DOWN_STATES:
            _say_why(settings, each)


def _say_why(settings: Settings, service: Service) -> None:
    name = service["name"]
    words = last_words(settings, name, 1)
    said = f" Its last words: {words[0]}" if words else ""
    click.echo(f"{name} does not run.{said}\n  Next: bullpen logs {name}; bullpen restart {name}")


def last_words(settings: Settings, name: str, count: int) -> list[str]:
    """The last lines of a service's log; none where it has none."""
    try:
        return read_log_tail(settings, name, count, settings.secrets())
    except UnknownService:
        return []
