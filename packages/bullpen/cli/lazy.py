"""Command groups that import a command's module when the command is used."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


@contextmanager
def keep_imports() -> Iterator[None]:
    """Whatever the block imports, nobody looks through it for garbage.

    Python would, again and again while it loads and once more at the end: a fifth of the time that
    a short command takes, and that a service needs to begin.
    """
    watched = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if watched:
            gc.enable()


COMPLETE_VARIABLE = "_BULLPEN_COMPLETE"
"""The variable by which a shell's script says that it asks, and which shell it is."""

ALIASES = {"ls": "list", "rm": "remove", "delete": "remove", "create": "add"}
"""What others call them, wherever there is such a command."""


class LazyGroup(click.Group):
    """A group that knows where each command is, as `module:name`, and by what else it is called."""

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
        """The names, in order."""
        return sorted({*self._modules, *super().list_commands(ctx)})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of this name, loaded now; None if there is none."""
        place = self._modules.get(cmd_name)
        if place is None:
            other = self._aliases.get(cmd_name)
            found = super().get_command(ctx, cmd_name)
            return found if found or other is None else self.get_command(ctx, other)
        module, name = place.split(":")
        with keep_imports():
            found = getattr(import_module(module), name)
        assert isinstance(found, click.Command)
        return found

    def invoke(self, ctx: click.Context) -> object:
        """The command; with --json what it says of wrong usage is a document as well."""
        try:
            return super().invoke(ctx)
        except click.ClickException as error:
            if ctx.parent is None:
                from bullpen.cli.main import print_usage_error_json

                print_usage_error_json(error)
            raise

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Names and options; what each does only where it is shown, for that loads them all."""
        if not os.environ.get(COMPLETE_VARIABLE, "").startswith("bash"):
            return super().shell_complete(ctx, incomplete)
        from click.shell_completion import CompletionItem  # commands that run do without

        names = [each for each in self.list_commands(ctx) if each.startswith(incomplete)]
        options = click.Command.shell_complete(self, ctx, incomplete)
        return [*(CompletionItem(each) for each in names), *options]


def walk_commands(
    command: click.Command, *path: str
) -> list[tuple[tuple[str, ...], click.Command]]:
    """The command and all below it, each with its place."""
    found = [(path, command)]
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            each = command.get_command(context, name)
            assert each is not None
            found += walk_commands(each, *path, name)
    return found
