"""bullpen agent: who answers, with what, and how its lane behaves."""

from __future__ import annotations

import click

from bullpen.cli.commands import LazyGroup

HERE = "bullpen.cli.agent"


@click.group(
    cls=LazyGroup,
    places={
        "add": f"{HERE}.add:add",
        "lane": f"{HERE}.lane:lane",
        "list": f"{HERE}.list:list_",
        "pause": "bullpen.cli.queue.lanes:pause",
        "provider": f"{HERE}.provider:provider",
        "remove": f"{HERE}.remove:remove",
        "reset": f"{HERE}.reset:reset",
        "resume": "bullpen.cli.queue.lanes:resume",
        "set": f"{HERE}.add:set_",
        "show": f"{HERE}.show:show",
    },
)
def agent() -> None:
    """Add, change, look at and remove agents.

    \b
    Example:
      bullpen agent add coder --provider claude --model sonnet
    """
