"""The home: its rights, its owner, and where it lies."""

from __future__ import annotations

import os
import stat
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from bullpen.ops.doctor import home
from bullpen.ops.doctor.examine import ALL_CHECKS
from tests.cli.command import Bullpen
from tests.crash.disk import NOBODY
from tests.doctor.examined import fine, fixed, found, look_at, seen
from tests.doctor.somebody import as_nobody


def mode(path: Path) -> int:
    """Its rights."""
    return stat.S_IMODE(path.stat().st_mode)


def test_a_home_that_leads_nowhere(empty: Bullpen) -> None:
    home = empty.home / "link"
    home.symlink_to(empty.home / "disk" / "that" / "is" / "away")
    assert "not a directory" in found(Bullpen(home, empty.environ), "fs.home_missing", "critical")


@pytest.mark.parametrize("rights", [0o755, 0o750, 0o711])
def test_a_home_that_others_may_look_into(bullpen: Bullpen, rights: int) -> None:
    fine(bullpen, "fs.home_perms")
    bullpen.home.chmod(rights)
    assert f"{rights:o}" in found(bullpen, "fs.home_perms", "critical")
    fixed(bullpen, "fs.home_perms")
    assert mode(bullpen.home) == 0o700


def test_a_directory_in_it_that_others_may_write_to(bullpen: Bullpen) -> None:
    run = bullpen.home / "run"
    run.mkdir()
    run.chmod(0o777)
    assert "run" in found(bullpen, "fs.home_perms", "critical")
    fixed(bullpen, "fs.home_perms")
    assert mode(run) == 0o700
    bullpen.ok("doctor")


def test_a_database_that_others_can_come_to(bullpen: Bullpen) -> None:
    file = bullpen.home / "bullpen.db"
    file.chmod(0o644)
    fine(bullpen, "fs.db_perms")  # for nobody comes into the home
    bullpen.home.chmod(0o755)
    assert "bullpen.db" in found(bullpen, "fs.db_perms", "critical")
    fixed(bullpen, "fs.db_perms")
    assert mode(file) == 0o600


def test_a_token_that_others_may_read(bullpen: Bullpen) -> None:
    token = bullpen.home / "token"
    assert seen(bullpen, "fs.token_perms")["state"] == "skipped"
    token.write_text("bp_" + "x" * 40)
    token.chmod(0o640)
    assert "640" in found(bullpen, "fs.token_perms", "critical")
    fixed(bullpen, "fs.token_perms")
    assert mode(token) == 0o600


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_files_of_somebody_else(bullpen: Bullpen) -> None:
    for name in ("bullpen.db", "logs", "logs/api.log"):
        path = bullpen.home / name
        if name == "logs":
            path.mkdir()
        path.touch()
        os.chown(path, NOBODY, NOBODY)
    text = found(bullpen, "fs.owner", "critical")
    assert "bullpen.db" in text
    assert "logs" in text
    fixed(bullpen, "fs.owner")
    assert (bullpen.home / "logs" / "api.log").stat().st_uid == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
def test_the_home_of_somebody_else(bullpen: Bullpen) -> None:
    bullpen.home.chmod(0o755)
    assert as_nobody(bullpen, "fs.owner")["fs.owner"] == ["found", "critical", False]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
def test_a_home_that_cannot_be_written(bullpen: Bullpen) -> None:
    os.chown(bullpen.home, NOBODY, NOBODY)
    assert (
        as_nobody(bullpen, "fs.read_only")["fs.read_only"][0] == "found"
    )  # its database is root's
    os.chown(bullpen.home / "bullpen.db", NOBODY, NOBODY)
    assert as_nobody(bullpen, "fs.read_only")["fs.read_only"][0] == "ok"
    bullpen.home.chmod(0o500)
    assert as_nobody(bullpen, "fs.read_only")["fs.read_only"][:2] == ["found", "critical"]


@pytest.mark.parametrize("name", ["settings.toml", "token"])
def test_a_link_in_place_of_a_file(bullpen: Bullpen, name: str) -> None:
    elsewhere = bullpen.home / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    (elsewhere / name).touch(mode=0o600)
    (bullpen.home / name).symlink_to(elsewhere / name)
    assert str(elsewhere) in found(bullpen, "fs.config_symlink", "info")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_link_to_what_somebody_else_decides(bullpen: Bullpen) -> None:
    elsewhere = bullpen.home / "elsewhere.toml"
    elsewhere.touch()
    os.chown(elsewhere, NOBODY, NOBODY)
    (bullpen.home / "settings.toml").symlink_to(elsewhere)
    assert "other users can change" in found(bullpen, "fs.config_symlink", "critical")


@pytest.mark.parametrize(
    ("name", "program"), [("Dropbox", "Dropbox"), ("OneDrive - Acme", "OneDrive")]
)
def test_a_home_that_a_program_copies_elsewhere(empty: Bullpen, name: str, program: str) -> None:
    home = empty.home / name / "bullpen"
    home.mkdir(parents=True)
    assert program in found(Bullpen(home, empty.environ), "fs.synced_dir", "warning")


def test_a_home_in_a_directory_that_syncthing_has_marked(empty: Bullpen) -> None:
    (empty.home / ".stfolder").mkdir()
    home = empty.home / "bullpen"
    home.mkdir()
    assert "Syncthing" in found(Bullpen(home, empty.environ), "fs.synced_dir", "warning")


def test_a_database_on_the_disk_of_another_machine(
    bullpen: Bullpen, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = max(
        (
            each
            for each in psutil.disk_partitions(all=True)
            if bullpen.home.is_relative_to(each.mountpoint)
        ),
        key=lambda each: len(each.mountpoint),
    )
    fine(bullpen, "fs.synced_dir")
    # No test can mount such a disk: let this one be of that kind.
    monkeypatch.setattr(home, "REMOTE_FILE_SYSTEMS", {here.fstype})
    said = look_at(bullpen, home.synced_dir)
    assert (said.state, said.severity) == ("found", "critical")
    assert here.fstype in said.text


def test_what_is_of_no_home_is_not_looked_for(empty: Bullpen) -> None:
    nowhere = replace(empty, home=empty.home / "none")
    for name in ("home_perms", "db_perms", "token_perms", "owner", "read_only", "synced_dir"):
        assert seen(nowhere, f"fs.{name}")["state"] in ("ok", "skipped")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
def test_whoever_may_not_even_look_is_told_so(bullpen: Bullpen) -> None:
    found = as_nobody(bullpen, *(each.id for each in ALL_CHECKS))
    assert len(found) == len(ALL_CHECKS)
    assert found["db.unreachable"][:2] == ["found", "critical"]
    assert found["fs.owner"][:2] == ["found", "critical"]
    assert found["queue.held"][0] == "unknown"
