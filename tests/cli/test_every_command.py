"""What every command promises: a document, no traceback, no colour in a pipe, its exit status.

A new command has no place in `entries.py` yet, and fails here until it has one.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click
import pytest
from pydantic import TypeAdapter

from bullpen.cli.lazy import walk_commands
from bullpen.cli.main import cli
from tests.cli.command import Bullpen, Result
from tests.cli.conftest import remove, stop_all
from tests.cli.entries import (
    ENTRIES,
    OPEN_TO_AGENTS,
    SHOWN_ELSEWHERE,
    WITH_SERVICES,
    WITHOUT_JSON,
    Entry,
)
from tests.cli.prepared import Names, furnish
from tests.cli.schemas.base import Failure
from tests.ports import free_port
from tests.stores import Stores

LEAVES = {
    " ".join(path): command
    for path, command in walk_commands(cli)
    if not isinstance(command, click.Group) or command.invoke_without_command
}
KNOWN = sorted(name for name in LEAVES if name in ENTRIES)
WITH_DATABASE = [name for name in KNOWN if not ENTRIES[name].storeless]
ESCAPE = "\x1b"


@dataclass(frozen=True, slots=True)
class Furnished:
    """A home to be copied, and the ids in it."""

    home: Path
    names: Names


def new_home() -> Path:
    """An empty directory whose path is short enough for sockets."""
    return Path(tempfile.mkdtemp(prefix="bp-", dir="/tmp"))


@pytest.fixture(scope="module")
def furnished(stores: Stores) -> Iterator[Furnished]:
    """The home with something of everything, once for each process that tests."""
    home = new_home()
    shutil.copy(stores.sqlite_template(), home / "bullpen.db")
    yield Furnished(home, furnish(Bullpen(home)))
    remove(home)


@pytest.fixture
def office(furnished: Furnished) -> Iterator[Bullpen]:
    """A copy of it."""
    home = new_home()
    shutil.copytree(furnished.home, home, dirs_exist_ok=True)
    yield Bullpen(home)
    remove(home)


def words(name: str, furnished: Furnished, office: Bullpen) -> list[str]:
    """The command and the arguments with which it succeeds."""
    return [*name.split(), *furnished.names.fill(ENTRIES[name].arguments, office.home)]


def check_document(entry: Entry, result: Result) -> None:
    """One document and nothing else, of this schema."""
    assert result.status == entry.status, result
    assert result.out.count("\n") == 1, result.out
    TypeAdapter(entry.schema).validate_json(result.out)


def test_every_command_is_known_here_and_no_other() -> None:
    assert set(LEAVES) == {*ENTRIES, *WITH_SERVICES, *SHOWN_ELSEWHERE, *WITHOUT_JSON}


def test_every_command_can_print_a_document() -> None:
    without = {
        name
        for name, command in LEAVES.items()
        if not any("--json" in each.opts for each in command.params)
    }
    assert without == set(WITHOUT_JSON)


@pytest.mark.parametrize("name", KNOWN)
def test_it_prints_one_document_of_its_schema(
    furnished: Furnished, office: Bullpen, name: str
) -> None:
    entry = ENTRIES[name]
    check_document(entry, office(*words(name, furnished, office), "--json", stdin=entry.stdin))


@pytest.mark.parametrize("name", [each for each in KNOWN if not ENTRIES[each].screen])
def test_in_a_pipe_it_prints_lines_without_colour(
    furnished: Furnished, office: Bullpen, name: str
) -> None:
    entry = ENTRIES[name]
    result = office(*words(name, furnished, office), stdin=entry.stdin)
    assert result.status == entry.status, result
    assert ESCAPE not in result.out + result.err
    assert result.out.strip(), "it says nothing"
    assert result.out[0] not in "{["


@pytest.mark.parametrize("name", KNOWN)
def test_nobody_has_to_read_what_it_prints(
    furnished: Furnished, office: Bullpen, name: str
) -> None:
    entry = ENTRIES[name]
    more = ("--json",) if entry.screen else ()
    result = office.unread(*words(name, furnished, office), *more, stdin=entry.stdin)
    assert result.status == 1
    assert "Exception ignored" not in result.err
    assert "Broken pipe" not in result.err


@pytest.mark.parametrize("name", sorted(LEAVES))
def test_an_option_that_it_does_not_have_is_a_mistake_of_usage(
    furnished: Furnished, name: str
) -> None:
    result = Bullpen(furnished.home)(*name.split(), "--no-such-option", "--json")
    assert result.status == 2
    failed = TypeAdapter(Failure).validate_json(result.out).error
    assert failed.hint
    assert failed.message in result.err


@pytest.mark.parametrize("name", WITH_DATABASE)
def test_what_it_cannot_do_is_one_document_too(
    furnished: Furnished, office: Bullpen, name: str
) -> None:
    for file in office.home.glob("bullpen.db*"):
        file.unlink()
    (office.home / "bullpen.db").write_bytes(b"this is no database" * 1000)
    entry = ENTRIES[name]
    result = office(*words(name, furnished, office), "--json", stdin=entry.stdin)
    assert result.status == 1, result
    failed = TypeAdapter(Failure).validate_json(result.out).error
    assert failed.code == "store_corrupt"
    assert failed.message in result.err
    assert failed.hint in result.err


def test_in_its_run_an_agent_may_use_these_commands_and_no_others(
    furnished: Furnished, office: Bullpen
) -> None:
    permitted = set()
    for name in [*KNOWN, "up", "restart", "down"]:
        arguments = words(name, furnished, office) if name in ENTRIES else [name]
        stdin = ENTRIES[name].stdin if name in ENTRIES else ""
        result = office(*arguments, "--json", stdin=stdin, BULLPEN_RUN="coder.0")
        if "@coder may not" not in result.err:
            permitted.add(name)
    assert permitted == OPEN_TO_AGENTS


def test_those_that_need_services_print_documents_too(office: Bullpen) -> None:
    environ = {"BULLPEN_API_PORT": str(free_port()), "BULLPEN_GRACE_SECONDS": "1"}
    try:
        for name, entry in WITH_SERVICES.items():
            arguments = entry.arguments.format(home=office.home).split()
            args = (*name.split(), *arguments, "--json")
            check_document(entry, office(*args, **environ))
    finally:
        stop_all(office.home)
