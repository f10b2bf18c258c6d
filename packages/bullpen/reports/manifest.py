"""Manifest: the files of facts and results that count, and until when they are complete.

A run writes new files first and then replaces the manifest, so that a reader sees the reports of
before the run or of after it, never a mixture. A file that no manifest names is garbage.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from types import NoneType
from typing import TypeVar

from bullpen.core.errors import ReportsDamaged
from bullpen.core.files import replace_file
from bullpen.core.strict_json import Json, read_json

FORMAT = 1
"""The version of the manifest and of the files that it names."""

MANIFEST = "manifest.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class FactFile:
    """A Parquet file with facts of one UTC day."""

    name: str
    """Relative to the directory of the reports: `facts/attempts/date=2026-11-19/….parquet`."""
    date: str
    rows: int
    first: int
    """The lowest id in it."""
    last: int
    earliest: int
    """The earliest time in any row, such as the start of a run that ended on this day."""
    latest: int
    """The latest time in any row; later than the day if the clock was set back."""
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FactTableState:
    """How far a fact table was landed."""

    upto: int = 0
    """The highest id that was landed; the next run begins after it."""
    last_key: str = ""
    """The contents of the row with that id, as one text: shows that the store is the same."""
    covers_from: int | None = None
    """The time of the oldest fact; older ones had been deleted before the first run."""
    covers_until: int | None = None
    """The time at which all facts so far were landed."""
    files: tuple[FactFile, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultFile:
    """A Parquet file with the rows of one table of a report for one month."""

    name: str
    """Relative to the directory of the reports: `results/latency/month=2026-11/….parquet`."""
    month: str
    rows: int
    generated_at: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportState:
    """What is known of a report besides its results."""

    version: str = ""
    """Changes with the code of the report; all its results are then computed again."""
    covers_until: int | None = None
    """The time until which its results are complete."""
    error: str = ""
    """Why the last run could not compute it; empty if it could."""
    missing: tuple[str, ...] = ()
    """The days that could not be computed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """The files that count."""

    store: str
    """The identity of the store that the facts are from."""
    zone: str
    """The time zone of the days in the results."""
    run: int = 0
    """Increases with each run that changed something."""
    generated_at: int = 0
    facts: Mapping[str, FactTableState] = field(default_factory=dict)
    results: Mapping[str, tuple[ResultFile, ...]] = field(default_factory=dict)
    """By table, oldest month first."""
    reports: Mapping[str, ReportState] = field(default_factory=dict)
    unused: Mapping[str, int] = field(default_factory=dict)
    """Files that an earlier manifest named, and the run that replaced them."""

    @property
    def version(self) -> tuple[str, int, int]:
        """Changes with each run that changed a result: the key of what is kept in memory."""
        return self.store, self.run, self.generated_at


def read_manifest(directory: Path) -> Manifest | None:
    """The manifest in the directory of the reports; None if no run has finished yet."""
    path = directory / MANIFEST
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise ReportsDamaged(f"{path} cannot be read: {error}") from error
    try:
        return _parse(read_json(text))
    except (ValueError, TypeError, KeyError) as error:
        raise ReportsDamaged(f"{path} is damaged: {error}") from error


def write_manifest(directory: Path, manifest: Manifest) -> None:
    """Replace the manifest atomically; it survives a power cut."""
    text = json.dumps({"format": FORMAT, **asdict(manifest)}, indent=1)
    replace_file(directory / MANIFEST, text.encode())


def _parse(value: Json) -> Manifest:
    values = _object(value)
    if values.pop("format") != FORMAT:
        raise ValueError("another version of Bullpen wrote it")
    facts = {
        name: _make(FactTableState, each, files=_files(FactFile, _object(each)["files"]))
        for name, each in _object(values["facts"]).items()
    }
    results = {
        name: _files(ResultFile, files) for name, files in _object(values["results"]).items()
    }
    reports = {
        name: _make(ReportState, each, missing=_texts(_object(each)["missing"]))
        for name, each in _object(values["reports"]).items()
    }
    unused = {name: run for name, run in _object(values["unused"]).items() if isinstance(run, int)}
    return _make(Manifest, values, facts=facts, results=results, reports=reports, unused=unused)


T = TypeVar("T", Manifest, FactTableState, FactFile, ResultFile, ReportState)

_TYPES = {"str": (str,), "int": (int,), "int | None": (int, NoneType)}


def _make(kind: type[T], value: Json, **parsed: object) -> T:
    """An object from its JSON; the fields in `parsed` were read already."""
    values = {**_object(value), **parsed}
    for each in fields(kind):
        if each.name not in parsed and not isinstance(values[each.name], _TYPES[str(each.type)]):
            raise TypeError(f"{each.name} is not {each.type}")
    make: Callable[..., T] = kind
    return make(**values)


def _files(kind: type[T], value: Json) -> tuple[T, ...]:
    if not isinstance(value, list):
        raise TypeError("a list of files is missing")
    return tuple(_make(kind, each) for each in value)


def _texts(value: Json) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise TypeError("a list of texts is missing")
    return tuple(str(each) for each in value)


def _object(value: Json) -> dict[str, Json]:
    if not isinstance(value, dict):
        raise TypeError("an object is missing")
    return value
