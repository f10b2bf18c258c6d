"""A service is one more file, and is started when what it needs is set."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from bullpen.core.services import declared
from bullpen.core.services.crashes import MOST, WITHIN_SECONDS, Crashes
from bullpen.core.services.declared import declared_services, supervisor_config, tmux_config
from bullpen.core.services.supervisor import OWN
from bullpen.core.settings import Settings


def test_every_service_of_bullpens_own_is_declared_and_always_set_up() -> None:
    found = declared_services()
    assert {each.name for each in found} == OWN
    assert all(each.set_up(Settings()) for each in found)
    assert supervisor_config().is_file()
    assert tmux_config().is_file()


def test_a_file_more_is_a_service_more_once_it_is_set_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(supervisor_config().parents[1] / "services", tmp_path / "services")
    program = "[program:telegram]\ncommand=true\n\n[bullpen:telegram]\nneeds = owner_id time_zone\n"
    (tmp_path / "services" / "telegram.conf").write_text(program)
    monkeypatch.setattr(declared, "_shipped", lambda name: tmp_path / name)
    (telegram,) = (each for each in declared_services() if each.name == "telegram")
    assert telegram.needs == ("owner_id", "time_zone")
    half = replace(Settings(), owner_id="4711")
    assert not telegram.set_up(half)
    assert telegram.set_up(replace(half, time_zone="Europe/Berlin"))


def test_crashes_count_within_their_time_only() -> None:
    crashes = Crashes()
    assert not any(crashes.ended(float(number)) for number in range(MOST - 1))
    assert crashes.ended(float(MOST))
    slow = Crashes()
    assert not any(slow.ended(number * WITHIN_SECONDS / (MOST - 2)) for number in range(100))
    crashes.forget()
    assert not crashes.ended(float(MOST + 1))
