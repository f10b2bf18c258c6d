"""Checks for secrets that other users can read. No finding shows a secret."""

from __future__ import annotations

import mmap
import os
import re
import stat
from collections.abc import Iterable
from pathlib import Path

from bullpen.core.settings.parse import (
    DATABASE_SETTING,
    SETTINGS_FILE,
    check_values,
    read_settings,
)
from bullpen.core.settings.values import is_secret
from bullpen.core.text import url_secrets
from bullpen.ops.doctor.check import PASSED, Problem, Severity, Verdict, check, skipped
from bullpen.ops.doctor.home import OTHERS_MASK, make_private, mode_of, open_to_others
from bullpen.ops.doctor.installation import Installation

MIN_SECRET_CHARS = 8
"""Shorter secrets occur by chance inside words."""
LOG_TAIL_BYTES = 2 << 20
"""The number of bytes searched at the end of each log without --deep."""
MAX_FILES_SHOWN = 3

_BULLPEN_TOKEN = re.compile(rb"(?<![A-Za-z0-9])bp_[A-Za-z0-9_-]{30,}")
"""A token or API key of Bullpen."""
_WORD_BYTES = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")


@check("secret.in_config", Severity.WARNING)
def in_config(installation: Installation) -> Problem | Verdict:
    """Other users have permissions on a settings file that contains secrets."""
    path = installation.home / SETTINGS_FILE
    old = installation.home / f"{SETTINGS_FILE}.bak"
    wrong = [
        each for each in (path, old) if (mode_of(each) or 0) & OTHERS_MASK and _has_secrets(each)
    ]
    if not wrong:
        return PASSED
    reach = [each for each in wrong if open_to_others(each)]
    return Problem(
        text=f"other users have permissions on {' and '.join(each.name for each in wrong)}"
        f" (mode {mode_of(wrong[0]) or 0:o}), which contains secrets"
        + ("" if reach else "; only the permissions of the home keep them out"),
        remedy=f"chmod 600 {' '.join(map(str, wrong))}" + ("; change the secrets" if reach else ""),
        severity=Severity.CRITICAL if reach else None,
        fix=make_private(wrong),
    )


def _has_secrets(path: Path) -> bool:
    found = read_settings(path)
    if not found.readable:
        return True  # it may have some
    url = str(found.values.get(DATABASE_SETTING, ""))
    values, _ = check_values(found)
    return bool(url_secrets(url)) or any(is_secret(name) and values[name] for name in values)


@check("secret.in_argv", Severity.CRITICAL)
def in_argv(installation: Installation) -> Problem | Verdict:
    """A process has a secret in its arguments, which every user of this machine can read."""
    known = [each for each in installation.secrets if len(each) >= MIN_SECRET_CHARS]
    found = [
        each
        for each in installation.processes
        if _contains_secret(os.fsencode("\0".join(each.arguments)), known)
    ]
    if not found:
        return PASSED
    names = ", ".join(str(each) for each in found[:MAX_FILES_SHOWN])
    return Problem(
        text=f"{names} has a secret in its arguments, which every user of this machine can read",
        remedy="End the process, change the secret, and pass it in the environment or a file.",
    )


@check("secret.log_hit", Severity.CRITICAL, seconds=2.5)
def log_hit(installation: Installation) -> Problem | Verdict:
    """A log contains a secret (the end of each log; with --deep, all of it)."""
    logs = installation.settings.logs
    if not logs.is_dir():
        return skipped("there are no logs yet")
    known = [each for each in installation.secrets if len(each) >= MIN_SECRET_CHARS]
    hit = [
        each
        for each in _logs(logs)
        if _in_file(each, known, None if installation.deep else LOG_TAIL_BYTES)
    ]
    if not hit:
        return PASSED
    shown = hit[:MAX_FILES_SHOWN]
    return Problem(
        text=f"secret found in {', '.join(each.name for each in shown)}",
        remedy=f"Change the secret, then run: rm {' '.join(map(str, shown))}; bullpen restart",
    )


def _logs(directory: Path) -> list[Path]:
    return sorted(each for each in directory.rglob("*") if stat.S_ISREG(each.lstat().st_mode))


def _in_file(path: Path, known: Iterable[str], last: int | None) -> bool:
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        if size == 0:
            return False
        if last is not None:
            file.seek(max(0, size - last))
            return _contains_secret(file.read(), known)
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return _contains_secret(data, known)


def _contains_secret(data: bytes | mmap.mmap, known: Iterable[str]) -> bool:
    return _BULLPEN_TOKEN.search(data) is not None or any(
        _contains_word(data, each.encode()) for each in known
    )


def _contains_word(data: bytes | mmap.mmap, secret: bytes) -> bool:
    """Whether it occurs as a whole word."""
    at = data.find(secret)
    while at >= 0:
        before = data[at - 1 : at] if at else b""
        after = data[at + len(secret) : at + len(secret) + 1]
        if not _WORD_BYTES.intersection(before + after):
            return True
        at = data.find(secret, at + 1)
    return False


CHECKS = (in_config, in_argv, log_hit)
