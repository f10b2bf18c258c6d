"""A settings file that is partly bad: all that is good in it counts, and the rest is named."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bullpen.core.errors import BadSetting
from bullpen.core.settings import Settings
from bullpen.core.settings.parse import SettingProblem, load_lenient

PASSWORD = "hunter2"


def _load(home: Path, file: bytes, **environ: str) -> tuple[Settings, tuple[SettingProblem, ...]]:
    (home / "settings.toml").write_bytes(file)
    return load_lenient({"BULLPEN_HOME": str(home), **environ})


def test_bad_values_cost_only_themselves(tmp_path: Path) -> None:
    file = b"max_hops = 3\nlease_seconds = 'long'\nmax_runs = 0\nclaim_limit = 5\n"
    settings, problems = _load(tmp_path, file)
    assert (settings.max_hops, settings.claim_limit) == (3, 5)
    assert (settings.lease_seconds, settings.max_runs) == (60, 8)
    assert [(each.line, each.name, each.warning) for each in problems] == [
        (2, "lease_seconds", False),
        (3, "max_runs", False),
    ]
    assert all(each.text and each.hint for each in problems)


@pytest.mark.parametrize(
    "bad",
    [
        b"lease_seconds = a minute",
        b"= 5",
        b"lease_seconds",
        b"lease_seconds = \xff",
        b'lease_seconds = "30',
        b"\0",
        b"max_hops = 4",
        b"]",
    ],
)
def test_a_line_that_cannot_be_read_costs_only_itself(tmp_path: Path, bad: bytes) -> None:
    file = b"max_hops = 3 # mine\n" + bad + b"\r\nowner_id = 'U1'\n"
    settings, problems = _load(tmp_path, file)
    assert (settings.max_hops, settings.owner_id, settings.lease_seconds) == (3, "U1", 60)
    assert [each.line for each in problems] == [2]
    assert (tmp_path / "settings.toml").read_bytes() == file


def test_what_stands_in_a_table_is_no_setting_in_a_bad_file_either(tmp_path: Path) -> None:
    settings, problems = _load(tmp_path, b"max_runs = \n[other]\nmax_hops = 3\n")
    assert settings.max_hops == 8
    assert [(each.line, each.warning) for each in problems] == [(1, False), (3, False)]


def test_a_name_that_no_setting_has_is_a_warning_with_the_nearest(tmp_path: Path) -> None:
    _, problems = _load(tmp_path, b'leese_seconds = 5\nzzzzzz = 1\n"\\u001b[2J" = 1\n')
    assert [(each.line, each.warning) for each in problems] == [(None, True), (1, True), (2, True)]
    assert "lease_seconds" in problems[1].text
    assert not any("\x1b" in str(each) for each in problems)


def test_a_setting_below_a_heading_is_said_so(tmp_path: Path) -> None:
    settings, problems = _load(tmp_path, b"[limits]\nmax_cost = 5\n")
    assert settings.max_cost == 0
    assert [(each.line, each.name, each.warning) for each in problems] == [(2, "max_cost", False)]


@pytest.mark.parametrize(
    "file",
    [
        b"database_url = postgresql://ann:hunter2@host/db\n",
        b"database_url = ['postgresql://ann:hunter2@host/db']\n",
        b"database_url = 'a'\ndatabase_url = 'postgresql://ann:hunter2@host/db'\n",
        b"[store]\ndatabase_url = 'postgresql://ann:hunter2@host/db'\n",
        b"max_runs =\n[store]\ndatabase_url = 'postgresql://ann:hunter2@host/db'\n",
        b"export database_url='postgresql://ann:hunter2@host/db'\n",
        "database_url = 'postgresql://ann:hunter2@host/db'\n".encode("utf-16"),
    ],
)
def test_a_database_that_is_named_wrongly_is_never_another(tmp_path: Path, file: bytes) -> None:
    settings, problems = _load(tmp_path, b"max_runs = 3\n" + file)
    assert problems
    with pytest.raises(BadSetting, match=r"settings\.toml line") as caught:
        assert settings.url
    said = f"{caught.value} {caught.value.hint} {problems}"
    assert PASSWORD not in said
    given = "sqlite:////tmp/given.db"
    assert _load(tmp_path, file, BULLPEN_DATABASE_URL=given)[0].url == given


def test_a_file_of_which_nothing_is_known_names_no_database(tmp_path: Path) -> None:
    (tmp_path / "settings.toml").symlink_to(tmp_path / "not" / "mounted.toml")
    settings, problems = load_lenient({"BULLPEN_HOME": str(tmp_path)})
    assert [(each.line, each.name) for each in problems] == [(None, "")]
    with pytest.raises(BadSetting):
        assert settings.url


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo])
def test_what_is_no_file_says_nothing(tmp_path: Path, make: object) -> None:
    assert callable(make)
    make(tmp_path / "settings.toml")
    settings, problems = load_lenient({"BULLPEN_HOME": str(tmp_path)})
    assert settings.url.endswith("/bullpen.db")
    assert [each.line for each in problems] == [None]
    with pytest.raises(BadSetting):
        Settings.load({"BULLPEN_HOME": str(tmp_path)})


def test_a_file_from_an_editor_that_marks_utf_8_is_as_any_other(tmp_path: Path) -> None:
    settings, problems = _load(tmp_path, b"\xef\xbb\xbfmax_hops = 3\r\n")
    assert (settings.max_hops, problems) == (3, ())


def test_a_secret_is_in_no_problem(tmp_path: Path) -> None:
    file = b"openai_api_key = ['hunter2']\nanthropic_api_key = hunter2\n"
    _, problems = _load(tmp_path, file)
    _, more = _load(tmp_path, file.splitlines()[0])
    assert len(problems) == 2
    assert PASSWORD not in f"{problems}{more}"


def test_a_value_in_the_environment_that_cannot_be_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(BadSetting, match="max_hops"):
        _load(tmp_path, b"", BULLPEN_MAX_HOPS="many")
