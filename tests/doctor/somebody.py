"""A check, made by a user who may do nothing."""

from __future__ import annotations

import json
import multiprocessing
import os
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bullpen.core.clock import SystemClock
from bullpen.core.settings import Settings
from bullpen.ops.doctor.examine import ALL_CHECKS, run_check
from bullpen.ops.doctor.installation import Installation, open_database
from tests.cli.command import Bullpen
from tests.cli.warm import PRELOADED
from tests.crash.disk import NOBODY
from tests.doctor.examined import settings_of

LIMIT = 120


def as_nobody(bullpen: Bullpen, *ids: str) -> dict[str, list[Any]]:
    """Of each check the state, the severity, and whether it could be put right."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    with TemporaryDirectory() as name:
        report = Path(name, "said")
        process = context.Process(target=_look, args=(settings_of(bullpen), ids, report))
        process.start()
        process.join(LIMIT)
        assert process.exitcode == 0
        process.close()
        found: dict[str, list[Any]] = json.loads(report.read_text())
        return found


def _look(settings: Settings, ids: tuple[str, ...], report: Path) -> None:
    import_module("tests.doctor.unhurried")
    with report.open("w") as file:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
        installation = Installation(settings, {}, SystemClock().now(), open_database(settings))
        said = [run_check(installation, each) for each in ALL_CHECKS if each.id in ids]
        found = {
            each.id: [each.state.value, each.severity.value, each.fix is not None] for each in said
        }
        json.dump(found, file)
