"""bullpen completion: what makes a shell complete commands, options and the ids that there are."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from bullpen.cli.commands import COMPLETE_VARIABLE

SHELLS = click.Choice(["bash", "zsh", "fish"])
PROGRAM = "bullpen"


@click.command()
@click.argument("shell", type=SHELLS)
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the script with which SHELL completes commands, options, agents, teams and other ids.

    \b
    Examples, for bash, once, and again after an upgrade:
      bullpen completion bash > ~/.bullpen-completion.bash
      echo '. ~/.bullpen-completion.bash' >> ~/.bashrc
    For zsh, into a directory that $fpath names:
      bullpen completion zsh > ~/.zfunc/_bullpen
    For fish:
      bullpen completion fish > ~/.config/fish/completions/bullpen.fish
    """
    kind = get_completion_class(shell)
    assert kind is not None
    found = kind(context.find_root().command, {}, PROGRAM, COMPLETE_VARIABLE)
    # Not by source(): that of bash starts a bash, to see how old it is.
    click.echo(found.source_template % found.source_vars())
