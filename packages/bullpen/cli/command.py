"""The decorator that makes a function a command: --json, settings, permission and output."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import update_wrapper
from typing import TYPE_CHECKING, Literal

import click

from bullpen.cli.lazy import keep_imports
from bullpen.cli.output import echo, print_json, print_table
from bullpen.core.errors import OutOfReach
from bullpen.core.ids import RUN_VARIABLE, agent_of
from bullpen.core.settings import Settings

if TYPE_CHECKING:
    from bullpen.core.queue.reach import Run
    from bullpen.core.store.transaction import Transaction

Access = Literal["read", "write"]

MAX_AGENT_CHARS = 32


@dataclass(frozen=True, slots=True)
class Result:
    """What a command prints: one JSON document with --json, else lines or a table.

    An iterator is used only if it is what gets printed, so a generator costs nothing otherwise.
    """

    document: object
    """What --json prints; dataclasses, and iterators of them, are converted."""
    lines: Iterable[str] | str = ()
    """What a person reads, a line each; one text is one line."""
    rows: Iterable[Sequence[str]] | None = None
    """A table that follows the lines; its first row is the heading."""
    empty: str = ""
    """What is printed instead of a table without rows."""
    show: Callable[[], object] | None = None
    """Prints it for a person, where lines and one table are not enough."""
    notes: Iterable[str] = ()
    """Lines for standard error, with --json as well."""
    hints: Iterable[str] = ()
    """Lines for standard error, for a person only."""
    status: int = 0
    """The exit status."""
    ids: Iterable[str] = ()
    """What --quiet prints, a line each; for lists."""

    def print(self, as_json: bool, *, quiet: bool = False) -> None:
        """Print it, and exit with its status unless that is 0."""
        if as_json:
            print_json(self.document)
        elif quiet:
            for each in self.ids:
                echo(each)
        else:
            for line in (self.lines,) if isinstance(self.lines, str) else self.lines:
                echo(line)
            if self.rows is not None:
                print_table(list(self.rows), self.empty)
            if self.show is not None:
                self.show()
        print_notes(self.notes)
        if not as_json:
            print_notes(self.hints)
        if self.status:
            sys.exit(self.status)


def print_notes(lines: Iterable[str]) -> None:
    """Print lines to standard error."""
    for line in lines:
        echo(line, err=True)


JSON_HELP = "Print one JSON document."

json_flag = click.option("--json", "as_json", is_flag=True, help=JSON_HELP)
"""The --json of every command; a group that is a command as well takes it itself."""


def _list_options() -> list[click.Option]:
    return [
        click.Option(["-q", "--quiet"], is_flag=True, help="Print only the ids, one per line."),
        click.Option(["-w", "--watch"], is_flag=True, help="Refresh every 2 seconds until Ctrl-C."),
    ]


CommandFunction = Callable[..., Result | None]
CommandDecorator = Callable[[CommandFunction], click.Command]


def command(
    group: click.Group | None = None,
    name: str | None = None,
    *,
    people_only: str = "",
    in_runs: bool = False,
    tx: Access | None = None,
    listing: bool = False,
    ignore_unknown_options: bool = False,
    json_help: str = JSON_HELP,
) -> CommandDecorator:
    """Make a function a command of the group, with --json, and print the `Result` it returns.

    Its first argument is the settings or, with `tx`, a transaction that ends before the result is
    printed. Only a command with `in_runs` may be used in a run of an agent; with `people_only`,
    which completes "may not …", its error says what is refused. A `listing` also has --quiet, which
    prints the result's ids, and --watch. The name is the function's, without the underscore that
    keeps `list_` from shadowing a builtin.
    """

    def decorate(function: CommandFunction) -> click.Command:
        def callback(as_json: bool, **options: object) -> None:
            quiet = bool(listing and options.pop("quiet"))
            watched = bool(listing and options.pop("watch"))
            if as_json and (quiet or watched):
                option = "--quiet" if quiet else "--watch"
                raise click.UsageError(f"give --json or {option}, not both")

            def run_once() -> None:
                settings = _settings_for(people_only, in_runs=in_runs)
                result = _call(function, settings, tx, options)
                if result is not None:
                    result.print(as_json, quiet=quiet)

            if watched:
                from bullpen.cli.watch import watch

                watch(run_once)
            else:
                run_once()

        made = click.command(
            name or function.__name__.rstrip("_").replace("_", "-"),
            context_settings={"ignore_unknown_options": True} if ignore_unknown_options else None,
        )(update_wrapper(callback, function))
        made.params += _list_options() if listing else []
        made.params.append(click.Option(["--json", "as_json"], is_flag=True, help=json_help))
        if group is not None:
            group.add_command(made)
        return made

    return decorate


def _settings_for(people_only: str, *, in_runs: bool) -> Settings:
    """Return the settings, if the caller may use the command."""
    context = click.get_current_context()
    settings = context.find_object(Settings)
    assert settings is not None
    if not in_runs:
        require_person(people_only or f"use `{context.command_path}`")
    elif RUN_VARIABLE in os.environ:
        from bullpen.core.queue.reach import find_run  # a person's commands start without

        with read_transaction(settings) as reading:
            context.meta[RUN_VARIABLE] = find_run(reading, os.environ[RUN_VARIABLE])
    return settings


def _call(
    function: CommandFunction, settings: Settings, tx: Access | None, options: Mapping[str, object]
) -> Result | None:
    if tx is None:
        return function(settings, **options)
    open_transaction = write_transaction if tx == "write" else read_transaction
    with open_transaction(settings) as transaction:
        return function(transaction, **options)


def json_requested() -> bool:
    """Return whether the running command was given --json."""
    return bool(click.get_current_context().params.get("as_json"))


def acting_run() -> Run | None:
    """Return the run in which this command is executed, or None for a person."""
    found: Run | None = click.get_current_context().meta.get(RUN_VARIABLE)
    if found is None:
        require_person("use this command")
    return found


def acting_agent() -> str | None:
    """Return the agent in whose run this command is executed, or None for a person."""
    run = acting_run()
    return None if run is None else run.agent


def require_person(action: str) -> None:
    """Refuse a run, whether its token is valid or not; `action` completes "may not …"."""
    token = os.environ.get(RUN_VARIABLE)
    if token is not None:
        agent = agent_of(token)[:MAX_AGENT_CHARS] or "unknown"
        raise OutOfReach(f"@{agent} may not {action}", hint="Ask a person to do it.")


@contextmanager
def write_transaction(settings: Settings) -> Iterator[Transaction]:
    """Open the store for one transaction that writes."""
    with keep_imports():
        from bullpen.core.store.open import open_store  # see read_transaction

    with closing(open_store(settings)) as store, store.write() as tx:
        yield tx


@contextmanager
def read_transaction(settings: Settings) -> Iterator[Transaction]:
    """Open the store for one transaction that only reads."""
    with keep_imports():  # the store is slow to load, and reports are read without it
        from bullpen.core.store.open import open_store

    with closing(open_store(settings)) as store, store.read() as tx:
        yield tx
