"""Deletes old files that nothing waiting names any more."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path, PurePath

from sqlalchemy import Table, bindparam, select

from bullpen.core.clock import DAY
from bullpen.core.models import GATHERED, MESSAGES, RESPONSES
from bullpen.core.models.base import const
from bullpen.core.store.base import Store
from bullpen.core.store.statement import Statement

PAGE_ROWS = 500
NANOSECONDS_PER_MILLISECOND = 1_000_000
"""In nanoseconds."""


def _file_references(table: Table) -> Statement[tuple[int, str]]:
    row = table.c
    return Statement(
        lambda: (
            select(row.id, row.files)
            .where(row.files.is_not(None), row.id > bindparam("after"))
            .order_by(row.id)
            .limit(const(PAGE_ROWS))
        )
    )


FILE_REFERENCES = tuple(_file_references(table) for table in (MESSAGES, RESPONSES, GATHERED))


def delete_unused_files(store: Store) -> str:
    """Delete what is older than `file_days`, of the directory of this machine's home."""
    days = store.settings.file_days
    if days == 0:
        return "kept for ever"
    old = list(_files_older_than(store.settings.files, store.clock.now() - days * DAY))
    named = _referenced_names(store) if old else frozenset()
    free = [path for path in old if path.name not in named]
    size = sum(_remove(path) for path in free)
    return f"{len(free)} deleted, {size} bytes; {len(old) - len(free)} are old and needed"


def _files_older_than(directory: Path, before: int) -> Iterator[Path]:
    try:
        entries = os.scandir(directory)
    except FileNotFoundError:
        return  # nobody has sent one yet
    with entries:
        for entry in entries:
            if entry.name.startswith(".") or not entry.is_file(follow_symlinks=False):
                continue
            try:
                changed = (
                    entry.stat(follow_symlinks=False).st_mtime_ns // NANOSECONDS_PER_MILLISECOND
                )
            except FileNotFoundError:
                continue  # removed just now
            if changed <= before:
                yield Path(entry.path)


def _referenced_names(store: Store) -> frozenset[str]:
    """The names of the files of all messages and responses that are not archived."""
    found: set[str] = set()
    for statement in FILE_REFERENCES:
        after = 0
        while True:
            with store.read() as tx:
                rows = tx.all(statement, {"after": after})
            found.update(PurePath(path).name for _, given in rows for path in json.loads(given))
            if len(rows) < PAGE_ROWS:
                break
            after = rows[-1][0]
    return frozenset(found)


def _remove(path: Path) -> int:
    """Delete it; gives its size."""
    try:
        size = path.lstat().st_size
        path.unlink()
    except FileNotFoundError:
        return 0
    return size
