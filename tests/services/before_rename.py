"""Imported by a command before it begins: its supervisor knows the crash guard as `minder`."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from bullpen.ops.services import launch, programs
from bullpen.ops.services.programs import ServiceProgram

OLD, NEW = "minder", "guard"
include_paths = programs.include_paths


def _include_paths(services: Iterable[ServiceProgram]) -> str:
    services = list(services)
    (guard,) = (each for each in services if each.name == NEW)
    old = Path(os.environ["BULLPEN_HOME"]) / f"{OLD}.conf"
    old.write_text(guard.file.read_text().replace(NEW, OLD))
    others = include_paths(each for each in services if each is not guard)
    return f"{old} {others}"


vars(launch)["include_paths"] = _include_paths
