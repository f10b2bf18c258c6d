"""SQL: the result of a query that a person wrote, over the facts and the tables of all reports."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path

from bullpen.core.errors import BadQuery, NoReportsYet, ReportsDamaged, ReportsError
from bullpen.core.strict_json import Json, read_json
from bullpen.reports.manifest import read_manifest
from bullpen.reports.read.catalog import require_manifest
from bullpen.reports.read.sandbox import (
    TIMED_OUT,
    TOO_LARGE,
    TOO_LARGE_HINT,
    TOO_LONG,
    TOO_LONG_HINT,
    Request,
)

START_SECONDS = 120.0
"""The time that the process gets to start and to copy the tables."""

KEPT_VARIABLES = ("PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH")
"""The environment of the process: what Python needs, and no secrets."""

ERRORS = {each.code: each for each in (BadQuery, NoReportsYet, ReportsDamaged, ReportsError)}


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlColumn:
    """A column of a result."""

    name: str
    type: str
    """DuckDB's name of the type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlResult:
    """The rows of a query, and their age."""

    columns: tuple[SqlColumn, ...]
    rows: tuple[tuple[Json, ...], ...]
    truncated: bool
    """Whether there are more rows than the limit."""
    covers_until: int | None
    """What happened after this time is in none of the numbers."""
    generated_at: int
    zone: str


def run_sql(
    directory: Path, sql: str, *, limit: int, seconds: float, since: date | None = None
) -> SqlResult:
    """The result of one SELECT, with limits of time, memory and rows."""
    require_manifest(read_manifest(directory))
    request = Request(
        directory=str(directory),
        sql=sql,
        limit=limit,
        seconds=seconds,
        since=None if since is None else since.isoformat(),
    )
    try:
        ended = subprocess.run(
            [sys.executable, "-m", "bullpen.reports.read.sandbox"],
            input=json.dumps(asdict(request)).encode(),
            env={each: os.environ[each] for each in KEPT_VARIABLES if each in os.environ},
            capture_output=True,
            timeout=START_SECONDS + seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise BadQuery(TOO_LONG, hint=TOO_LONG_HINT) from None
    if ended.returncode == TIMED_OUT:
        raise BadQuery(TOO_LONG, hint=TOO_LONG_HINT)
    if ended.returncode < 0 or b"MemoryError" in ended.stderr:
        raise BadQuery(TOO_LARGE, hint=TOO_LARGE_HINT)
    if ended.returncode:
        last = ended.stderr.decode(errors="replace").strip().splitlines()[-1:]
        raise ReportsError(f"the query could not be run: {' '.join(last)}")
    return _parse(read_json(ended.stdout.decode()))


def _parse(document: Json) -> SqlResult:
    match document:
        case {"error": str(text), "code": str(code), "hint": str(hint)}:
            raise ERRORS.get(code, ReportsError)(text, hint=hint)
        case {
            "columns": list(columns),
            "rows": list(rows),
            "truncated": bool(truncated),
            "covers_until": (int() | None) as covers_until,
            "generated_at": int(generated_at),
            "zone": str(zone),
        }:
            return SqlResult(
                columns=tuple(map(_column, columns)),
                rows=tuple(map(_row, rows)),
                truncated=truncated,
                covers_until=covers_until,
                generated_at=generated_at,
                zone=zone,
            )
    raise ReportsError("the query gave no result")


def _column(value: Json) -> SqlColumn:
    match value:
        case {"name": str(name), "type": str(kind)}:
            return SqlColumn(name=name, type=kind)
    raise ReportsError("the query gave no result")


def _row(value: Json) -> tuple[Json, ...]:
    return tuple(value) if isinstance(value, Sequence) else ()
