"""Upkeep of the files: small ones are merged, damaged ones are found, unnamed ones are deleted.

Runs of every hour leave a file of each day for each of them. A reader needs more time to open them
than to read them, so the files of a day that is over become one. A file that a run replaced is kept
until two more runs have finished, because a reader may still use the manifest of before. A file
that no manifest has ever named is left of a run that was killed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

from bullpen.reports.job.parquet import GROUP_ROWS, is_readable, read_parquet, write_parquet
from bullpen.reports.job.progress import Progress, Step, Tell
from bullpen.reports.manifest import FactFile, Manifest, ResultFile

FEW_FILES = 2
"""A full run leaves up to two files of a day: a day can begin within a range of ids."""

KEPT_RUNS = 2

_WRITTEN = (
    *("facts/*/date=*/*.parquet", "facts/*/date=*/.*.parquet.part"),
    *("results/*/month=*/*.parquet", "results/*/month=*/.*.parquet.part"),
)
"""The files that runs write. Others in the directory are not ours."""


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


def has_wrong_size(directory: Path, file: FactFile | ResultFile) -> bool:
    """Whether a file is missing, or is not as long as it was written."""
    try:
        return (directory / file.name).stat().st_size != file.bytes
    except OSError:
        return True


def unreadable_files(directory: Path, manifest: Manifest) -> set[str]:
    """The files with a value that cannot be read. It reads all of them."""
    files: Iterable[FactFile | ResultFile] = (
        *(each for facts in manifest.facts.values() for each in facts.files),
        *(each for results in manifest.results.values() for each in results),
    )
    return {each.name for each in files if not is_readable(directory / each.name)}


def list_files(manifest: Manifest) -> Iterator[str]:
    """The files that count."""
    for facts in manifest.facts.values():
        yield from (each.name for each in facts.files)
    for results in manifest.results.values():
        yield from (each.name for each in results)


def unused_files(before: Manifest, after: Manifest) -> Mapping[str, int]:
    """The files that the manifest no longer names and that are still kept, each with its run."""
    gone = {*list_files(before)} - {*list_files(after)}
    kept = {name: run for name, run in before.unused.items() if after.run - run < KEPT_RUNS}
    return kept | dict.fromkeys(sorted(gone), after.run)


def delete_unnamed(directory: Path, manifest: Manifest | None) -> None:
    """Delete the files that the manifest neither names nor keeps."""
    named = set() if manifest is None else {*list_files(manifest), *manifest.unused}
    for pattern in _WRITTEN:
        for path in directory.glob(pattern):
            if str(path.relative_to(directory)) not in named:
                path.unlink(missing_ok=True)
                _remove_empty(path.parent)


def _remove_empty(path: Path) -> None:
    with suppress(OSError):  # it has other files
        path.rmdir()
