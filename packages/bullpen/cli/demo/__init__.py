"""bullpen demo: Bullpen shown at work, apart from everything that is yours."""

from __future__ import annotations

import click

from bullpen.cli.commands import LazyGroup


@click.group(cls=LazyGroup, places={"team": "bullpen.cli.demo.team:team"})
def demo() -> None:
    """Show Bullpen at work, in a home of its own.

    \b
    Example:
      bullpen demo team
    """
