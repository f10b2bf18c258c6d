"""bullpen response: what goes out to people."""

from __future__ import annotations

import click

from bullpen.cli.commands import LazyGroup

HERE = "bullpen.cli.response"

CLI = "cli"
"""The channel of whoever sits here; the owner is told things there unless the settings say else."""


@click.group(
    cls=LazyGroup,
    places={
        "drop": f"{HERE}.again:drop",
        "list": f"{HERE}.list:list_",
        "read": f"{HERE}.read:read",
        "retry": f"{HERE}.again:retry",
        "send": f"{HERE}.send:send",
        "show": f"{HERE}.show:show",
    },
)
def response() -> None:
    """Read what agents wrote to you, look at what goes out, write to people.

    \b
    Examples:
      bullpen response read
      bullpen response list --state dead
      bullpen response send --channel telegram --to 4711 "the report is ready"
    """
