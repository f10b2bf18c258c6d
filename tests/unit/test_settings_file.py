"""settings.toml as programs change it: nobody's change is lost, and nothing else is touched."""

from __future__ import annotations

import fcntl
import os
import threading
import tomllib
from pathlib import Path

import pytest

from bullpen.core.errors import BadSetting, Overloaded, SettingFixed
from bullpen.core.settings import FIELDS, file
from bullpen.core.settings.file import (
    FIXED_SETTINGS,
    LOCK_FILE,
    SettingsFile,
    SettingSource,
    Value,
    services_reading,
)

NUMBERS = [
    each.name
    for each in FIELDS.values()
    if isinstance(each.default, int) and each.name not in FIXED_SETTINGS
][:30]
SMALL = ("api_threads", "api_processes", "database_connections")
"""Those that cannot be as large as the numbers of the test."""


def change(home: Path, environ: dict[str, str], **wanted: Value | None) -> None:
    """One change, as every program makes it."""
    file = SettingsFile(home, environ)
    with file.locked():
        file.write(file.check(wanted))


def test_thirty_who_write_at_once_lose_nothing(tmp_path: Path) -> None:
    (tmp_path / "settings.toml").write_text("# mine\nowner_id = 'U1'\n")
    names = [name for name in NUMBERS if name not in SMALL]
    threads = [
        threading.Thread(target=change, args=(tmp_path, {}), kwargs={name: 20_000 + number})
        for number, name in enumerate(names)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    text = (tmp_path / "settings.toml").read_text()
    found = tomllib.loads(text)
    assert found == {"owner_id": "U1"} | {name: 20_000 + n for n, name in enumerate(names)}
    assert text.startswith("# mine\n")


def test_who_waits_too_long_for_the_others_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file, "LOCK_WAIT_SECONDS", 0.05)
    number = os.open(tmp_path / LOCK_FILE, os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(number, fcntl.LOCK_EX)
    with pytest.raises(Overloaded):
        change(tmp_path, {}, max_hops=3)
    os.close(number)
    change(tmp_path, {}, max_hops=3)


def test_a_link_to_a_file_that_is_kept_elsewhere_stays_one(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "mine.toml").write_text("max_hops = 2\n")
    link = tmp_path / "settings.toml"
    link.symlink_to(kept / "mine.toml")
    change(tmp_path, {}, max_hops=3)
    assert link.is_symlink()
    assert tomllib.loads((kept / "mine.toml").read_text()) == {"max_hops": 3}


def test_what_is_so_already_changes_nothing(tmp_path: Path) -> None:
    file = SettingsFile(tmp_path, {"BULLPEN_MAX_RUNS": "4"})
    same: dict[str, Value | None] = {"max_runs": 4, "max_hops": 8, "home": str(tmp_path)}
    assert file.check(same) == {}
    assert file.check({"max_hops": None}) == {}
    assert file.check({"max_hops": "9"}) == {"max_hops": 9}


def test_what_is_fixed_says_why(tmp_path: Path) -> None:
    file = SettingsFile(tmp_path, {"BULLPEN_MAX_RUNS": "4"})
    values: dict[str, Value] = {
        "max_runs": 5,
        "api_port": 5,
        "public_url": "https://example.org",
        "spark_master": "local[4]",
    }
    for name in (*FIXED_SETTINGS, "max_runs"):
        with pytest.raises(SettingFixed, match=name):
            file.check({name: values.get(name, "/elsewhere")})


def test_a_setting_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadSetting):
        SettingsFile(tmp_path, {}).check({"nonsense": 1})


def test_where_a_value_comes_from_is_told(tmp_path: Path) -> None:
    (tmp_path / "settings.toml").write_text("max_hops = 2\nmax_runs = 2\n")
    shown = {
        each.name: each
        for each in SettingsFile(tmp_path, {"BULLPEN_MAX_RUNS": "4"}).list_settings()
    }
    assert (shown["max_hops"].value, shown["max_hops"].source) == (2, SettingSource.FILE)
    assert (shown["max_runs"].value, shown["max_runs"].source) == (4, SettingSource.ENVIRONMENT)
    assert shown["max_cost"].source is SettingSource.DEFAULT


def test_who_reads_a_setting_is_known() -> None:
    services = ["api", "processor", "slack"]
    assert services_reading(["api_threads"], services) == ["api"]
    assert services_reading(["max_runs"], services) == ["processor"]
    assert services_reading(["openai_api_key"], services) == ["processor"]
    assert services_reading(["message_bytes"], services) == services
    assert services_reading(["max_runs", "no_such_setting"], services) == services
    assert services_reading([], services) == []
