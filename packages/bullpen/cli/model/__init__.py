"""bullpen model: which model answers for which agent."""

from __future__ import annotations

import click

from bullpen.cli.commands import LazyGroup

HERE = "bullpen.cli.model"


@click.group(cls=LazyGroup, places={"list": f"{HERE}.list:list_", "set": f"{HERE}.set:set_"})
def model() -> None:
    """See which model answers for which agent, and change it for one or many.

    \b
    Example:
      bullpen model set opus --agent coder
    """
