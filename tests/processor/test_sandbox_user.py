"""Runs as another unix user: what is closed to them, what they keep, and how they end."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import stat
import tempfile
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from bullpen.core.message import ErrorKind
from bullpen.core.roster.accounts import UnusableAccount, find_account
from bullpen.core.roster.agents import Agent, Permission, Sandbox, allowed_roots
from bullpen.core.settings import Settings
from bullpen.core.workspace.safe_files import give_inside, open_inside, write_inside
from bullpen.core.workspace.templates import write_templates
from bullpen.processor.providers.base import Reply, RunRequest
from tests.processor.turns import ANSWERS, CLAUDE, PATIENCE, Place, launching, living, mark, parent
from tests.processor.working import eventually

ACCOUNT = "nobody"


def account_problem() -> str:
    """Why no run can be of another user here; empty if it can."""
    with tempfile.TemporaryDirectory() as home:  # its mode is 700
        try:
            find_account(Settings(home=Path(home), sandbox_user=ACCOUNT), "coder")
        except UnusableAccount as error:
            return str(error)
    return ""


PROBLEM = account_problem()
as_root = pytest.mark.skipif(bool(PROBLEM), reason=PROBLEM)


@pytest.fixture
def office() -> Iterator[Place]:
    """A home and another agent's workspace that are closed, where another user can pass."""
    path = Path(tempfile.mkdtemp(prefix="bullpen-user-"))
    path.chmod(0o755)
    groups = os.getgroups()
    os.setgroups([0])  # rights of root's that a run must lose
    try:
        with launching(PATIENCE) as launcher, Place(path, launcher) as place:
            yield furnished(place)
    finally:
        os.setgroups(groups)
        shutil.rmtree(path)


def furnished(place: Place) -> Place:
    """Files to be read and not to be read."""
    workspace = place.path / "workspace"
    for name in ("home/files", "workspace/other", "workspace/coder"):
        (place.path / name).mkdir(parents=True, mode=0o700)
    (place.path / "home").chmod(0o700)
    workspace.chmod(0o711)
    shutil.rmtree(workspace / "coder")
    write_templates(workspace / "coder")
    for name in ("home/token", "home/files/a.txt", "workspace/other/mine", "workspace/coder/mine"):
        (place.path / name).write_text(f"secret of {name}\n")
    place.settings = replace(
        place.settings, home=place.path / "home", workspace=workspace, sandbox_user=ACCOUNT
    )
    return place


def asked(
    place: Place,
    permission: Permission = Permission.FULL,
    directory: Path | None = None,
    files: Sequence[Path] = (),
) -> RunRequest:
    """A run of an agent that is another user."""
    who = Agent(id="coder", provider="claude", permission=permission, sandbox=Sandbox.USER)
    home = place.settings.workspace / "coder"
    request = place.turn(who, home=home, directory=directory or home)
    prompt = "\n".join(["hello", *(f"[file: {each}]" for each in files)])
    return replace(request, files=tuple(files), prompt=prompt, texts=(prompt,))


def program(place: Place, *commands: str) -> None:
    """A program that runs these commands, keeps what they say in its directory, and answers."""
    answers = "\n".join(f"echo '{line}'" for line in ANSWERS["claude"])
    run = "\n".join(f"{{ {each} ; }} >> seen 2>> refused" for each in commands)
    place.program("claude", f"{run}\n{answers}\n")


def ran(place: Place, request: RunRequest | None = None) -> str:
    """What the commands said in a run that succeeded."""
    found = place.run(CLAUDE, request or asked(place))
    assert isinstance(found, Reply), found
    return (place.settings.workspace / "coder" / "seen").read_text()


@as_root
def test_a_run_as_another_user_reads_its_own_files_and_nobody_elses(office: Place) -> None:
    program(
        office,
        "id -un; id -G; umask",
        "cat mine",
        "cat $here/home/token $here/home/files/a.txt; ls -A $here/home $here/workspace/",
        "cat $here/workspace/other/mine; ls $here/workspace/other",
        f"cat /proc/{os.getpid()}/environ && echo environment",
        "cat /proc/$PPID/environ && echo environment",
        "kill -0 $PPID && echo killed",
        "grep -E 'CapEff|CapPrm|NoNewPrivs' /proc/self/status",
        "echo kept > made; echo new >> AGENTS.md; mkdir -p memory && echo x > memory/a.md",
    )
    seen = ran(office).splitlines()
    groups = " ".join(map(str, find_account(office.settings, "coder").groups))
    assert seen[:4] == [ACCOUNT, groups, "0077", "secret of workspace/coder/mine"]
    assert [each.split()[1] for each in seen[4:]] == ["0" * 16, "0" * 16, "1"]
    home = office.settings.workspace / "coder"
    assert (home / "made").read_text() == "kept\n"
    assert (home / "AGENTS.md").read_text().endswith("new\n")
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    assert (home / "refused").read_text().count("ermission denied") >= 6


@as_root
def test_a_run_as_another_user_has_that_users_environment(
    office: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(office.environ, "XDG_RUNTIME_DIR", "/run/user/0")
    monkeypatch.setitem(office.environ, "CLAUDE_CONFIG_DIR", "/nowhere")
    program(office, "env", "echo out > /dev/stderr && echo opened", "command -v bullpen || echo no")
    lines = ran(office).splitlines()
    seen = dict(each.split("=", 1) for each in lines if "=" in each)
    known = pwd.getpwnam(ACCOUNT)
    assert (seen["HOME"], seen["USER"], seen["LOGNAME"]) == (known.pw_dir, ACCOUNT, ACCOUNT)
    assert not [each for each in seen if each.startswith(("BULLPEN_", "XDG_", "CLAUDE_CONFIG"))]
    assert lines[-2:] == ["opened", "no"]


@as_root
def test_every_run_as_another_user_finds_what_the_one_before_made(office: Place) -> None:
    home = office.settings.workspace / "coder"
    program(office, "mkdir -p deep/er; echo one >> deep/er/file; rm -rf memory .claude")
    ran(office)
    write_templates(home)
    write_inside(office.settings.workspace, ("coder", "heartbeat.md"), "text\n")
    program(office, "echo two >> deep/er/file; echo x >> heartbeat.md; echo m > memory/m.md")
    ran(office)
    assert (home / "deep/er/file").read_text() == "one\ntwo\n"
    assert (home / "heartbeat.md").read_text() == "text\nx\n"
    assert (home / "memory/m.md").read_text() == "m\n"
    uid = pwd.getpwnam(ACCOUNT).pw_uid
    assert {each.lstat().st_uid for each in home.rglob("*") if not each.is_symlink()} == {uid}


@as_root
def test_files_go_to_and_from_a_run_as_another_user(office: Place) -> None:
    sent = [office.path / "home/files/a.txt", office.path / "home/token"]
    program(
        office, "cat > prompt; sed -n 's/^.file: \\(.*\\).$/\\1/p' prompt | head -1 | xargs cat"
    )
    assert ran(office, asked(office, files=sent)) == "secret of home/files/a.txt\n"
    request = asked(office)
    own = allowed_roots(office.settings, request.agent)[0]
    with open_inside(own.anchor, (*own.parts, "seen")) as file:
        assert file.read() == b"secret of home/files/a.txt\n"
    received = request.home / ".bullpen/received"
    assert [each.name for each in received.iterdir()] == ["a.txt"]
    program(office, "true")
    ran(office)
    assert not list(received.iterdir())


@as_root
@pytest.mark.parametrize("at_once", [False, True])
def test_a_run_as_another_user_leaves_nothing_behind(office: Place, at_once: bool) -> None:
    word = mark()
    office.program(
        "claude",
        f"trap 'echo asked > ended; exit 3' INT\nexport MARK={word}\n"
        "setsid sleep 999 &\n( ( setsid sh -c 'trap \"\" INT TERM HUP; sleep 999' & ) & )\n"
        "echo ready > ready\nwhile :; do sleep 0.05; done\n",
    )
    home = office.settings.workspace / "coder"
    thread = threading.Thread(target=office.run, args=(CLAUDE, asked(office)))
    thread.start()
    eventually((home / "ready").exists, "it runs")
    eventually(lambda: len(living(word)) >= 4, "what it started runs")
    office.stop.set(at_once=at_once)
    thread.join(30)
    assert not thread.is_alive()
    assert (home / "ended").exists() is not at_once
    assert living(word) == []


@as_root
@pytest.mark.parametrize("gone", ["launcher", "reaper"])
def test_a_run_as_another_user_ends_with_what_keeps_it(office: Place, gone: str) -> None:
    word = mark()
    office.program("claude", f"export MARK={word}\nsetsid sleep 999 &\nsleep 999\n")
    thread = threading.Thread(target=office.run, args=(CLAUDE, asked(office)))
    thread.start()
    eventually(lambda: len(living(word)) >= 2, "it runs")
    if gone == "launcher":
        office.launcher.stop()
    else:
        os.kill(parent(parent(living(word)[0])), signal.SIGKILL)
    thread.join(30)
    assert not thread.is_alive()
    eventually(lambda: living(word) == [], "nothing is left")


@as_root
def test_no_run_starts_whose_account_cannot_be_used(
    office: Place, subtests: pytest.Subtests
) -> None:
    program(office, "echo here")
    settings = office.settings
    closed = office.path / "closed"
    closed.mkdir(mode=0o700)
    for names, why in (
        ("", "sandbox_user is empty"),
        ("none-of-that-name-{agent}", "the account none-of-that-name-coder does not exist"),
        ("root", "has the rights of root"),
    ):
        with subtests.test(names=names):
            office.settings = replace(settings, sandbox_user=names)
            kind, error = office.fails(CLAUDE, asked(office))
            assert (kind, why in error) == (ErrorKind.SETUP, True), error
            assert "bullpen agent set coder --sandbox bubblewrap" in error
    office.settings = settings
    for place, mode, why in (
        ("home", 0o755, "can enter"),
        ("workspace", 0o700, "cannot read"),
    ):
        with subtests.test(place=place):
            before = stat.S_IMODE((office.path / place).stat().st_mode)
            (office.path / place).chmod(mode)
            kind, error = office.fails(CLAUDE, asked(office))
            assert (kind, why in error) == (ErrorKind.SETUP, True), error
            (office.path / place).chmod(before)
    with subtests.test(directory=closed):
        kind, error = office.fails(CLAUDE, asked(office, directory=closed))
        assert (kind, "cannot read" in error) == (ErrorKind.SETUP, True), error
    assert not list(office.path.rglob("seen"))


@pytest.mark.skipif(os.geteuid() == 0, reason="the processor is root")
def test_no_run_is_of_another_user_where_the_processor_is_not_root(place: Place) -> None:
    place.settings = replace(place.settings, sandbox_user=ACCOUNT)
    program(place, "echo here")
    kind, error = place.fails(CLAUDE, asked(place))
    assert (kind, "only a processor of root" in error) == (ErrorKind.SETUP, True)
    assert not list(place.path.rglob("seen"))


@as_root
def test_what_is_given_to_another_user_is_nothing_but_the_directory(tmp_path: Path) -> None:
    known = pwd.getpwnam(ACCOUNT)
    home = tmp_path / "coder"
    (home / "deep").mkdir(parents=True)
    outside = tmp_path / "outside"
    for path in (outside, home / "deep" / "own", tmp_path / "elsewhere"):
        path.write_text("x")
    (home / "link").symlink_to(outside)
    (home / "directory").symlink_to(tmp_path)
    os.link(outside, home / "deep" / "hard")
    os.mkfifo(home / "pipe")
    give_inside(tmp_path, ("coder",), known.pw_uid, known.pw_gid)
    given = {each.name for each in tmp_path.rglob("*") if each.lstat().st_uid == known.pw_uid}
    assert given == {"coder", "deep", "own"}
    (tmp_path / "other").symlink_to(home)
    with pytest.raises(OSError, match=r"directory|links"):
        give_inside(tmp_path, ("other",), 0, 0)


@as_root
def test_what_root_writes_in_another_users_directory_goes_nowhere_else(tmp_path: Path) -> None:
    known = pwd.getpwnam(ACCOUNT)
    home = tmp_path / "coder"
    write_templates(home)
    give_inside(tmp_path, ("coder",), known.pw_uid, known.pw_gid)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for name in (".claude", "memory", ".bullpen"):
        shutil.rmtree(home / name)
        (home / name).symlink_to(elsewhere)
    (home / "AGENTS.md").unlink()
    (home / "AGENTS.md").symlink_to(elsewhere / "new")
    write_templates(home)
    assert not list(elsewhere.iterdir())
