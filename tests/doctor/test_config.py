"""Settings that do not count, plugins that may change, backups that are not there."""

from __future__ import annotations

import json
import os
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bullpen.core.clock import DAY, SECOND, SystemClock
from bullpen.core.registry import CHANNELS, PROVIDERS
from bullpen.ops.backup.create import Backup, record_last_backup
from bullpen.ops.doctor import plugins
from bullpen.ops.doctor.examine import run_check
from bullpen.ops.services.supervisor import Service
from tests.cli.command import Bullpen
from tests.conformance.verbs import hire
from tests.doctor.examined import (
    checks,
    fine,
    found,
    installation_of,
    look_at,
    seen,
    settings_of,
    store_of,
)
from tests.registry.packages import install
from tests.stores import FakeClock


def test_settings_that_cannot_be_read_and_all_else_is_looked_at(bullpen: Bullpen) -> None:
    file = bullpen.home / "settings.toml"
    file.write_text('api_port = "many"\nlease_seconds = \n')
    said = bullpen("doctor")
    assert said.status == 1
    text = found(bullpen, "settings.bad", "critical")
    assert "api_port" in text
    assert "line 2" in text
    assert checks(bullpen)["db.unreachable"]["state"] == "ok"


def test_settings_that_say_of_no_database_which(bullpen: Bullpen) -> None:
    (bullpen.home / "settings.toml").write_text('database_url = "sqlite:///x.db\n')
    found(bullpen, "settings.bad", "critical")
    found(bullpen, "db.unreachable", "critical")


def test_a_file_of_settings_that_is_no_text(bullpen: Bullpen) -> None:
    (bullpen.home / "settings.toml").write_bytes(b"\xff\xfe\x00")
    found(bullpen, "settings.bad", "critical")


def test_a_name_that_no_setting_has(bullpen: Bullpen) -> None:
    fine(bullpen, "settings.odd")
    (bullpen.home / "settings.toml").write_text("leese_seconds = 5\n")
    assert "leese_seconds" in found(bullpen, "settings.odd", "warning")
    fine(bullpen, "settings.bad")


def test_a_plugin_that_others_may_write(bullpen: Bullpen) -> None:
    directory = bullpen.home / "plugins"
    directory.mkdir(mode=0o700)
    plugin = directory / "shout.py"
    plugin.write_text("")
    fine(bullpen, "plugin.unpinned")
    for each in (bullpen.home, directory):
        each.chmod(0o755)
    plugin.chmod(0o666)
    assert "shout.py" in found(bullpen, "plugin.unpinned", "critical")


def test_a_plugin_that_is_a_link(bullpen: Bullpen) -> None:
    (bullpen.home / "plugins").mkdir(mode=0o700)
    elsewhere = bullpen.home / "elsewhere.py"
    elsewhere.touch()
    (bullpen.home / "plugins" / "shout.py").symlink_to(elsewhere)
    assert str(elsewhere) in found(bullpen, "plugin.unpinned", "warning")


@pytest.mark.parametrize(
    ("origin", "loose"),
    [
        (None, False),
        ({"url": "file:///x", "dir_info": {"editable": True}}, True),
        ({"url": "https://x/y.whl", "archive_info": {}}, True),
        ({"url": "https://x/y.whl", "archive_info": {"hash": "sha256=00"}}, False),
    ],
)
def test_a_package_that_may_become_another(
    bullpen: Bullpen,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    origin: dict[str, object] | None,
    loose: bool,
) -> None:
    package = tmp_path / "shouting-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: shouting\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text("[bullpen.plugins]\nshout = shouting\n")
    if origin is not None:
        (package / "direct_url.json").write_text(json.dumps(origin))
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    said = look_at(bullpen, plugins.unpinned)
    assert (said.state == "found") is loose
    assert ("shouting" in said.text) is loose


def test_a_package_whose_provider_or_channel_cannot_be_used(
    bullpen: Bullpen, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fine(bullpen, "plugin.broken")
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    install(tmp_path, "shout", PROVIDERS.group, {"shout": "shout:P", "echo": "shout:P"}, "P = 7")
    install(tmp_path, "mule", CHANNELS.group, {"mule": "mule:CHANNEL"}, "import nonesuch")
    said = look_at(bullpen, plugins.broken)
    assert (said.state, said.severity) == ("found", "warning")
    for each in (
        "the provider shout of the package shout: it is not a ProviderInfo",
        "the provider echo of the package shout: Bullpen uses this name",
        "the channel mule of the package mule: it cannot be loaded",
    ):
        assert each in said.text


def test_a_plugin_that_is_not_python(bullpen: Bullpen) -> None:
    directory = bullpen.home / "plugins"
    directory.mkdir(mode=0o700)
    (directory / "shout.py").write_text("def transform_outgoing(text, about) return text")
    text = found(bullpen, "plugin.broken", "warning")
    assert "plugins/shout.py, line 1: " in text


def test_a_plugin_that_the_processor_could_not_load(bullpen: Bullpen) -> None:
    directory = bullpen.home / "plugins"
    directory.mkdir(mode=0o700)
    (directory / "shout.py").write_text("import nonesuch")
    fine(bullpen, "plugin.broken")  # no processor has tried
    assert bullpen("up").status == 0
    text = found(bullpen, "plugin.broken", "warning")
    assert "shout" in text
    assert "No module named 'nonesuch'" in text
    (directory / "shout.py").write_text("")
    assert bullpen("restart", "processor").status == 0
    fine(bullpen, "plugin.broken")


def test_failures_of_plugins_count_since_the_start_by_the_supervisors_clock(
    bullpen: Bullpen,
) -> None:
    logs = bullpen.home / "logs"
    logs.mkdir(mode=0o700, exist_ok=True)
    failed = "[ERROR] bullpen.processor.plugins: plugin {} could not be loaded and is skipped"
    (logs / "processor.log").write_text(
        f"2026-01-02T03:04:04.900Z {failed.format('old')}\n"
        f"2026-01-02T03:04:05.001Z {failed.format('new')}\n"
    )
    started = int(datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC).timestamp()) * SECOND
    with installation_of(bullpen) as installation:
        installation.__dict__["services"] = (
            Service(
                name="processor",
                state="RUNNING",
                pid=os.getpid(),  # its age is not what counts
                seconds=1,
                started_at=started,
            ),
        )
        said = run_check(installation, plugins.broken)
    assert "plugin new" in said.text
    assert "plugin old" not in said.text


def test_a_home_that_was_never_backed_up(on_both: Bullpen) -> None:
    found(on_both, "backup.none", "info")
    with store_of(on_both, FakeClock(SystemClock().now() - 8 * DAY)) as store:
        hire(store)
    found(on_both, "backup.none", "warning")


def test_a_backup_that_is_old_or_gone(bullpen: Bullpen) -> None:
    assert seen(bullpen, "backup.stale")["state"] == "skipped"
    place = bullpen.home / "backups"
    place.mkdir()
    now = SystemClock().now()
    record_last_backup(settings_of(bullpen), Backup(path=place, made_at=now - DAY, size=1))
    for each in ("backup.none", "backup.stale", "backup.gone"):
        fine(bullpen, each)
    record_last_backup(settings_of(bullpen), Backup(path=place, made_at=now - 9 * DAY, size=1))
    assert "9 days" in found(bullpen, "backup.stale", "warning")
    place.rmdir()
    assert str(place) in found(bullpen, "backup.gone", "info")
