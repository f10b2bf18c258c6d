"""Checks of plugins: code of others that runs with all of your rights."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from importlib.metadata import Distribution, entry_points
from pathlib import Path

from bullpen.core.doctor.check import PASSED, Problem, Severity, Verdict, check
from bullpen.core.doctor.patient import Installation
from bullpen.core.doctor.rights import OTHERS_WRITE_MASK, open_to_others
from bullpen.core.roster.provider_names import ENTRY_POINT_GROUP as PROVIDERS

GROUPS = ("bullpen.plugins", PROVIDERS)
MAX_PLUGINS_SHOWN = 4


@check("plugin.unpinned", Severity.WARNING)
def unpinned(patient: Installation) -> Problem | Verdict:
    """A plugin can become another one without anybody installing it."""
    found = [*_files(patient), *_packages()]
    if not found:
        return PASSED
    return Problem(
        text=f"these can change by themselves: {', '.join(found[:MAX_PLUGINS_SHOWN])}",
        remedy="Take the rights of others away; copy what is linked; install packages by version"
        " and hash.",
        severity=Severity.CRITICAL if any("others" in each for each in found) else None,
    )


def _files(patient: Installation) -> Iterator[str]:
    directory = patient.home / "plugins"
    if not directory.is_dir():
        return
    mine = directory.stat().st_uid
    for each in sorted((*directory.glob("*.py"), *directory.glob("*/__init__.py"))):
        if each.name.startswith((".", "_")) and each.name != "__init__.py":
            continue
        real = Path(os.path.realpath(each))
        if open_to_others(real, OTHERS_WRITE_MASK) or real.stat().st_uid not in (mine, 0):
            yield f"{each.name} (others may write it)"
        elif not real.is_relative_to(os.path.realpath(directory)):
            yield f"{each.name} (a link to {real})"


def _packages() -> Iterator[str]:
    points = [each for group in GROUPS for each in entry_points(group=group)]
    for point in points:
        if point.dist is not None and (why := _why_unpinned(point.dist)):
            yield f"{point.dist.name} ({why})"


def _why_unpinned(package: Distribution) -> str:
    """Why an installed package is not fixed; empty if its version says what it is."""
    try:
        origin = json.loads(package.read_text("direct_url.json") or "{}")
    except ValueError:
        return "nobody can tell where it is from"
    if origin.get("dir_info", {}).get("editable"):
        return "it runs from a directory"
    archive = origin.get("archive_info")
    if archive is not None and not (archive.get("hash") or archive.get("hashes")):
        return "from an address, without a hash"
    return ""


PLUGIN_CHECKS = (unpinned,)
