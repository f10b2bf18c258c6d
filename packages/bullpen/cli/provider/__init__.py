"""bullpen provider: what answers for agents, and services of your own."""

from __future__ import annotations

import click

from bullpen.cli.commands import LazyGroup

HERE = "bullpen.cli.provider"


@click.group(
    cls=LazyGroup,
    places={
        "add": f"{HERE}.add:add",
        "list": f"{HERE}.list:list_",
        "remove": f"{HERE}.remove:remove",
        "set": f"{HERE}.set:set_",
        "show": f"{HERE}.list:show",
        "use": f"{HERE}.use:use",
    },
)
def provider() -> None:
    """See what can answer, let agents use it, and add services of your own.

    \b
    Example:
      bullpen provider list
    """
