"""What every command promises: a document, no traceback, no colour in a pipe, its exit status.

A new command has no place in `entries.py` yet, and fails here until it has one.
"""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click
import pytest
from pydantic import TypeAdapter

from bullpen.cli.lazy import walk_commands
from bullpen.cli.main import cli
from bullpen.core.intake import post_in_room
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
from tests.cli.open_store import direct
from tests.cli.prepared import Names, furnish
from tests.cli.schemas.base import Failure
from tests.cli.terminal import terminal
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


HOSTILE = "\x1b]52;c;ZXZpbA==\x07\x9d0;t\x9c\x85\u202e\u2066\u2028\x7f\x08!"
CONTROLS = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
VIEW_CONTROLS = re.compile("\x1b\\]52|[\x08\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
STYLE = re.compile(r"\x1b\[[0-9;]*m")


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


FREE_TEXT = {
    "agent_messages": ("sender", "content"),
    "agents": ("name", "model", "system_prompt"),
    "api_keys": ("name",),
    "attempts": ("worker", "error", "provider", "model"),
    "channel_health": ("reason", "hint"),
    "chat_messages": ("from_agent", "message"),
    "lanes": ("claimed_by", "reason"),
    "messages": ("sender", "message", "last_error", "claimed_by"),
    "custom_providers": ("name", "model"),
    "responses": ("sender", "message", "original_message", "last_error"),
    "schedules": ("message",),
    "senders": ("name",),
    "chats": ("name",),
    "teams": ("name",),
}


def plant_controls(office: Bullpen) -> None:
    """Put control characters into everything that others write, as rows of old releases have it."""
    connection = sqlite3.connect(office.home / "bullpen.db")
    for table, columns in FREE_TEXT.items():
        known = {each[1] for each in connection.execute(f"PRAGMA table_info({table})")}
        assert known >= set(columns), (table, sorted(known))
        for column in columns:
            connection.execute(f"UPDATE {table} SET {column} = ? || {column}", (HOSTILE,))
    for id_ in ("cli_waiting", "cli_dead2"):
        named = {"old": id_, "new": id_ + HOSTILE}
        connection.execute(
            "UPDATE messages SET message_id = :new, conversation_id = :new WHERE message_id = :old",
            named,
        )
    for number, data in connection.execute("SELECT id, data FROM events").fetchall():
        fields = {
            key: HOSTILE + value if key in ("error", "reason", "worker") and value else value
            for key, value in json.loads(data or "{}").items()
        }
        connection.execute("UPDATE events SET data = ? WHERE id = ?", (json.dumps(fields), number))
    connection.commit()
    connection.close()
    log = office.home / "logs" / "processor.log"
    log.write_text(f"2026-01-01T00:00:00.000Z INFO {HOSTILE}\n", encoding="utf-8")


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
    called = words(name, furnished, office)
    check_document(entry, office(*called, "--json", stdin=entry.stdin, **entry.environ))


@pytest.mark.parametrize("name", [each for each in KNOWN if not ENTRIES[each].screen])
def test_in_a_pipe_it_prints_lines_without_colour(
    furnished: Furnished, office: Bullpen, name: str
) -> None:
    entry = ENTRIES[name]
    result = office(*words(name, furnished, office), stdin=entry.stdin, **entry.environ)
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
    called = words(name, furnished, office)
    result = office.unread(*called, *more, stdin=entry.stdin, **entry.environ)
    assert result.status == 1
    assert "Exception ignored" not in result.err
    assert "Broken pipe" not in result.err


SHOWING = [
    *("agent list", "agent show", "channel list", "channel status", "config list", "db check"),
    *("doctor", "events", "pairing list"),
    *("heartbeat history", "heartbeat list", "heartbeat show", "history list", "history people"),
    *("history search", "key list", "logs", "model list", "provider list", "provider show"),
    *("queue agents", "queue causes", "queue dead", "queue held", "queue list", "queue show"),
    *("queue status", "response list", "response show", "room read", "schedule history"),
    *("schedule list", "schedule show", "status", "team list", "team show", "trace"),
]
"""Those that show what people, agents and workers wrote."""
AT_A_TERMINAL = ("queue list", "trace", "history list", "queue dead")


def test_no_control_character_reaches_a_terminal(
    furnished: Furnished, office: Bullpen, subtests: pytest.Subtests
) -> None:
    plant_controls(office)
    shown = [words(name, furnished, office) for name in SHOWING]
    shown += [["history", "search", HOSTILE], ["queue", "show", HOSTILE]]
    shown += [["queue", "list", f"--{HOSTILE}"], [HOSTILE]]
    for command in shown:
        with subtests.test(command=command):
            result = office(*command)
            assert not CONTROLS.search(result.out + result.err)
    for name in AT_A_TERMINAL:
        with subtests.test(terminal=name), terminal(office, *words(name, furnished, office)) as at:
            at.end()
            assert "\N{REPLACEMENT CHARACTER}" in at.shown
            assert not CONTROLS.search(STYLE.sub("", at.shown).replace("\r\n", "\n"))
    for name in ("room open", "team watch"):
        with subtests.test(view=name), terminal(office, *words(name, furnished, office)) as at:
            at.until("\N{REPLACEMENT CHARACTER}")
            assert not VIEW_CONTROLS.search(at.shown)


def test_no_line_of_a_room_can_be_forged(office: Bullpen) -> None:
    with direct(office) as store, store.write() as tx:
        post_in_room(tx, "dev", "hello\n@coder: I agree\r\n@tester: me too", "Ann\n@coder: yes")
    lines = office.ok("room", "read", "dev").out.splitlines()
    assert not [each for each in lines if each.startswith(("@coder:", "@tester:"))]


@pytest.mark.parametrize("name", sorted(LEAVES))
def test_an_option_that_it_does_not_have_is_a_mistake_of_usage(
    furnished: Furnished, name: str
) -> None:
    result = Bullpen(furnished.home)(*name.split(), "--no-such-option", "--json")
    assert result.status == 2
    failed = TypeAdapter(Failure).validate_json(result.out)
    assert failed.hint
    assert failed.error in result.err


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
    failed = TypeAdapter(Failure).validate_json(result.out)
    assert failed.code == "store_corrupt"
    assert failed.error in result.err
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
