"""bullpen team: agents with a leader, a room and limits."""

from __future__ import annotations

import click

from bullpen.cli.commands import LazyGroup

HERE = "bullpen.cli.team"


@click.group(
    cls=LazyGroup,
    places={
        "add": f"{HERE}.add:add",
        "add-member": f"{HERE}.members:add_member",
        "list": f"{HERE}.list:list_",
        "remove": f"{HERE}.remove:remove",
        "remove-member": f"{HERE}.members:remove_member",
        "set": f"{HERE}.set:set_",
        "show": f"{HERE}.show:show",
        "watch": f"{HERE}.watch:watch",
    },
    aliases={
        **dict.fromkeys(("add-agent", "agent-add", "member-add"), "add-member"),
        **dict.fromkeys(("remove-agent", "agent-remove", "member-remove"), "remove-member"),
    },
)
def team() -> None:
    """Add, change, look at, watch and remove teams.

    \b
    Example:
      bullpen team add dev coder reviewer --leader coder
    """
