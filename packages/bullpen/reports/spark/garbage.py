"""Garbage: files that no manifest names.

A file that a run replaced is kept until two more runs have finished, because a reader may still use
the manifest of before. A file that no manifest has ever named is left of a run that was killed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from bullpen.reports.manifest import Manifest

KEPT_RUNS = 2

_WRITTEN = (
    *("facts/*/date=*/*.parquet", "facts/*/date=*/.*.parquet.part"),
    *("results/*/month=*/*.parquet", "results/*/month=*/.*.parquet.part"),
)
"""The files that runs write. Others in the directory are not ours."""


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
