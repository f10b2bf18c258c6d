"""Compaction: the many small files of a day that is over become one.

Runs of every hour leave a file for each of them. A reader needs more time to open them than to read
them. Large files stay as they are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from uuid import uuid4

from bullpen.reports.manifest import FactFile
from bullpen.reports.spark.parquet import GROUP_ROWS, read_parquet, write_parquet
from bullpen.reports.spark.progress import Progress, Step, Tell

FEW_FILES = 2
"""A full run leaves up to two files of a day: a day can begin within a range of ids."""


def compact(
    directory: Path,
    table: str,
    files: Iterable[FactFile],
    today: str,
    tell: Tell,
) -> tuple[FactFile, ...]:
    """Replace the small files of each day before `today`; returns the files that count then."""
    by_date: dict[str, list[FactFile]] = defaultdict(list)
    for each in files:
        by_date[each.date].append(each)
    compacted: list[FactFile] = []
    for day, found in sorted(by_date.items()):
        rows = sum(each.rows for each in found)
        if day < today and len(found) > FEW_FILES + rows // GROUP_ROWS:
            tell(Progress(Step.COMPACTING, table, rows, text=day))
            compacted.append(_merge(directory, table, found))
        else:
            compacted += found
    return tuple(compacted)


def _merge(directory: Path, table: str, files: list[FactFile]) -> FactFile:
    """Write the rows of these files as one file, in the order of their ids."""
    files = sorted(files, key=lambda each: each.first)
    first, last = files[0].first, max(each.last for each in files)
    name = f"facts/{table}/date={files[0].date}/{first}-{last}-{uuid4().hex[:8]}.parquet"
    size = write_parquet(directory / name, (read_parquet(directory / each.name) for each in files))
    return FactFile(
        name=name,
        date=files[0].date,
        rows=sum(each.rows for each in files),
        first=first,
        last=last,
        earliest=min(each.earliest for each in files),
        latest=max(each.latest for each in files),
        bytes=size,
    )
