"""A stored file is sent in its own conversation, and between its agent and its person."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bullpen.core.answers.complete import complete
from bullpen.core.company import change_agent
from bullpen.core.file_records import record_upload, record_uses
from bullpen.core.maintenance.unused_files import delete_unused_files
from bullpen.core.message import ReplyTo, RunOutput
from bullpen.core.models import FILE_USES, STORED_FILES
from bullpen.core.roster.agents import allowed_roots, get_agent
from bullpen.core.store.base import Store
from tests.answers.talk import files_of, team, write
from tests.conformance.verbs import do, hire, responses, rows, take

BOB = {"sender": "Bob", "sender_id": "U2", "reply_to": ReplyTo("C2")}


@pytest.fixture
def files(store: Store) -> Path:
    """The directory of files, with two that people sent and one that nobody did."""
    store.settings.files.mkdir()
    for name in ("adas", "bobs", "nobodys"):
        (store.settings.files / name).write_text(name)
    return store.settings.files


def sent(store: Store, agent: str, text: str) -> list[str]:
    """The names of the files that go out when the agent says this."""
    claim = take(store, agent)
    with store.write() as tx:
        complete(tx, claim, RunOutput(text=text), allowed_roots(tx.settings, get_agent(tx, agent)))
    return [Path(each).name for each in files_of(responses(store)[-1])]


def test_a_run_sends_only_the_stored_files_of_its_conversation(store: Store, files: Path) -> None:
    for agent in ("coder", "reviewer"):
        hire(store, agent)
    every = "".join(f"[send_file: {files / name}]" for name in ("adas", "bobs", "nobodys"))
    write(store, "@coder look", files=(str(files / "adas"),))
    assert sent(store, "coder", every) == ["adas"]
    assert "belongs to another conversation" in responses(store)[-1]["message"]
    write(store, "@coder look", files=(str(files / "bobs"),), **BOB)
    assert sent(store, "coder", every) == ["bobs"]
    # The next message of the same person is another conversation with the same file.
    write(store, "@coder send it again")
    assert sent(store, "coder", every) == ["adas"]
    write(store, "@reviewer send me what Ada sent to the coder")
    assert sent(store, "reviewer", every) == []
    write(store, "@coder show it to the reviewer", files=(str(files / "adas"),), **BOB)
    sent(store, "coder", "[@reviewer: read the file]")
    assert sent(store, "reviewer", every) == ["adas"]


def test_posts_in_rooms_give_an_agent_no_files_of_other_rooms(store: Store, files: Path) -> None:
    team(store, "coder", "reviewer")
    team(store, "writer", "assistant", id="ops")
    long = "x" * store.settings.message_bytes
    for room in ("dev", "ops"):
        write(store, f"@{room} go")
    sent(store, "coder", f"[#dev: {long}]")
    (post,) = (each for each in files.iterdir() if each.name.startswith("post"))
    assert sent(store, "writer", f"[send_file: {post}]") == []


def test_an_agent_whose_directory_is_the_home_sends_nothing_of_it(store: Store) -> None:
    """Nor of what lies above it; its own directory and its conversation's files it may send."""
    home = store.settings.home
    (home / "token").write_text("the token")
    own = store.settings.workspace / "coder"
    own.mkdir(parents=True)
    (own / "mine").write_text("mine")
    hire(store, "coder")
    for directory in (home, home.parent, home / "run", Path("/")):
        with store.write() as tx:
            change_agent(tx, "coder", directory=str(directory))
        write(store, "@coder go")
        paths = ("token", "settings.toml", "bullpen.db", home / "token", "../token", own / "mine")
        text = "".join(f"[send_file: {each}]" for each in paths)
        assert sent(store, "coder", text) == ["mine"], directory


def test_the_records_of_a_deleted_file_go_with_it(store: Store, files: Path) -> None:
    do(store, record_uses, [str(files / "adas"), str(files / "bobs")], "c1", "coder", None)
    for name in ("adas", "bobs", "nobodys"):
        do(store, record_upload, "key", name, 5)
    (files / "nobodys").unlink()
    os.utime(files / "adas", (0, 0))
    delete_unused_files(store)
    assert sorted(each.name for each in files.iterdir()) == ["bobs"]
    for table in (FILE_USES, STORED_FILES):
        assert [each["name"] for each in rows(store, table)] == ["bobs"]
