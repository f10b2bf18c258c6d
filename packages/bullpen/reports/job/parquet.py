"""Parquet files: written whole or not at all, and read with their checksums."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from bullpen.core.errors import ReportsDamaged
from bullpen.core.files import PRIVATE_DIRECTORY_MODE, PRIVATE_FILE_MODE, fsync_path

if TYPE_CHECKING:
    import pyarrow as pa

GROUP_ROWS = 250_000
"""The least rows of a row group, if there are as many: small groups make files large and slow."""

SAMPLE_ROWS = 4_096
"""The rows that decide which columns get a dictionary."""


@contextmanager
def new_file(path: Path) -> Iterator[Path]:
    """Yield a path to write to; the file gets its name when it is complete and on the disk."""
    _make_private(path.parent)
    temporary = path.with_name(f".{path.name}.part")
    try:
        os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, PRIVATE_FILE_MODE))
        yield temporary
        fsync_path(temporary)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    fsync_path(path.parent)


def _make_private(directory: Path) -> None:
    """Create a directory and those above it, all for the owner only."""
    if not directory.is_dir():
        _make_private(directory.parent)
        directory.mkdir(mode=PRIVATE_DIRECTORY_MODE, exist_ok=True)


def write_parquet(path: Path, tables: Iterable[pa.Table]) -> int:
    """Write tables of one schema as one file; returns its size in bytes."""
    import pyarrow.parquet as pq

    with new_file(path) as temporary:
        writer: pq.ParquetWriter | None = None
        try:
            for rows in _in_groups(tables):
                if writer is None:
                    writer = pq.ParquetWriter(
                        temporary,
                        rows.schema,
                        compression="zstd",
                        use_dictionary=_repeating_columns(rows),
                        write_page_checksum=True,
                    )
                writer.write_table(rows)
        finally:
            if writer is not None:
                writer.close()
    return path.stat().st_size


def _repeating_columns(rows: pa.Table) -> list[str]:
    """The columns whose values repeat: a dictionary of others takes more time and space."""
    import pyarrow.compute as pc

    sample = rows.slice(0, SAMPLE_ROWS)
    distinct = {each: pc.count_distinct(sample[each]).as_py() for each in sample.column_names}
    return [name for name, count in distinct.items() if count * 2 <= sample.num_rows]


def _in_groups(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    import pyarrow as pa

    waiting: list[pa.Table] = []
    for each in tables:
        waiting.append(each)
        if sum(one.num_rows for one in waiting) >= GROUP_ROWS:
            yield pa.concat_tables(waiting)
            waiting = []
    if waiting:
        yield pa.concat_tables(waiting)


def read_parquet(path: Path) -> pa.Table:
    """The rows of a file; raises ReportsDamaged if it is missing or damaged."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            return file.read()
    except (OSError, pa.ArrowException) as error:
        raise ReportsDamaged(f"{path} cannot be read: {error}") from error


def is_readable(path: Path) -> bool:
    """Whether every value of the file can be read."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            for _ in file.iter_batches():
                pass
    except (OSError, pa.ArrowException):
        return False
    return True
