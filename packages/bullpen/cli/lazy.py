"""Command groups that import the module of a command when the command is used."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import click

from bullpen.core.text import visible

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


@contextmanager
def keep_imports() -> Iterator[None]:
    """Keep the garbage collector from scanning what the block imports.

    The scans while modules load, and the one at exit, take a fifth of the time of a short command
    and of a service's start.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if enabled:
            gc.enable()


COMPLETE_VARIABLE = "_BULLPEN_COMPLETE"
"""The environment variable with which a shell's script asks for completions; names the shell."""

ALIASES = {"ls": "list", "rm": "remove", "delete": "remove", "create": "add"}
"""Other names of commands, in every group that has such a command."""


class LazyGroup(click.Group):
    """A group whose commands may live in other modules, as `module:name`, and have aliases."""

    def __init__(
        self,
        *args: Any,  # noqa: ANN401 - as click.Group itself
        modules: Mapping[str, str] = MappingProxyType({}),
        aliases: Mapping[str, str] = MappingProxyType({}),
        **more: Any,  # noqa: ANN401 - as click.Group itself
    ) -> None:
        super().__init__(*args, **more)
        self._modules = modules
        self._aliases = {**ALIASES, **aliases}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands, sorted."""
        return sorted({*self._modules, *super().list_commands(ctx)})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of this name or alias, importing its module; None if there is none."""
        location = self._modules.get(cmd_name)
        if location is None:
            command = super().get_command(ctx, cmd_name)
            alias = self._aliases.get(cmd_name)
            return command if command or alias is None else self.get_command(ctx, alias)
        module, name = location.split(":")
        with keep_imports():
            command = getattr(import_module(module), name)
        assert isinstance(command, click.Command)
        return command

    def invoke(self, ctx: click.Context) -> object:
        """Run the command; with --json an error of usage is printed as a document as well."""
        try:
            return super().invoke(ctx)
        except click.ClickException as error:
            if ctx.parent is None:
                from bullpen.cli.main import print_usage_error_json

                print_usage_error_json(error)
            raise _visible_error(error) from None

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete commands and options; without their help for bash, which would load them all."""
        if not os.environ.get(COMPLETE_VARIABLE, "").startswith("bash"):
            return super().shell_complete(ctx, incomplete)
        from click.shell_completion import CompletionItem  # not needed to run a command

        names = [each for each in self.list_commands(ctx) if each.startswith(incomplete)]
        options = click.Command.shell_complete(self, ctx, incomplete)
        return [*(CompletionItem(each) for each in names), *options]


def _visible_error(error: click.ClickException) -> click.ClickException:
    """The error, which click prints, without control characters."""
    text = error.format_message()
    if visible(text) == text:
        return error
    if isinstance(error, click.UsageError):
        return click.UsageError(visible(text), error.ctx)
    return click.ClickException(visible(text))


def walk_commands(
    command: click.Command, *path: str
) -> list[tuple[tuple[str, ...], click.Command]]:
    """Return a command and all its subcommands, each with its path."""
    commands = [(path, command)]
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            each = command.get_command(context, name)
            assert each is not None
            commands += walk_commands(each, *path, name)
    return commands
