"""bullpen help and version, which other programs have as commands as well."""

from __future__ import annotations

import click

from bullpen import __version__
from bullpen.cli.command import json_flag
from bullpen.cli.output import echo, print_json


@click.command("help")
@click.argument("words", metavar="[COMMAND]...", nargs=-1)
@click.pass_context
def help_(context: click.Context, words: tuple[str, ...]) -> None:
    """Print the help of a command.

    \b
    Examples:
      bullpen help
      bullpen help agent add
    """
    shown = context.find_root()
    for word in words:
        group = shown.command
        if not isinstance(group, click.Group):
            raise click.UsageError(f"{shown.command_path!r} has no command {word!r}")
        name, command, _ = group.resolve_command(shown, [word])
        assert command is not None
        shown = click.Context(command, info_name=name, parent=shown)
    echo(shown.get_help())


@click.command()
@json_flag
def version(as_json: bool) -> None:
    """Print the version of Bullpen.

    \b
    Example:
      bullpen version
    """
    if as_json:
        print_json({"version": __version__})
    else:
        echo(f"bullpen {__version__}")
