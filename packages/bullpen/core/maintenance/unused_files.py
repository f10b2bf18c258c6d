"""Deletes old uploaded files that no stored message or response uses."""

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
from bullpen.core.text import format_count

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
    """Delete files of this home that are older than `file_days` and unused."""
    days = store.settings.file_days
    if days == 0:
        return "kept forever"
    old = list(_files_older_than(store.settings.files, store.clock.now() - days * DAY))
    referenced = _referenced_names(store) if old else frozenset()
    free = [path for path in old if path.name not in referenced]
    size = sum(_remove(path) for path in free)
    _forget_deleted(store, [path.name for path in free])
    return (
        f"{format_count(len(free), 'file')} deleted ({format_count(size, 'byte')}); "
        f"{len(old) - len(free)} old but in use"
    )


def _forget_deleted(store: Store, deleted: list[str]) -> None:
    """Delete the records of these files, and of uploads that were deleted by hand."""
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
        return  # no uploads yet
    with entries:
        for entry in entries:
            if entry.name.startswith(".") or not entry.is_file(follow_symlinks=False):
                continue
            try:
                changed = (
                    entry.stat(follow_symlinks=False).st_mtime_ns // NANOSECONDS_PER_MILLISECOND
                )
            except FileNotFoundError:
                continue  # removed meanwhile
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
    """Delete a file; returns its size, 0 if it does not exist."""
    try:
        size = path.lstat().st_size
        path.unlink()
    except FileNotFoundError:
        return 0
    return size
