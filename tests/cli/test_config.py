"""bullpen config: settings are shown, changed and checked, whatever state their file is in."""

from __future__ import annotations

import stat
import subprocess
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from bullpen.core.settings import DEFAULTS, FIELDS
from bullpen.core.text import MASK
from tests.cli.command import PROGRAM, Bullpen
from tests.cli.open_store import company
from tests.cli.terminal import terminal
from tests.crash.test_disks import MOUNTED, NAMESPACE

GOOD = b"# mine\nmax_hops = 3 # no more\nopenai_api_key = 'sk-hunter2'\n"
BROKEN = b"max_hops = 3\nmax_runs = two\n\nlease_seconds = -1\nleese = 4\n"


def write(bullpen: Bullpen, text: bytes) -> Path:
    """The home's file with this in it."""
    file = bullpen.home / "settings.toml"
    file.write_bytes(text)
    return file


def test_every_setting_is_listed_with_its_value_and_where_that_comes_from(empty: Bullpen) -> None:
    write(empty, GOOD)
    found = empty.ok("config", "list", "--json", BULLPEN_MAX_RUNS="4").json
    assert [each["name"] for each in found] == [each.name for each in FIELDS.values()]
    by_name = {each["name"]: each for each in found}
    assert (by_name["max_hops"]["value"], by_name["max_hops"]["source"]) == (3, "file")
    assert (by_name["max_runs"]["value"], by_name["max_runs"]["source"]) == (4, "environment")
    assert (by_name["max_cost"]["value"], by_name["max_cost"]["source"]) == (0, "default")
    assert all(each["doc"] for each in found)
    changed = empty.ok("config", "list", "--changed")
    assert "max_hops" in changed.out
    assert "max_cost" not in changed.out
    assert "hunter2" not in f"{found}{changed.out}"


def test_a_value_is_printed_alone_and_a_secret_only_on_purpose(empty: Bullpen) -> None:
    write(empty, GOOD)
    assert empty.ok("config", "get", "max_hops").out == "3\n"
    assert empty.ok("config", "get", "openai_api_key").out == f"{MASK}\n"
    assert empty.ok("config", "get", "openai_api_key", "--reveal").out == "sk-hunter2\n"
    url = "postgresql://ann:hunter2@host/db"
    assert "hunter2" not in empty.ok("config", "get", "database_url", BULLPEN_DATABASE_URL=url).out
    found = empty.ok("config", "get", "openai_api_key", "--json").json
    assert (found["value"], found["source"], found["secret"]) == (MASK, "file", True)
    wrong = empty("config", "get", "max_hpos")
    assert (wrong.status, wrong.out) == (2, "")
    assert "max_hops" in wrong.err


def test_what_is_set_is_in_the_file_and_all_else_stays(empty: Bullpen) -> None:
    file = write(empty, GOOD + b"not_ours = 1 # kept\n[more]\nx = 1\n")
    file.chmod(0o600)
    done = empty.ok("config", "set", "max_hops", "5", "owner_id=a=b", "max_cost", "2.5", "--json")
    assert done.json["changed"]["max_hops"] == {"before": 3, "after": 5}
    assert done.json["restart"] == ["api", "guard", "processor", "scheduler"]
    text = file.read_text()
    assert text.startswith("# mine\nmax_hops = 5 # no more\n")
    assert "# kept" in text
    found = tomllib.loads(text)
    assert (found["owner_id"], found["max_cost"], found["more"]) == ("a=b", 2.5, {"x": 1})
    assert found["openai_api_key"] == "sk-hunter2"
    assert file.stat().st_mode & 0o777 == 0o600
    assert empty.ok("config", "get", "max_hops").out == "5\n"
    empty.ok("config", "unset", "max_hops", "not_ours")
    assert empty.ok("config", "get", "max_hops").out == "8\n"
    assert "not_ours" not in tomllib.loads(file.read_text())
    assert "Nothing changed" in empty.ok("config", "unset", "max_hops").out


def test_a_home_that_is_new_gets_a_file(empty: Bullpen) -> None:
    home = Bullpen(empty.home / "new")
    home.ok("config", "set", "api_port", "4000")
    assert tomllib.loads((home.home / "settings.toml").read_text()) == {"api_port": 4000}
    assert (home.home / "settings.toml").stat().st_mode & 0o777 == 0o600
    assert home.home.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    "words",
    [
        ("max_hops", "many"),
        ("max_hops=3", "max_hops=4"),
        ("max_runs", "0"),
        ("max_cost", "-1"),
        ("max_cost=nan",),
        ("max_hops",),
        ("nothing", "1"),
        ("home", "/tmp/elsewhere"),
        ("workspace", "here"),
        ("database_url", "mysql://host/db"),
        ("time_zone", "Mars/Base"),
        ("durability", "maybe"),
        ("owner_id", "a", "max_hops", "many"),
        ("owner_id", "x" * 5000),
    ],
    ids=" ".join,
)
def test_what_cannot_be_is_refused_and_nothing_is_written(
    empty: Bullpen, words: tuple[str, ...]
) -> None:
    file = write(empty, GOOD)
    result = empty("config", "set", *words)
    assert (result.status, result.out) == (2, "")
    assert result.err
    assert file.read_bytes() == GOOD
    assert not (empty.home / "settings.toml.bak").exists()


def test_a_secret_is_read_and_never_among_the_words(empty: Bullpen) -> None:
    refused = empty("config", "set", "openai_api_key", "sk-hunter2")
    assert refused.status == 2
    assert "is a secret" in refused.err
    assert "hunter2" not in refused.out + refused.err
    assert not (empty.home / "settings.toml").exists()
    done = empty.ok(
        *("config", "set", "openai_api_key", "-", "anthropic_api_key", "max_hops", "3"),
        stdin="sk-hunter2\nsk-other\n",
    )
    assert "hunter2" not in done.out + done.err
    assert tomllib.loads((empty.home / "settings.toml").read_text()) == {
        "openai_api_key": "sk-hunter2",
        "anthropic_api_key": "sk-other",
        "max_hops": 3,
    }
    assert empty("config", "set", "openai_api_key", "-").status == 2


def test_all_that_is_bad_is_found_with_its_line_and_what_would_be_right(empty: Bullpen) -> None:
    file = write(empty, BROKEN)
    result = empty("config", "check")
    assert result.status == 3
    for text in (
        "line 2: cannot read max_runs",
        "line 4: invalid value",
        "line 5: setting 'leese'",
    ):
        assert result.out.count(f"settings.toml {text}") == 1
    assert result.err == ""
    found = empty("config", "check", "--json").json
    assert found["ok"] is False
    assert [(each["line"], each["name"], each["warning"]) for each in found["problems"]] == [
        (2, "max_runs", False),
        (4, "lease_seconds", False),
        (5, "leese", True),
    ]
    assert all(each["text"] and each["hint"] for each in found["problems"])
    assert file.read_bytes() == BROKEN


@pytest.mark.parametrize(
    ("text", "status", "said"),
    [
        (None, 0, "No settings.toml"),
        (b"", 0, "is valid"),
        (b"max_hops = 3\n", 0, "is valid"),
        (b"leese = 4\n", 0, "1 warning"),
        (b"database_url = 'nonsense'\n", 3, "database_url"),
        (b"database_url = postgresql://u:hunter2@h/d\n", 3, "line 1"),
    ],
)
def test_a_file_is_checked(empty: Bullpen, text: bytes | None, status: int, said: str) -> None:
    if text is not None:
        write(empty, text)
    result = empty("config", "check")
    assert result.status == status
    assert said in result.out
    assert "hunter2" not in result.out + result.err


def test_others_who_may_read_secrets_are_a_warning(empty: Bullpen) -> None:
    write(empty, GOOD).chmod(0o644)
    assert "chmod 600" in empty.ok("config", "check").out
    (empty.home / "settings.toml").chmod(0o600)
    assert "chmod" not in empty.ok("config", "check").out


def test_a_broken_file_can_be_looked_at_and_is_never_touched(empty: Bullpen) -> None:
    file = write(empty, BROKEN)
    assert empty.ok("config", "path").out == f"{file}\n"
    listed = empty.ok("config", "list")
    assert "line 2 is invalid" in listed.out
    assert listed.err.count("settings.toml line") == 2
    assert empty.ok("config", "get", "max_hops").out == "3\n"
    for words in (("set", "max_hops", "4"), ("unset", "max_hops")):
        refused = empty("config", *words)
        assert refused.status == 2
        assert "settings.toml line 2" in refused.err.splitlines()[-2]
    assert file.read_bytes() == BROKEN


def test_a_value_that_is_bad_can_be_set_right(empty: Bullpen) -> None:
    write(empty, b"max_runs = 0 # mine\nlease_seconds = 'long'\n")
    empty.ok("config", "set", "max_runs", "8")
    empty.ok("config", "unset", "lease_seconds")
    assert empty.ok("config", "check").status == 0
    assert (empty.home / "settings.toml").read_text() == "max_runs = 8 # mine\n"


def test_the_file_is_put_back_as_it_was(empty: Bullpen) -> None:
    assert empty("config", "restore", "--yes").status == 2
    file = write(empty, GOOD)
    empty.ok("config", "set", "max_hops", "5")
    file.write_bytes(b"max_hops = ]\n")
    done = empty.ok("config", "restore", "--yes", "--json").json
    assert done["changed"]["max_hops"] == {"before": 8, "after": 3}
    assert file.read_bytes() == GOOD
    assert (empty.home / "settings.toml.bak").read_bytes() == b"max_hops = ]\n"


def test_the_environment_that_wins_is_named(empty: Bullpen) -> None:
    done = empty.ok("config", "set", "max_hops", "5", BULLPEN_MAX_HOPS="2")
    assert "BULLPEN_MAX_HOPS" in done.err
    assert "max_hops = 5" in done.out


def test_in_its_run_an_agent_neither_sees_nor_changes_settings(bullpen: Bullpen) -> None:
    company(bullpen)
    file = write(bullpen, GOOD)
    agent = Bullpen(bullpen.home, {"BULLPEN_RUN": "coder.0"})
    for words in (
        ("set", "max_hops", "4"),
        ("unset", "max_hops"),
        ("restore", "--yes"),
        ("get", "openai_api_key", "--reveal"),
        ("list",),
    ):
        refused = agent("config", *words)
        assert (refused.status, refused.out) == (1, "")
        assert "@coder may not" in refused.err
    assert file.read_bytes() == GOOD


def test_names_are_completed(empty: Bullpen) -> None:
    found = empty.ok(
        _BULLPEN_COMPLETE="bash_complete", COMP_WORDS="bullpen config get max_h", COMP_CWORD="3"
    )
    assert "max_hops" in found.out


def _full(home: Path) -> str:
    return f"cat /dev/zero > {home}/ballast 2>/dev/null; "


def _read_only(home: Path) -> str:
    return f"mount -o remount,ro {home}; "


@pytest.mark.parametrize("spoil", [_full, _read_only])
def test_a_disk_that_takes_nothing_leaves_the_file_as_it_was(
    empty: Bullpen, spoil: Callable[[Path], str]
) -> None:
    """On a small file system of the test's own."""
    home = empty.home / "mount"
    home.mkdir()
    script = (
        f"printf 'max_hops = 3\\n' > {home}/settings.toml; : > {home}/settings.lock; {spoil(home)}"
        f'"$@"; echo $?; cat {home}/settings.toml; ls -A {home}'
    )
    command = [*PROGRAM, "config", "set", "max_hops", "4"]
    done = subprocess.run(
        [*NAMESPACE, MOUNTED, "sh", home, "sh", "-c", script, "sh", *command],
        env=Bullpen(home).environment(),
        capture_output=True,
        text=True,
    )
    if "unshare" in done.stderr:
        pytest.skip("this kernel gives no file system of one's own to a test")
    status, text, *names = done.stdout.splitlines()
    assert (status, text) == ("1", "max_hops = 3"), done
    assert set(names) <= {"ballast", "settings.lock", "settings.toml"}
    assert "settings.toml: " in done.stderr
    assert "Nothing was changed." in done.stderr
    assert "Traceback" not in done.stderr


def test_the_list_can_be_narrowed_by_words(bullpen: Bullpen) -> None:
    names = bullpen.ok("config", "list", "API_", "-q").out.split()
    assert {"api_port", "api_host"} <= set(names) < set(DEFAULTS)
    assert bullpen.ok("config", "show", "api", "port", "-q").out.split() == ["api_port"]
    assert "No setting matches" in bullpen.ok("config", "list", "zzz").out


def test_an_edit_is_checked(bullpen: Bullpen, tmp_path: Path) -> None:
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\necho \'max_hops = 5\' >> "$1"\necho \'max_cost = "x"\' >> "$1"\n')
    editor.chmod(0o700)
    with terminal(bullpen, "config", "edit", EDITOR=str(editor), VISUAL="") as at:
        at.until("Error: settings.toml line 2")
        assert at.end() == 3
    assert bullpen.ok("config", "get", "max_hops").out == "5\n"
    assert stat.S_IMODE((bullpen.home / "settings.toml").stat().st_mode) == 0o600
    refused = bullpen("config", "edit")
    assert (refused.status, "an editor needs a terminal" in refused.err) == (2, True)
