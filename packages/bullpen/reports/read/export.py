"""Export: the rows of a view or a table as a file of CSV, JSON or Parquet."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from bullpen.core.errors import InTheWay, NotFound
from bullpen.core.files import fsync_path
from bullpen.reports.manifest import Manifest
from bullpen.reports.read.answer import Question, select_answer, select_rows
from bullpen.reports.read.catalog import Freshness, freshness_of
from bullpen.reports.read.database import quote_text, read_tables
from bullpen.reports.read.filter import check_filter

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


class Format(StrEnum):
    """The format of an export."""

    CSV = "csv"
    JSON = "json"
    PARQUET = "parquet"


_COPY_OPTIONS = {
    Format.CSV: "FORMAT csv, HEADER",
    Format.JSON: "FORMAT json, ARRAY",
    Format.PARQUET: "FORMAT parquet, COMPRESSION zstd",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Export:
    """What was written."""

    rows: int
    bytes: int
    freshness: Freshness


def export_to_file(
    directory: Path, question: Question, form: Format, path: Path, *, replace: bool = False
) -> Export:
    """Write the rows to a file, completely or not at all; an existing one only with `replace`."""
    if not replace and os.path.lexists(path):
        raise _exists(path)
    if not path.parent.is_dir():
        raise NotFound(f"the directory {path.parent} does not exist", hint="Create it first.")
    with _temporary_file(path.parent, path.name) as temporary:
        export = write_rows(directory, question, form, temporary)
        fsync_path(temporary)
        if replace:
            temporary.replace(path)
        else:
            _link(temporary, path)
    fsync_path(path.parent)
    return export


def write_rows(directory: Path, question: Question, form: Format, path: Path) -> Export:
    """Write the rows over an existing file. Days are dates, and times are milliseconds."""
    check_filter(question.report, question.filter)

    def write(database: DuckDBPyConnection, manifest: Manifest) -> Export:
        rows = select_answer(database, question)
        database.execute(
            f"COPY ({select_rows(question)}) TO {quote_text(str(path))}"
            f" ({_COPY_OPTIONS[form]}, USE_TMP_FILE false)"
        )
        freshness = freshness_of(manifest, question.report)
        return Export(rows=rows, bytes=path.stat().st_size, freshness=freshness)

    return read_tables(directory, question.tables, question.filter, write)


@contextmanager
def _temporary_file(directory: Path, name: str) -> Iterator[Path]:
    """An empty file that is removed at the end, if it still has its name."""
    number, made = tempfile.mkstemp(prefix=f".{name}.", dir=directory)
    os.close(number)
    try:
        yield Path(made)
    finally:
        Path(made).unlink(missing_ok=True)


def _link(temporary: Path, path: Path) -> None:
    """Give a file its name, unless another one has it by now."""
    try:
        path.hardlink_to(temporary)
    except FileExistsError:
        raise _exists(path) from None
    except OSError:  # the file system has no hard links
        temporary.replace(path)


def _exists(path: Path) -> InTheWay:
    return InTheWay(f"{path} already exists", hint="Use --force to replace it.")
