"""What the command decorator promises of every command, run in the process of the test."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import click
import pytest
from click.testing import CliRunner
from click.testing import Result as Ended

from bullpen.cli.command import CommandDecorator, Result, command, json_requested
from bullpen.core.company import add_agent
from bullpen.core.errors import OutOfReach
from bullpen.core.roster.agents import Agent, list_agents
from bullpen.core.settings import Settings
from bullpen.core.store.transaction import Transaction
from tests.cli.command import Bullpen


@dataclass(frozen=True)
class Pair:
    """A document."""

    left: str
    right: int


def run(
    bullpen: Bullpen,
    function: Callable[..., Result | None],
    *arguments: str,
    decorator: CommandDecorator | None = None,
) -> Ended:
    """Run a function as a command, with the settings of this home."""
    made = (decorator or command())(function)
    settings = Settings.load(bullpen.environment())
    return CliRunner().invoke(made, arguments, obj=settings)


def example(settings: Settings) -> Result:
    """Show a pair."""
    return Result(
        (Pair(each, 1) for each in "ab"),
        ["first", "second"],
        rows=[("NAME", "COUNT"), ("a", "1")],
        hints=["a hint"],
        notes=["a note"],
        status=3,
    )


def test_a_person_reads_lines_a_table_notes_and_hints(bullpen: Bullpen) -> None:
    ended = run(bullpen, example)
    assert ended.stdout == "first\nsecond\nNAME  COUNT\na     1\n"
    assert ended.stderr == "a note\na hint\n"
    assert ended.exit_code == 3


def test_json_is_one_document_and_the_notes_stay(bullpen: Bullpen) -> None:
    ended = run(bullpen, example, "--json")
    assert json.loads(ended.stdout) == [{"left": "a", "right": 1}, {"left": "b", "right": 1}]
    assert ended.stderr == "a note\n"
    assert ended.exit_code == 3


def test_one_text_is_one_line_and_a_table_without_rows_says_what_to_do(bullpen: Bullpen) -> None:
    def empty(settings: Settings) -> Result:
        return Result([], "a line", rows=[("NAME",)], empty="There is none.")

    assert run(bullpen, empty).stdout == "a line\nThere is none.\n"


def test_an_iterator_that_is_not_printed_is_not_used(bullpen: Bullpen) -> None:
    used = []

    def recorded() -> Iterator[str]:
        used.append("an iterator")
        yield ""

    def lines(settings: Settings) -> Result:
        return Result({}, recorded())

    def document(settings: Settings) -> Result:
        return Result(recorded(), "a line")

    assert run(bullpen, lines, "--json").stdout == "{}\n"
    assert run(bullpen, document).stdout == "a line\n"
    assert used == []


def test_a_command_that_returns_nothing_prints_nothing_and_knows_of_json(bullpen: Bullpen) -> None:
    requested = []

    def silent(settings: Settings) -> None:
        requested.append(json_requested())

    assert (run(bullpen, silent).output, run(bullpen, silent, "--json").output) == ("", "")
    assert requested == [False, True]


def test_the_name_is_the_functions_without_its_last_underscore() -> None:
    @click.group()
    def group() -> None:
        """A group."""

    @command(group)
    def list_(settings: Settings) -> None:
        """List."""

    @command(group)
    def add_member(settings: Settings) -> None:
        """Add."""

    @command(group, "open")
    def other(settings: Settings) -> None:
        """Open."""

    assert sorted(group.commands) == ["add-member", "list", "open"]
    assert [each.name for each in list_.params] == ["as_json"]


def test_an_agent_is_refused_before_the_command_does_anything(
    bullpen: Bullpen, monkeypatch: pytest.MonkeyPatch
) -> None:
    def add(tx: Transaction) -> Result:
        raise AssertionError("it ran")

    monkeypatch.setenv("BULLPEN_RUN", "coder.0")
    (bullpen.home / "bullpen.db").write_bytes(b"this is no database" * 1000)
    decorator = command(people_only="take on agents", tx="write")
    error = run(bullpen, add, decorator=decorator).exception
    assert isinstance(error, OutOfReach)
    assert str(error) == "@coder may not take on agents"


def test_what_is_printed_is_committed(bullpen: Bullpen) -> None:
    def names(tx: Transaction) -> Result:
        return Result([each.id for each in list_agents(tx)])

    def add(tx: Transaction) -> Result:
        add_agent(tx, Agent(id="coder"))
        return Result(
            run(bullpen, names, "--json", decorator=command(tx="read")).stdout for _ in "1"
        )

    ended = run(bullpen, add, "--json", decorator=command(tx="write"))
    assert json.loads(ended.stdout) == ['["coder"]\n']


def test_a_transaction_to_read_writes_nothing(bullpen: Bullpen) -> None:
    def add(tx: Transaction) -> Result:
        add_agent(tx, Agent(id="coder"))
        return Result({})

    assert run(bullpen, add, decorator=command(tx="read")).exception is not None
    assert bullpen.ok("agent", "list", "--json").json == []
