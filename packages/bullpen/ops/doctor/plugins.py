"""Checks of plugins: whether each can be loaded, and whether its code can change."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from datetime import datetime
from importlib.metadata import Distribution, entry_points
from pathlib import Path

from bullpen.core.clock import SECOND
from bullpen.core.logs import last_lines
from bullpen.core.registry import CHANNELS, PLUGIN_GROUP, PROVIDERS, REPORTS, plugin_files
from bullpen.ops.doctor.check import PASSED, Problem, Severity, Verdict, check
from bullpen.ops.doctor.home import OTHERS_WRITE_MASK, open_to_others
from bullpen.ops.doctor.installation import Installation

LOG_LINES = 2000
MAX_ENTRIES = 4
ERROR_CHARS = 200

_LOADER = "bullpen.processor.plugins"
"""The logger of the processor's plugins."""
_LOGGED_ERROR = re.compile(rf"(\S+) \[ERROR\] {re.escape(_LOADER)}: (.*)")


@check("plugin.broken", Severity.WARNING)
def broken(installation: Installation) -> Problem | Verdict:
    """A plugin, or a provider, channel or report of an installed package, cannot be used."""
    files = list(_syntax_errors(installation.home))
    files += [each for each in _logged_errors(installation) if each not in files]
    entries = [*PROVIDERS.problems(), *CHANNELS.problems(), *REPORTS.problems()]
    problems = [*files, *map(str, entries)]
    if not problems:
        return PASSED
    more = f"; and {len(problems) - MAX_ENTRIES} more" if len(problems) > MAX_ENTRIES else ""
    what = f"the package {entries[0].package}" if entries and not files else "the plugin"
    return Problem(
        text="; ".join(problems[:MAX_ENTRIES]) + more,
        remedy=f"Fix or remove {what}, then run: bullpen restart processor",
    )


def _syntax_errors(home: Path) -> Iterator[str]:
    """The files that are not Python; none of them is run."""
    for _, each in plugin_files(home):
        try:
            compile(each.read_bytes(), each, "exec")
        except (SyntaxError, ValueError, OSError) as error:
            name = each.relative_to(home)
            where = f", line {error.lineno}" if isinstance(error, SyntaxError) else ""
            yield f"{name}{where}: {str(error)[:ERROR_CHARS]}"


def _logged_errors(installation: Installation) -> Iterator[str]:
    """The failures of plugins that the processor has logged since its start."""
    started = [
        each["started_at"]
        for each in installation.services or ()
        if each["name"] == "processor" and each["pid"]
    ]
    log = installation.settings.logs / "processor.log"
    if not started or not log.exists():
        return
    lines = last_lines(log, LOG_LINES)
    for number, line in enumerate(lines):
        if (found := _logged_error(line)) and found[0] * SECOND >= started[0]:
            cause = _end_of_traceback(lines[number + 1 :])
            yield f"{found[1]}{f' ({cause})' if cause else ''}"[:ERROR_CHARS]


def _logged_error(line: str) -> tuple[float, str] | None:
    """The time and the text, if this line of the log is an error of a plugin."""
    if line.startswith('{"at"'):
        entry = json.loads(line)
        if (entry["logger"], entry["level"]) != (_LOADER, "error"):
            return None
        at, text = entry["at"], entry["text"]
    elif found := _LOGGED_ERROR.fullmatch(line):
        at, text = found.groups()
    else:
        return None
    return datetime.fromisoformat(at).timestamp(), text


def _end_of_traceback(lines: list[str]) -> str:
    """The error that the traceback at the beginning of these lines ends with."""
    for line in lines:
        if line and not line.startswith((" ", "Traceback ")):
            return "" if line[:1].isdigit() or line.startswith("{") else line
    return ""


GROUPS = (PLUGIN_GROUP, PROVIDERS.group, CHANNELS.group, REPORTS.group)
MAX_PLUGINS_SHOWN = 4


@check("plugin.unpinned", Severity.WARNING)
def unpinned(installation: Installation) -> Problem | Verdict:
    """The code of a plugin can change without a new installation."""
    found = [*_changeable_files(installation), *_packages()]
    if not found:
        return PASSED
    return Problem(
        text="the code of these plugins can change without a new installation: "
        + ", ".join(found[:MAX_PLUGINS_SHOWN]),
        remedy="Remove the permissions of other users; copy files instead of linking them;"
        " install packages by version and hash.",
        severity=Severity.CRITICAL if any("writable" in each for each in found) else None,
    )


def _changeable_files(installation: Installation) -> Iterator[str]:
    directory = installation.home / "plugins"
    if not directory.is_dir():
        return
    mine = directory.stat().st_uid
    for _, each in plugin_files(installation.home):
        real = Path(os.path.realpath(each))
        if open_to_others(real, OTHERS_WRITE_MASK) or real.stat().st_uid not in (mine, 0):
            yield f"{each.name} (writable by other users)"
        elif not real.is_relative_to(os.path.realpath(directory)):
            yield f"{each.name} (a link to {real})"


def _packages() -> Iterator[str]:
    points = [each for group in GROUPS for each in entry_points(group=group)]
    for point in points:
        if point.dist is not None and (why := _why_unpinned(point.dist)):
            yield f"{point.dist.name} ({why})"


def _why_unpinned(package: Distribution) -> str:
    """The reason why a package's version does not fix its code; empty if it does."""
    try:
        origin = json.loads(package.read_text("direct_url.json") or "{}")
    except ValueError:
        return "its origin is unknown"
    if origin.get("dir_info", {}).get("editable"):
        return "it runs from a directory"
    archive = origin.get("archive_info")
    if archive is not None and not (archive.get("hash") or archive.get("hashes")):
        return "installed from a URL without a hash"
    return ""


CHECKS = (broken, unpinned)
