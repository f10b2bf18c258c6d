"""What a person and a program are told, and how the command ends."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import threading
import time
from pathlib import Path

import pytest

from bullpen.cli.doctor import exit_status
from bullpen.cli.lazy import walk_commands
from bullpen.cli.main import cli
from bullpen.ops.doctor import check as check_module
from bullpen.ops.doctor.check import Check, CheckState, Finding, Problem, Severity, Verdict, check
from bullpen.ops.doctor.examine import ALL_CHECKS, run_checks, select_checks
from bullpen.ops.doctor.installation import Installation
from tests.cli.command import PROGRAM, Bullpen
from tests.docs.render import DOCS
from tests.doctor.examined import hurried, installation_of

HERE = Path(__file__).parent
UNHURRIED = (*PROGRAM[:2], f"import tests.doctor.unhurried; {PROGRAM[2]}")


def open_up(bullpen: Bullpen) -> None:
    """Let others look into the home, and at the database."""
    bullpen.home.chmod(0o755)
    (bullpen.home / "bullpen.db").chmod(0o644)


def test_every_check_is_documented_with_its_severity(subtests: pytest.Subtests) -> None:
    for id_ in [each.id for each in ALL_CHECKS]:
        with subtests.test(id_=id_):
            (known,) = (each for each in ALL_CHECKS if each.id == id_)
            text = (DOCS / "reference" / "doctor.md").read_text(encoding="utf-8")
            assert f"| `{id_}` | {known.severity.value}" in text
            assert known.about


def test_nothing_is_documented_that_is_not_looked_for() -> None:
    text = (DOCS / "reference" / "doctor.md").read_text(encoding="utf-8")
    lines = [line.split("`")[1] for line in text.splitlines() if line.startswith("| `")]
    assert sorted(lines) == sorted(each.id for each in ALL_CHECKS)


def test_every_check_has_a_test_that_names_it() -> None:
    texts = "".join(each.read_text(encoding="utf-8") for each in HERE.glob("test_*.py"))
    assert [each.id for each in ALL_CHECKS if f'"{each.id}"' not in texts] == []


SOURCES = [
    *sorted(Path(check_module.__file__ or "").parent.glob("*.py")),
    DOCS / "reference" / "doctor.md",
]


@pytest.mark.parametrize("source", SOURCES, ids=lambda each: each.name)
def test_what_it_says_to_type_is_a_command(source: Path) -> None:
    known = {path for path, _ in walk_commands(cli)}
    groups = {path[:1] for path in known if len(path) > 1}
    typed = re.findall(r"\bbullpen ([a-z][a-z-]*)(?: ([a-z][a-z-]*))?", source.read_text())
    for first, second in typed:
        assert (first,) in known, first
        if second and (first,) in groups:
            assert (first, second) in known, f"{first} {second}"


def test_ids_are_there_once() -> None:
    assert len({each.id for each in ALL_CHECKS}) == len(ALL_CHECKS)


@pytest.mark.parametrize(
    ("severity", "state", "status"),
    [
        (Severity.CRITICAL, CheckState.FOUND, 1),
        (Severity.WARNING, CheckState.FOUND, 3),
        (Severity.INFO, CheckState.FOUND, 0),
        (Severity.INFO, CheckState.UNKNOWN, 3),
        (Severity.CRITICAL, CheckState.OK, 0),
        (Severity.CRITICAL, CheckState.SKIPPED, 0),
    ],
)
def test_the_exit_status(severity: Severity, state: CheckState, status: int) -> None:
    assert exit_status([Finding(id="a.b", severity=severity, state=state)]) == status


def test_the_exit_status_of_the_command(bullpen: Bullpen) -> None:
    assert bullpen("doctor").status == 0
    bullpen.ok("agent", "add", "coder", "--permission", "full")
    assert bullpen("doctor").status == 3
    open_up(bullpen)
    assert bullpen("doctor").status == 1


def test_a_check_that_hangs_or_fails_keeps_no_other_from_being_made(bullpen: Bullpen) -> None:
    never = threading.Event()

    @check("test.hangs", Severity.WARNING, seconds=0.3)
    def hangs(installation: Installation) -> Problem | Verdict:
        """Never ends."""
        never.wait()
        raise AssertionError

    @check("test.fails", Severity.WARNING, seconds=60)
    def fails(installation: Installation) -> Problem | Verdict:
        """Fails."""
        raise RuntimeError(f"with {installation.settings.anthropic_api_key}")

    @check("test.finds", Severity.INFO, seconds=60)
    def finds(installation: Installation) -> Problem | Verdict:
        """Finds something."""
        return Problem(text="here it is", remedy="do this")

    many: list[Check] = [hangs] * 9 + [fails, finds]
    key = "sk-ant-quite-secret-indeed"
    secret = Bullpen(bullpen.home, {**bullpen.environ, "BULLPEN_ANTHROPIC_API_KEY": key})
    with installation_of(secret) as installation:
        found = list(run_checks(installation, many))
    never.set()
    by_id = {each.id: each for each in found}
    assert len(found) == 11
    assert by_id["test.finds"].state is CheckState.FOUND
    assert by_id["test.hangs"].state is CheckState.UNKNOWN
    assert "0.3 s" in by_id["test.hangs"].text
    assert by_id["test.fails"].text == "the check failed: RuntimeError: with [hidden]"


def test_it_takes_less_than_three_seconds(bullpen: Bullpen) -> None:
    def seconds() -> float:
        began = time.monotonic()
        hurried(bullpen)("doctor")
        return time.monotonic() - began

    # What else runs here may take all that there is for a while; no check may.
    assert any(seconds() < 3 for _ in range(30))


def test_only_what_is_asked_for(bullpen: Bullpen) -> None:
    said = bullpen("doctor", "--only", "db", "--only", "fs.home_perms", "--json").json
    ids = [each["id"] for each in said["checks"]]
    assert ids == [each.id for each in select_checks(["db", "fs.home_perms"])]
    assert {each.partition(".")[0] for each in ids} == {"db", "fs"}
    assert "fs.db_perms" not in ids
    refused = bullpen("doctor", "--only", "nonsense")
    assert refused.status == 2
    assert "nonsense" in refused.err


def test_the_list_of_all_checks(bullpen: Bullpen) -> None:
    listed = bullpen.ok("doctor", "--list", "--json").json
    assert [each["id"] for each in listed] == [each.id for each in ALL_CHECKS]
    assert {each["deep"] for each in listed} == {True, False}
    assert "fs.home_perms" in bullpen.ok("doctor", "--list").out


def test_one_document_with_counts(bullpen: Bullpen) -> None:
    open_up(bullpen)
    said = bullpen("doctor", "--json")
    assert said.err == ""
    found = said.json
    assert sum(found["counts"].values()) == len(found["checks"]) == len(ALL_CHECKS)
    assert found["counts"]["critical"] == 2
    assert found["home"] == str(bullpen.home)
    assert set(found["checks"][0]) == {"id", "severity", "state", "text", "remedy", "fixable"}


def test_the_worst_is_said_first(bullpen: Bullpen) -> None:
    bullpen.ok("agent", "add", "coder", "--permission", "full")
    open_up(bullpen)
    out = bullpen("doctor").out
    places = [out.index(word) for word in ("fs.home_perms", "agent.skip_perm", "service.superv")]
    assert places == sorted(places)
    assert "OK: " in out
    assert "To fix 2 problems, run: bullpen doctor --fix" in out


def test_what_is_fixed_is_said_before_and_nothing_is_done_without_a_word(
    bullpen: Bullpen,
) -> None:
    open_up(bullpen)
    for args in (("--fix", "--dry-run"), ("--fix",)):
        said = bullpen("doctor", *args)
        assert f"chmod 700 {bullpen.home}" in said.err
        assert bullpen.home.stat().st_mode & 0o777 == 0o755
        assert said.status == (1 if "--dry-run" in args else 2)
    done = bullpen("doctor", "--fix", "--yes", "--json")
    assert {each["id"] for each in done.json["fixed"]} == {"fs.home_perms", "fs.db_perms"}
    assert bullpen.home.stat().st_mode & 0o777 == 0o700
    assert done.status == 0
    again = bullpen("doctor", "--fix", "--json")
    assert again.json["fixed"] == []


def test_a_fix_needs_to_be_asked_for(bullpen: Bullpen) -> None:
    for option in ("--yes", "--dry-run"):
        assert bullpen("doctor", option).status == 2


def test_an_agent_in_its_run_is_refused(bullpen: Bullpen) -> None:
    refused = bullpen("doctor", BULLPEN_RUN="coder.0")
    assert refused.status != 0
    assert refused.out == ""
    assert "@coder" in refused.err


@pytest.mark.parametrize("colour", [True, False])
@pytest.mark.parametrize("columns", [80, 200])
def test_it_fits_a_terminal(bullpen: Bullpen, columns: int, colour: bool) -> None:
    open_up(bullpen)
    bullpen.ok("agent", "add", "coder", "--permission", "full", "--directory", "/tmp")
    more = {"TERM": "xterm", **({} if colour else {"NO_COLOR": "1"})}
    text = on_a_terminal(bullpen, columns, **more)
    assert ("\x1b[" in text) is colour
    plain = [line for line in text.replace("\x1b", "").splitlines() if "[" not in line]
    assert all(len(line) <= columns for line in plain)
    assert "fs.home_perms" in text


def on_a_terminal(bullpen: Bullpen, columns: int, **more: str) -> str:
    """What the command writes to a terminal that is so wide."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environ = bullpen.environment(**more)
    environ.pop("COLUMNS", None)
    with subprocess.Popen(
        [*UNHURRIED, "doctor"], env=environ, stdin=theirs, stdout=theirs, stderr=theirs
    ) as process:
        os.close(theirs)
        said = b""
        try:
            while data := os.read(ours, 65536):
                said += data
        except OSError:  # so ends a terminal
            pass
        assert process.wait(120) == 1
    os.close(ours)
    return said.decode()


def test_it_says_json_and_nothing_else_of_what_cannot_be_read(bullpen: Bullpen) -> None:
    (bullpen.home / "settings.toml").write_text("nonsense [\n")
    said = bullpen("doctor", "--json")
    assert json.loads(said.out)["counts"]["critical"] >= 1
    assert said.err == ""
    assert sys.executable not in said.out
