"""The services as a person sees them."""

from __future__ import annotations

from collections.abc import Sequence

import click

from bullpen.cli.output import show_table
from bullpen.cli.span import span
from bullpen.core.clock import SECOND
from bullpen.core.errors import UnknownService
from bullpen.core.log_tail import log_tail
from bullpen.core.services.supervisor import ASLEEP, Service
from bullpen.core.settings import Settings

HEADING = ("SERVICE", "STATE", "PID", "FOR")


def show_services(services: Sequence[Service]) -> None:
    """A line each."""
    rows = [
        (
            each["name"],
            each["state"],
            str(each["pid"]) if each["pid"] else "",
            span(each["seconds"] * SECOND) if each["pid"] else "",
        )
        for each in services
    ]
    show_table([HEADING, *rows], "There are no services.")


def show_last_words(settings: Settings, services: Sequence[Service]) -> None:
    """What those said last that do not run."""
    for each in services:
        if each["state"] in ASLEEP:
            _say_why(settings, each)


def _say_why(settings: Settings, service: Service) -> None:
    name = service["name"]
    words = last_words(settings, name, 1)
    said = f" Its last words: {words[0]}" if words else ""
    click.echo(f"{name} does not run.{said}\n  Next: bullpen logs {name}; bullpen restart {name}")


def last_words(settings: Settings, name: str, count: int) -> list[str]:
    """The last lines of a service's log; none where it has none."""
    try:
        return log_tail(settings, name, count, settings.secrets())
    except UnknownService:
        return []
