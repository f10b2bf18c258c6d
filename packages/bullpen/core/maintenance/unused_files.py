"""Deletes old uploaded files to which no live message or response refers."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path, PurePath

from sqlalchemy import Table, bindparam, select

from bullpen.core.clock import DAY
from bullpen.core.file_records import forget_files, list_uploads
from bullpen.core.models import GATHERED, MESSAGES, RESPONSES
from bullpen.core.models.base import const, decode_texts
from bullpen.core.store.base import Store
from bullpen.core.store.statement import Statement

PAGE_ROWS = 500
NANOSECONDS_PER_MILLISECOND = 1_000_000


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
    """Delete the files in this home that are older than `file_days` and not referred to."""
    days = store.settings.file_days
    if days == 0:
        return "kept for ever"
    old = list(_files_older_than(store.settings.files, store.clock.now() - days * DAY))
    referenced = _referenced_names(store) if old else frozenset()
    free = [path for path in old if path.name not in referenced]
    size = sum(_remove(path) for path in free)
    _forget_deleted(store, [path.name for path in free])
    return f"{len(free)} deleted, {size} bytes; {len(old) - len(free)} are old and needed"


def _forget_deleted(store: Store, deleted: list[str]) -> None:
    """Delete the records of these files, and of uploads that a person has deleted."""
    with store.read() as tx:
        uploads = list_uploads(tx)
    gone = [each for each in uploads if not (store.settings.files / each).exists()]
    names = list(dict.fromkeys((*deleted, *gone)))
    for first in range(0, len(names), PAGE_ROWS):
        with store.write() as tx:
            forget_files(tx, names[first : first + PAGE_ROWS])


def _files_older_than(directory: Path, before: int) -> Iterator[Path]:
    try:
        entries = os.scandir(directory)
    except FileNotFoundError:
        return  # none was uploaded yet
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
    """The file names in all messages and responses that are not archived."""
    names: set[str] = set()
    for statement in FILE_REFERENCES:
        after = 0
        while True:
            with store.read() as tx:
                rows = tx.all(statement, {"after": after})
            names.update(PurePath(path).name for _, files in rows for path in decode_texts(files))
            if len(rows) < PAGE_ROWS:
                break
            after = rows[-1][0]
    return frozenset(names)


def _remove(path: Path) -> int:
    """Delete a file; gives its size, 0 if it is gone already."""
    try:
        size = path.lstat().st_size
        path.unlink()
    except FileNotFoundError:
        return 0
    return size
