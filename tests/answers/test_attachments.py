"""Files leave only from below an allowed directory, by their real path."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Sequence
from pathlib import Path

import pytest

from bullpen.core.answers import attachments
from bullpen.core.answers.attachments import MAX_FILES, RefusedFile
from bullpen.core.workspace.safe_files import Root


def resolve_allowed(path: str, roots: Sequence[Path]) -> Path | RefusedFile:
    """The real path of a file that may be sent."""
    return attachments.resolve_allowed(path, list(map(Root, roots)), lambda _: True)


def split_allowed(
    paths: Sequence[str], roots: Sequence[Path]
) -> tuple[tuple[str, ...], tuple[RefusedFile, ...]]:
    """The files that may be sent, and the others."""
    return attachments.split_allowed(paths, list(map(Root, roots)), lambda _: True)


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """The agent's directory, with a file in it."""
    work = tmp_path / "work"
    (work / "sub").mkdir(parents=True)
    (work / "report.txt").write_text("fine")
    (work / "sub" / "deep.txt").write_text("deep")
    (tmp_path / "secret.txt").write_text("secret")
    (tmp_path / "work-elsewhere").mkdir()
    (tmp_path / "work-elsewhere" / "near.txt").write_text("near")
    return work


@pytest.mark.parametrize(
    ("path", "real"),
    [
        ("report.txt", "report.txt"),
        ("./sub/../report.txt", "report.txt"),
        ("sub/deep.txt", "sub/deep.txt"),
        ("{work}/report.txt", "report.txt"),
        ("link.txt", "sub/deep.txt"),
        ("way/deep.txt", "sub/deep.txt"),
    ],
)
def test_a_file_below_the_directory_leaves_by_its_real_path(
    work: Path, path: str, real: str
) -> None:
    (work / "link.txt").symlink_to(work / "sub" / "deep.txt")
    (work / "way").symlink_to("sub")
    assert resolve_allowed(path.format(work=work), [work]) == work / real


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("../secret.txt", "outside"),
        ("sub/../../secret.txt", "outside"),
        ("../work-elsewhere/near.txt", "outside"),
        ("/etc/hostname", "outside"),
        ("{work}/../secret.txt", "outside"),
        ("out.txt", "outside"),
        ("away/secret.txt", "outside"),
        ("/proc/self/environ", "outside"),
        (".", "regular"),
        ("sub", "regular"),
        ("pipe", "regular"),
        ("missing.txt", "exist"),
        ("dangling", "exist"),
        ("report.txt/x", "exist"),
        ("loop", "read"),
        ("a" * 300, "read"),
        ("a\0b", "read"),
        ("odd", "UTF-8"),
        ("hard.txt", "hard link"),
        ("socket", "read"),
        ("environ", "outside"),
    ],
)
def test_what_may_not_leave_is_refused_with_the_reason(work: Path, path: str, why: str) -> None:
    (work / "out.txt").symlink_to("../secret.txt")
    (work / "away").symlink_to("..")
    (work / "dangling").symlink_to("nowhere")
    (work / "loop").symlink_to("loop")
    (work / os.fsdecode(b"\xff.txt")).write_text("odd")
    (work / "odd").symlink_to(os.fsdecode(b"\xff.txt"))
    os.mkfifo(work / "pipe")
    os.mknod(work / "socket", stat.S_IFSOCK | 0o600)
    os.link(work.parent / "secret.txt", work / "hard.txt")
    (work / "environ").symlink_to("/proc/self/environ")
    found = resolve_allowed(path.format(work=work), [work])
    assert isinstance(found, RefusedFile)
    assert why in found.why


def test_one_that_may_not_be_read_is_refused(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = os.open

    def denied(path: str | Path, flags: int, *, dir_fd: int | None = None) -> int:
        # Root may read everything: only here is it said otherwise.
        if path == "report.txt":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return plain(path, flags, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", denied)
    found = resolve_allowed("report.txt", [work])
    assert isinstance(found, RefusedFile)
    assert "denied" in found.why


def test_any_of_the_directories_will_do_and_the_first_is_where_it_is_looked_for(
    work: Path, tmp_path: Path
) -> None:
    other = tmp_path / "work-elsewhere"
    assert resolve_allowed(str(other / "near.txt"), [work, other]) == other / "near.txt"
    assert isinstance(resolve_allowed("near.txt", [work, other]), RefusedFile)


def test_a_directory_that_is_a_link_is_the_one_it_leads_to(work: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(work)
    assert resolve_allowed("report.txt", [link]) == work / "report.txt"
    assert resolve_allowed(str(work / "report.txt"), [link]) == work / "report.txt"


def test_without_a_directory_nothing_leaves(work: Path) -> None:
    assert isinstance(resolve_allowed(str(work / "report.txt"), []), RefusedFile)


def test_each_leaves_once_and_the_rest_are_told(work: Path) -> None:
    leave, refused = split_allowed(["report.txt", "nothing", "sub/../report.txt", "sub"], [work])
    assert leave == (str(work / "report.txt"),)
    assert [each.path for each in refused] == ["nothing", "sub"]


def test_of_very_many_only_the_first_are_looked_at(work: Path) -> None:
    leave, refused = split_allowed(
        ["report.txt"] + [f"no{number}" for number in range(5000)], [work]
    )
    assert leave == (str(work / "report.txt"),)
    assert len(refused) == MAX_FILES
    assert "5001" in refused[-1].why


def test_what_is_said_of_it_is_one_short_line() -> None:
    assert str(RefusedFile("a\nb", "it is odd")) == "a b was not sent: it is odd"
    assert len(str(RefusedFile("x" * 100_000, "it is long"))) < 300


def test_only_entries_of_the_directory_of_files_are_stored_files(tmp_path: Path) -> None:
    files = tmp_path / "files"
    (files / ".uploads").mkdir(parents=True)
    for name in ("a.txt", ".hidden", ".uploads/unfinished"):
        (files / name).write_text("x")
    (tmp_path / "token").write_text("secret")
    (files / "link").symlink_to("../token")
    root = Root(tmp_path, ("files",), stored=True)
    asked: list[str] = []

    def refuse(name: str) -> bool:
        asked.append(name)
        return False

    for path in ("a.txt", ".hidden", ".uploads/unfinished", "link", "../token", "."):
        found = attachments.resolve_allowed(path, [root], refuse)
        assert isinstance(found, RefusedFile), path
    assert asked == ["a.txt"]
    assert attachments.resolve_allowed("a.txt", [root], lambda _: True) == files / "a.txt"


def test_a_directory_that_was_replaced_by_a_link_is_named_as_the_reason(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "a.txt").write_text("x")
    (tmp_path / "files").symlink_to("elsewhere")
    root = Root(tmp_path, ("files",), stored=True)
    for path in ("a.txt", str(tmp_path / "files" / "a.txt")):
        found = attachments.resolve_allowed(path, [root], lambda _: True)
        assert isinstance(found, RefusedFile)
        assert found.why == f"{tmp_path / 'files'} is a link, which is not followed"


def test_an_own_directory_that_became_a_link_lets_nothing_leave(tmp_path: Path) -> None:
    (tmp_path / "workspace").mkdir()
    (tmp_path / "secret.txt").write_text("secret")
    own = Root(tmp_path / "workspace", ("coder",))
    own.path.symlink_to("/")
    for path in (str(tmp_path / "secret.txt"), "secret.txt", "etc/hostname", "coder/etc/hostname"):
        assert isinstance(attachments.resolve_allowed(path, [own], lambda _: True), RefusedFile)
