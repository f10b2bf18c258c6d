"""SQLite on disks that are full, closed, damaged or not there: all or nothing, and it says so."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import psutil
import pytest

from bullpen.core.errors import StoreCorrupt, StoreError, StoreFull, StoreReadOnly, StoreUnavailable
from bullpen.core.message import Answer, Outcome
from bullpen.core.queue.finish import finish
from bullpen.core.settings import Settings
from bullpen.core.store.base import Store
from bullpen.core.store.open import open_store
from bullpen.core.store.sqlite import SqliteStore
from tests.crash.account import Account, check_integrity, dump
from tests.crash.children import Children, lines
from tests.crash.disk import limited, put, put_until_refused, unprivileged
from tests.crash.processors import ROOT
from tests.crash.transactions import CUTS
from tests.crash.work import work_off

Told = tuple[str | None, list[str] | None, list[str]]


@pytest.fixture
def kind() -> str:
    """Files are SQLite's."""
    return "sqlite"


@pytest.fixture
def store(settings: Settings) -> Iterator[SqliteStore]:
    """The store at the present time."""
    opened = open_store(settings)
    assert isinstance(opened, SqliteStore)
    yield opened
    opened.close()


def _pages(store: SqliteStore, most: int) -> None:
    """Let the file have so many pages more than it has."""
    writer = store.writer()
    count = writer.execute("PRAGMA page_count").fetchone()[0]
    writer.execute(f"PRAGMA max_page_count = {count + most}")


def _ids(store: Store) -> list[str]:
    return sorted(Account(store).messages)


def _told(path: Path) -> list[Told]:
    return [json.loads(line) for line in lines(path)]


def _says(error: StoreError, kind: type[StoreError], path: Path) -> None:
    """It is of this kind, names the file, and says what to do."""
    assert type(error) is kind
    assert error.code == kind.code
    assert error.hint
    assert str(path) in str(error)


def test_a_full_disk_refuses_a_message_whole_and_takes_it_when_there_is_room(
    store: SqliteStore,
) -> None:
    _pages(store, 50)
    taken, error = put_until_refused(store)
    assert isinstance(error, StoreError)
    _says(error, StoreFull, store.path)
    assert taken
    assert _ids(store) == sorted(taken)
    _pages(store, 10_000)
    taken.append(put(store, len(taken)))
    assert _ids(store) == sorted(taken)
    check_integrity(store)


def test_a_disk_that_fills_up_within_a_finish_leaves_the_claim_as_it_was(
    store: SqliteStore,
) -> None:
    """With room for nothing, for one page, for two, until there is enough."""
    token = CUTS["finish"].prepare(store)
    before = dump(store)
    outcome = Outcome(answers=tuple(Answer(message="x" * 9_000) for _ in range(5)))
    for room in itertools.count():
        _pages(store, room)
        try:
            with store.write() as tx:
                finish(tx, token, outcome)
        except StoreError as error:
            _says(error, StoreFull, store.path)
            assert dump(store) == before
        else:
            break
    assert room > 10
    assert len(Account(store).responses["cut-0"]) == 5
    check_integrity(store)


def test_a_file_that_may_not_grow_refuses_a_message_whole(
    settings: Settings, children: Children, tmp_path: Path
) -> None:
    """As with a quota or `ulimit -f`: the write itself fails, in the middle of the log."""
    report = tmp_path / "report"
    assert children.run(limited, settings, report, 1_000_000) == 0
    (kind, words, taken), (_, _, again) = _told(report)
    assert kind in ("StoreFull", "StoreUnavailable")
    assert words is not None
    assert all(words)
    with closing(open_store(settings)) as store:
        assert _ids(store) == sorted([*taken, *again])
        assert again
        assert work_off(store) == len(taken) + 1
        assert {row["status"] for row in Account(store).messages.values()} == {"completed"}
        check_integrity(store)


NAMESPACE = ["unshare", "--map-root-user", "--mount", "sh", "-c"]
MOUNTED = 'mount -t tmpfs -o size=2m,mode=700 none "$1" && shift && exec "$@"'
FILL = """
import sys
from pathlib import Path
from bullpen.core.settings import Settings
from tests.crash import disk
home, template, report = map(Path, sys.argv[1:4])
(home / "bullpen.db").write_bytes(template.read_bytes())
if sys.argv[4] == "before":
    disk.full_before_opening(Settings(home=home), report)
else:
    (home / "ballast").write_bytes(bytes(200_000))
    disk.filled(Settings(home=home), report, home / "ballast")
"""


def test_a_file_system_without_a_byte_left_refuses_a_message_whole(
    settings: Settings, tmp_path: Path
) -> None:
    """ENOSPC itself, on a small file system of the test's own."""
    (kind, words, taken), (_, _, again) = fill_small_disk(settings, tmp_path, "while open")
    assert kind == "StoreFull"
    assert words is not None
    assert all(words)
    assert len(taken) > 5
    assert len(again) == 1


def test_a_database_on_a_full_file_system_is_reported_as_a_full_disk(
    settings: Settings, tmp_path: Path
) -> None:
    """SQLite then cannot even create the shared memory beside the file, an I/O error."""
    ((kind, words, _),) = fill_small_disk(settings, tmp_path, "before")
    assert kind == "StoreFull"
    assert words is not None
    assert "disk" in words[1]


def fill_small_disk(settings: Settings, tmp_path: Path, when: str) -> list[Told]:
    """Run `FILL` on a file system of 2 MB; skips the test where none can be made."""
    mount, report = tmp_path / "mount", tmp_path / "report"
    mount.mkdir()
    probe = subprocess.run([*NAMESPACE, MOUNTED, "sh", mount, "true"], capture_output=True)
    if probe.returncode != 0:
        pytest.skip("this kernel gives no file system of one's own to a test")
    script: list[str | Path] = [
        *(sys.executable, "-c", FILL, mount, settings.home / "bullpen.db", report, when),
    ]
    done = subprocess.run(
        [*NAMESPACE, MOUNTED, "sh", mount, *script], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return _told(report)


@pytest.fixture
def closed(store: SqliteStore) -> Iterator[Settings]:
    """A store with a message, in a directory that everybody can reach."""
    put(store, 0)
    store.close()
    home = Path(tempfile.mkdtemp(prefix="bullpen-closed-", dir="/tmp"))
    shutil.copy(store.path, home / "bullpen.db")
    home.chmod(0o777)
    (home / "bullpen.db").chmod(0o666)
    yield Settings(home=home)
    home.chmod(0o700)
    shutil.rmtree(home)


@pytest.mark.parametrize("what", ["file", "directory", "both"])
def test_a_store_that_may_not_be_written_is_called_read_only(
    closed: Settings, children: Children, tmp_path: Path, what: str
) -> None:
    if what != "directory":
        (closed.home / "bullpen.db").chmod(0o444)
    if what != "file":
        closed.home.chmod(0o555)
    before = (closed.home / "bullpen.db").read_bytes()
    report = tmp_path / "report"
    assert children.run(unprivileged, closed, report) == 0
    ((kind, words, taken),) = _told(report)
    assert (kind, taken) == ("StoreReadOnly", [])
    assert words is not None
    assert words[0] == StoreReadOnly.code
    assert words[1]
    assert (closed.home / "bullpen.db").read_bytes() == before


def test_a_file_that_is_not_a_database_is_called_corrupt(
    settings: Settings, store: SqliteStore
) -> None:
    store.close()
    with store.path.open("r+b") as file:
        file.write(os.urandom(100))
    with pytest.raises(StoreCorrupt) as caught:
        open_store(settings)
    _says(caught.value, StoreCorrupt, store.path)
    files = [file.path for file in psutil.Process().open_files()]
    assert str(store.path) not in files


@pytest.mark.parametrize("use", [Account, lambda store: put(store, 9)], ids=["read", "write"])
def test_a_damaged_page_is_called_corrupt(
    settings: Settings, store: SqliteStore, use: Callable[[Store], object]
) -> None:
    for number in range(5):
        put(store, number)
    store.close()
    connection = sqlite3.connect(store.path)
    (page,) = connection.execute(
        "SELECT rootpage FROM sqlite_master WHERE name = 'messages'"
    ).fetchone()
    (size,) = connection.execute("PRAGMA page_size").fetchone()
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    with store.path.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\x55" * size)
    with closing(open_store(settings)) as opened, pytest.raises(StoreCorrupt) as caught:
        use(opened)
    _says(caught.value, StoreCorrupt, store.path)


def test_a_directory_that_is_not_there_is_called_unavailable(tmp_path: Path) -> None:
    path = tmp_path / "gone" / "bullpen.db"
    with pytest.raises(StoreUnavailable) as caught:
        open_store(Settings(home=tmp_path, database_url=f"sqlite:///{path}"))
    _says(caught.value, StoreUnavailable, path)
    assert not path.parent.exists()
