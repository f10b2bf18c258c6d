"""Command groups: commands that are imported when they are used, aliases, and their help."""

from __future__ import annotations

import gc
import os
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import click

from bullpen.cli.errors import UsageError, printed_errors
from bullpen.cli.output import echo
from bullpen.core.text import suggest

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

ALIASES = {
    "list": ("ls",),
    "show": ("get", "info", "describe"),
    "add": ("create", "new"),
    "set": ("edit", "update"),
    "remove": ("rm", "delete"),
    "now": ("run",),
}
"""Other names of commands, in every group that has such a command and none of the other name."""

GROUP_ALIASES: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "bullpen": {"up": ("start",), "down": ("stop",), "status": ("ps",)},
    "config": {"list": ("ls", "show")},
    "db": {"upgrade": ("migrate",), "check": ("status",)},
    "heartbeat": {
        "on": ("enable", "resume", "add"),
        "off": ("disable", "pause", "remove", "rm"),
    },
    "key": {"revoke": ("rm", "remove", "delete")},
    "queue": {"drop": ("purge", "rm"), "resume": ("release",)},
    "schedule": {"resume": ("enable",), "pause": ("disable",)},
}
"""The same by group; what a group says of a command replaces what `ALIASES` says of it."""

OBJECT_COMMANDS = {
    word for name in ("add", "list", "remove", "set", "show") for word in (name, *ALIASES[name])
}
"""Commands of agents, teams and other objects, which people type without the object."""

LABEL_COLUMNS = 18
"""The width of a command's name and aliases in the help of its group."""


class LazyGroup(click.Group):
    """A group whose commands may live in other modules, as `module:name`, and have aliases."""

    def __init__(
        self,
        *args: Any,  # noqa: ANN401 - as click.Group itself
        modules: Mapping[str, str] = MappingProxyType({}),
        sections: Mapping[str, Mapping[str, str]] = MappingProxyType({}),
        aliases: Mapping[str, str] = MappingProxyType({}),
        **more: Any,  # noqa: ANN401 - as click.Group itself
    ) -> None:
        """Make a group; `sections` are headings with modules, `aliases` are not in the help."""
        super().__init__(*args, **more)
        self._sections = {title: tuple(each) for title, each in sections.items()}
        self._modules = {
            **modules,
            **{name: each[name] for each in sections.values() for name in each},
        }
        self._hidden_aliases = aliases

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands, sorted."""
        return sorted({*self._modules, *super().list_commands(ctx)})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of this name or alias, importing its module; None if there is none."""
        if cmd_name not in self._names():
            target = self._targets().get(cmd_name)
            return None if target is None else self.get_command(ctx, target)
        location = self._modules.get(cmd_name)
        if location is None:
            command = super().get_command(ctx, cmd_name)
        else:
            module, name = location.split(":")
            with keep_imports():
                command = getattr(import_module(module), name)
        assert isinstance(command, click.Command)
        if aliases := self.aliases_of(cmd_name):
            command.epilog = f"Aliases: {', '.join(aliases)}"
        return command

    def aliases_of(self, name: str) -> tuple[str, ...]:
        """The other names of a command, as the help shows them."""
        aliases = GROUP_ALIASES.get(self.name or "", {}).get(name, ALIASES.get(name, ()))
        return tuple(each for each in aliases if each not in self._names())

    def _names(self) -> set[str]:
        return {*self._modules, *self.commands}

    def _targets(self) -> dict[str, str]:
        """Each alias with the name of its command."""
        shown = {alias: name for name in self._names() for alias in self.aliases_of(name)}
        return {**self._hidden_aliases, **shown}

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,  # noqa: ANN401 - as click.Group itself
    ) -> click.Context:
        """Parse the group's own options; an error of the whole command is printed here."""
        if parent is not None:
            return super().make_context(info_name, args, parent, **extra)
        with printed_errors():
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> object:
        """Run the command; an error of the whole command is printed here."""
        if ctx.parent is not None:
            return super().invoke(ctx)
        with printed_errors():
            return super().invoke(ctx)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the group's own options; without any argument, print its help and succeed."""
        if not args and self.no_args_is_help and not ctx.resilient_parsing:
            echo(ctx.get_help())
            ctx.exit()
        given = list(args)
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            rest = [each for each in given if each != error.option_name]
            if len(rest) == len(given) or not rest or self.get_command(ctx, rest[0]) is None:
                raise
            command = shlex.join([*ctx.command_path.split(), *rest, error.option_name])
            raise UsageError(
                f"option {error.option_name!r} belongs after the command", f"Run `{command}`."
            ) from None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command's own name, also for an alias, the command and its arguments."""
        command = self.get_command(ctx, args[0])
        if command is not None:
            return command.name, command, args[1:]
        if ctx.resilient_parsing or args[0].startswith("-"):
            return super().resolve_command(ctx, args)
        if ctx.parent is None and args[0] in OBJECT_COMMANDS:
            raise UsageError(
                f"command {args[0]!r} needs an object",
                f"For example `bullpen agent {args[0]}` or `bullpen team {args[0]}`.",
                ctx,
            )
        suggestion = suggest(args[0], [*self._targets(), *self.list_commands(ctx)])
        text = f"command {args[0]!r} does not exist"
        raise click.UsageError(f"{text}. {suggestion}" if suggestion else text, ctx)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands with their aliases and summaries, by section if there are any."""
        labels: dict[str, str] = {}
        summaries: dict[str, str] = {}
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            assert command is not None
            if not command.hidden:
                labels[name] = self._label(name)
                summaries[name] = command.get_short_help_str(formatter.width)
        width = max(map(len, labels.values()), default=0)
        for title, names in (self._sections or {"Commands": tuple(labels)}).items():
            rows = [
                (labels[each].ljust(width), summaries[each]) for each in names if each in labels
            ]
            with formatter.section(title):
                formatter.write_dl(rows)

    def _label(self, name: str) -> str:
        """The command's name with as many of its aliases as there is room for."""
        label = name
        for alias in self.aliases_of(name):
            longer = f"{label}, {alias}"
            if len(longer) > LABEL_COLUMNS:
                break
            label = longer
        return label

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete commands and options; without their help for bash, which would load them all."""
        if not os.environ.get(COMPLETE_VARIABLE, "").startswith("bash"):
            return super().shell_complete(ctx, incomplete)
        from click.shell_completion import CompletionItem  # not needed to run a command

        names = [each for each in self.list_commands(ctx) if each.startswith(incomplete)]
        options = click.Command.shell_complete(self, ctx, incomplete)
        return [*(CompletionItem(each) for each in names), *options]


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
