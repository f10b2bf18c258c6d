"""Checks of the files and permissions of the home."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path

import psutil

from bullpen.core.settings.parse import SETTINGS_FILE
from bullpen.ops.doctor.check import (
    PASSED,
    Fix,
    Problem,
    Severity,
    Verdict,
    check,
    skipped,
    unknown,
)
from bullpen.ops.doctor.installation import Installation

OTHERS_MASK = 0o077
OTHERS_WRITE_MASK = 0o022
PRIVATE_MODE, PRIVATE_DIRECTORY_MODE = 0o600, 0o700


def mode_of(path: Path) -> int | None:
    """The permissions of a file; None if it is missing or cannot be examined."""
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except OSError:
        return None


def open_to_others(path: Path, rights: int = OTHERS_MASK) -> bool:
    """Whether another user has one of these permissions, and access to the directories above."""
    mode = mode_of(path)
    if mode is None or not mode & rights:
        return False
    above = [mode_of(each) or 0 for each in Path(os.path.realpath(path)).parents]
    by_all = mode & rights & 0o007 and all(each & 0o001 for each in above)
    by_group = mode & rights & 0o070 and all(each & 0o011 for each in above)
    return bool(by_all or by_group)


def make_private(paths: Iterable[Path]) -> Fix:
    """The fix that removes the permissions of all users except the owner."""
    found = [(each, PRIVATE_DIRECTORY_MODE if each.is_dir() else PRIVATE_MODE) for each in paths]

    def apply() -> None:
        for path, mode in found:
            with suppress(FileNotFoundError):  # some of SQLite's come and go
                path.chmod(mode)

    return Fix(steps=tuple(f"chmod {mode:o} {path}" for path, mode in found), apply=apply)


def format_paths(paths: Iterable[Path], home: Path, most: int = 4) -> str:
    """Some paths as text; paths below the home are relative to it."""
    names = [
        str(each.relative_to(home)) if each.is_relative_to(home) else str(each) for each in paths
    ]
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


MAX_FILES = 2000
"""Files that are examined."""

SYNCED_DIRECTORIES = {
    "dropbox": "Dropbox",
    "onedrive": "OneDrive",
    "google drive": "Google Drive",
    "googledrive": "Google Drive",
    "my drive": "Google Drive",
    "icloud drive": "iCloud",
    "mobile documents": "iCloud",
    "nextcloud": "Nextcloud",
    "owncloud": "ownCloud",
    "seafile": "Seafile",
    "pcloud": "pCloud",
    "pclouddrive": "pCloud",
    "megasync": "MEGA",
    "syncthing": "Syncthing",
}
"""Names of directories that a program synchronises to other machines, and the program."""

SYNC_MARKERS = {".stfolder": "Syncthing", ".dropbox": "Dropbox", ".sync": "a synchronising program"}
"""Files that mark a synchronised directory."""

REMOTE_FILE_SYSTEMS = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "9p", "fuse.sshfs", "fuse.rclone"}
)
"""File systems of other machines, whose locks SQLite cannot trust."""


def _skip_without_home(installation: Installation) -> Verdict | None:
    return None if installation.home.is_dir() else skipped("there is no home yet")


@check("fs.home_missing", Severity.INFO)
def home_missing(installation: Installation) -> Problem | Verdict:
    """The home does not exist, or its path is not a directory."""
    home = installation.home
    if home.is_dir():
        return PASSED
    if os.path.lexists(home):
        return Problem(
            text=f"{home} is not a directory",
            remedy="Move it away, or set BULLPEN_HOME to another path.",
            severity=Severity.CRITICAL,
        )
    return Problem(text=f"there is no home at {home} yet", remedy="bullpen up")


@check("fs.home_perms", Severity.CRITICAL)
def home_perms(installation: Installation) -> Problem | Verdict:
    """Other users can read the home, or write to directories in it."""
    if absent := _skip_without_home(installation):
        return absent
    home, settings = installation.home, installation.settings
    wrong = [home] if (mode_of(home) or 0) & OTHERS_MASK else []
    below = (settings.run, settings.sockets, settings.logs, settings.files, home / "plugins")
    wrong += [each for each in dict.fromkeys(below) if (mode_of(each) or 0) & OTHERS_WRITE_MASK]
    if not wrong:
        return PASSED
    told = [f"{each} ({mode_of(each) or 0:o})" for each in wrong]
    return Problem(
        text=f"other users have permissions on {', '.join(told)}",
        remedy=f"chmod 700 {' '.join(map(str, wrong))}",
        fix=make_private(wrong),
    )


@check("fs.db_perms", Severity.CRITICAL)
def db_perms(installation: Installation) -> Problem | Verdict:
    """Other users can read or write the database's files."""
    file = installation.database.file
    if file is None:
        return skipped("the database is on PostgreSQL")
    files = [file, *(file.with_name(file.name + each) for each in ("-wal", "-shm", "-turn"))]
    wrong = [each for each in files if open_to_others(each)]
    if not wrong:
        return PASSED
    return Problem(
        text=f"other users have permissions on {format_paths(wrong, installation.home)}",
        remedy=f"chmod 600 {' '.join(map(str, wrong))}",
        fix=make_private(wrong),
    )


@check("fs.token_perms", Severity.CRITICAL)
def token_perms(installation: Installation) -> Problem | Verdict:
    """Other users can read the owner's token; the API refuses to start."""
    token = installation.settings.token_file
    mode = mode_of(token)
    if mode is None:
        return skipped("there is no token yet")
    if not mode & OTHERS_MASK:
        return PASSED
    return Problem(
        text=f"{token} has mode {mode:o}: other users can read it, and the API refuses to start",
        remedy=f"chmod 600 {token}; if other users could read it, delete it: Bullpen creates a new"
        " one",
        fix=make_private([token]),
    )


@check("fs.owner", Severity.CRITICAL)
def owner(installation: Installation) -> Problem | Verdict:
    """Files in the home belong to another user, for example after `sudo bullpen`."""
    if absent := _skip_without_home(installation):
        return absent
    found = installation.home.stat()
    if os.geteuid() not in (0, found.st_uid):
        return Problem(
            text=f"{installation.home} belongs to user {found.st_uid}; you are user {os.geteuid()}",
            remedy="Run Bullpen as that user, or set BULLPEN_HOME to a home of your own.",
        )
    strange = [each for each in _files(installation) if _owner_of(each) not in (None, found.st_uid)]
    if not strange:
        return PASSED
    return Problem(
        text=f"not owned by the owner of the home: {format_paths(strange, installation.home)}",
        remedy=f"sudo chown -R {found.st_uid}:{found.st_gid} {installation.home}",
        fix=_chown_fix(strange, found) if os.geteuid() == 0 else None,
    )


def _files(installation: Installation) -> Iterator[Path]:
    """The entries of the home and of its directories; links are not followed."""
    for each in islice(installation.home.iterdir(), MAX_FILES):
        yield each
        if each.is_dir() and not each.is_symlink() and os.access(each, os.R_OK | os.X_OK):
            yield from islice(each.iterdir(), MAX_FILES)


def _owner_of(path: Path) -> int | None:
    try:
        return path.lstat().st_uid
    except OSError:  # deleted meanwhile
        return None


def _chown_fix(paths: list[Path], to: os.stat_result) -> Fix:
    def apply() -> None:
        for path in paths:
            os.chown(path, to.st_uid, to.st_gid, follow_symlinks=False)

    step = f"chown -h {to.st_uid}:{to.st_gid}"
    return Fix(steps=tuple(f"{step} {each}" for each in paths), apply=apply)


@check("fs.read_only", Severity.CRITICAL)
def read_only(installation: Installation) -> Problem | Verdict:
    """The home or the database file is not writable."""
    if absent := _skip_without_home(installation):
        return absent
    file = installation.database.file
    places = [installation.home, *([file] if file is not None and file.exists() else [])]
    shut = [each for each in places if not os.access(each, os.W_OK)]
    if not shut:
        return PASSED
    whole = os.statvfs(installation.home).f_flag & os.ST_RDONLY
    return Problem(
        text=f"not writable: {format_paths(shut, installation.home.parent)}"
        + (" (the disk is read-only)" if whole else ""),
        remedy="Check dmesg for disk errors, then run: mount -o remount,rw"
        if whole
        else f"chmod u+rwX {' '.join(map(str, shut))}",
    )


@check("fs.missing", Severity.WARNING)
def directories_missing(installation: Installation) -> Problem | Verdict:
    """Directories of running services are missing."""
    if installation.services is None:
        return skipped("Bullpen is not running")
    gone = [
        each
        for each in (installation.settings.logs, installation.settings.run)
        if not each.is_dir()
    ]
    if not gone:
        return PASSED

    def apply() -> None:
        for each in gone:
            each.mkdir(mode=0o700)

    return Problem(
        text=f"missing while services run: {format_paths(gone, installation.home)}",
        remedy=f"mkdir -m 700 {' '.join(map(str, gone))}; bullpen restart",
        fix=Fix(steps=tuple(f"mkdir -m 700 {each}" for each in gone), apply=apply),
    )


@check("fs.config_symlink", Severity.WARNING)
def config_symlink(installation: Installation) -> Problem | Verdict:
    """settings.toml or the token is a symbolic link."""
    links = [
        each
        for each in (installation.home / SETTINGS_FILE, installation.settings.token_file)
        if each.is_symlink()
    ]
    if not links:
        return PASSED
    targets = [Path(os.path.realpath(each)) for each in links]
    strange = [each for each in targets if _changeable_by_others(each, installation.home)]
    told = ", ".join(f"{each.name} links to {to}" for each, to in zip(links, targets, strict=True))
    if strange:
        return Problem(
            text=f"{told}, which other users can change",
            remedy="Replace the link by a file, or remove the permissions of other users.",
            severity=Severity.CRITICAL,
        )
    return Problem(
        text=told,
        remedy="No action is needed if the target is yours, for example a directory of dot files.",
        severity=Severity.INFO,
    )


def _changeable_by_others(path: Path, home: Path) -> bool:
    try:
        found = path.stat()
    except OSError:
        return False
    mine = (home.stat().st_uid, 0)
    return found.st_uid not in mine or any(
        open_to_others(each, OTHERS_WRITE_MASK) and not each.stat().st_mode & stat.S_ISVTX
        for each in (path, path.parent)
    )


@check("fs.synced_dir", Severity.WARNING)
def synced_dir(installation: Installation) -> Problem | Verdict:
    """The home is in a synchronised directory, or on a network file system."""
    if absent := _skip_without_home(installation):
        return absent
    home = Path(os.path.realpath(installation.home))
    for each in (home, *home.parents):
        program = SYNCED_DIRECTORIES.get(each.name.lower().partition(" - ")[0])
        program = program or next(
            (SYNC_MARKERS[m] for m in SYNC_MARKERS if (each / m).exists()), None
        )
        if program is not None and each.parent != each:
            return Problem(
                text=f"{installation.home} is below {each}, which {program} synchronises:"
                " secrets leave this machine, and copying a database during a write damages it",
                remedy=f"bullpen down; move {installation.home} to another directory; set"
                " BULLPEN_HOME",
            )
    return _check_remote_file_system(installation, home)


def _check_remote_file_system(installation: Installation, home: Path) -> Problem | Verdict:
    if installation.database.file is None:
        return PASSED
    try:
        disks = psutil.disk_partitions(all=True)
    except OSError:
        return unknown("the list of mounted disks cannot be read")
    at = [each for each in disks if home.is_relative_to(each.mountpoint)]
    disk = max(at, key=lambda each: len(each.mountpoint), default=None)
    if disk is None or disk.fstype not in REMOTE_FILE_SYSTEMS:
        return PASSED
    return Problem(
        text=f"the database is on {disk.fstype} ({disk.mountpoint}), where file locks do not work",
        remedy="Move the home to a local disk, or use PostgreSQL (`database_url`).",
        severity=Severity.CRITICAL,
    )


CHECKS = (
    home_missing,
    home_perms,
    db_perms,
    token_perms,
    owner,
    read_only,
    directories_missing,
    config_symlink,
    synced_dir,
)
