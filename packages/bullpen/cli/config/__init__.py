"""bullpen config: the settings, as they are and as they are to be."""

from __future__ import annotations

import os

import click

from bullpen.cli.commands import LazyGroup
from bullpen.cli.problems import print_problems
from bullpen.core.settings import Settings
from bullpen.core.settings_problems import load_lenient

HERE = "bullpen.cli.config"


@click.group(
    cls=LazyGroup,
    places={
        "check": f"{HERE}.check:check",
        "get": f"{HERE}.show:get",
        "list": f"{HERE}.show:list_",
        "path": f"{HERE}.show:path",
        "restore": f"{HERE}.change:restore",
        "set": f"{HERE}.change:set_",
        "unset": f"{HERE}.change:unset",
    },
)
@click.pass_context
def config(context: click.Context) -> None:
    """Look at the settings, change them, and check the file that they are in.

    Each stands in settings.toml in the home; a variable of the environment wins, `max_hops` as
    BULLPEN_MAX_HOPS.

    \b
    Examples:
      bullpen config list --changed
      bullpen config set max_hops 5
      bullpen config check
    """
    assert isinstance(context.obj, Settings)
    if context.invoked_subcommand != "check":  # it says them itself
        print_problems(load_lenient(os.environ)[1])
