"""bullpen queue: what waits, runs, is held and is dead, and what a person does about it."""

from __future__ import annotations

import click

from bullpen.cli.commands import LazyGroup

HERE = "bullpen.cli.queue"


@click.group(
    cls=LazyGroup,
    places={
        "agents": f"{HERE}.agents:agents",
        "cancel": f"{HERE}.cancel:cancel",
        "causes": f"{HERE}.causes:causes",
        "dead": f"{HERE}.stuck:dead",
        "drain": f"{HERE}.lanes:drain",
        "drop": f"{HERE}.again:drop",
        "held": f"{HERE}.stuck:held",
        "let-go": f"{HERE}.let_go:let_go",
        "list": f"{HERE}.list:list_",
        "pause": f"{HERE}.lanes:pause",
        "resume": f"{HERE}.lanes:resume",
        "retry": f"{HERE}.again:retry",
        "show": f"{HERE}.show:show",
        "status": f"{HERE}.status:status",
    },
)
def queue() -> None:
    """Look at the queue, and take messages out of it or put them back.

    \b
    Examples:
      bullpen queue status
      bullpen queue dead
      bullpen queue retry --agent coder --error timeout --since 2h
    """
