"""Damage: files of facts that are missing or cannot be read, landed again from the store."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from bullpen.core.errors import ReportsDamaged
from bullpen.core.text import format_count
from bullpen.reports.facts.read import RANGE_ROWS
from bullpen.reports.manifest import FactFile, FactTableState, Manifest, ResultFile
from bullpen.reports.spark.land import Landing, Range
from bullpen.reports.spark.parquet import is_readable
from bullpen.reports.spark.progress import Progress, Step, Tell


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


def land_again(
    landing: Landing, facts: Mapping[str, FactTableState], damaged: set[str], tell: Tell
) -> dict[str, FactTableState]:
    """Replace damaged files by what the store has; raises ReportsDamaged if rows are gone."""
    repaired = {}
    for table, state in facts.items():
        files: list[FactFile] = []
        for each in state.files:
            if each.name in damaged or has_wrong_size(landing.directory, each):
                tell(Progress(Step.REPAIRING, table, each.rows, text=each.date))
                files += _land_file(landing, table, each)
            else:
                files.append(each)
        repaired[table] = replace(state, files=tuple(files))
    return repaired


def _land_file(landing: Landing, table: str, file: FactFile) -> list[FactFile]:
    landed = [
        each.file
        for begin in range(file.first, file.last + 1, RANGE_ROWS)
        for each in landing.land(
            Range(table, begin, min(begin + RANGE_ROWS - 1, file.last)), only=file.date
        )
    ]
    lost = file.rows - sum(each.rows for each in landed)
    if lost:
        rows = format_count(lost, "row")
        raise ReportsDamaged(
            f"{landing.directory / file.name} is missing or damaged, and the database no longer"
            f" has {rows} of it",
            hint="Restore the file from a backup. Without one, `bullpen report run --again`"
            " computes everything from what the database has.",
        )
    return landed
