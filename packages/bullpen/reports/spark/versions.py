"""The version of a report: changes with its code, so that its results are computed again."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

from bullpen.reports import expressions
from bullpen.reports.report import Report


def report_version(report: Report) -> str:
    """A text that changes with the tables of the report and with the code near its transforms."""
    digest = hashlib.sha256()
    for table in report.tables:
        transform = f"{table.transform.__module__}.{table.transform.__qualname__}"
        digest.update(repr((table.name, table.grain, table.columns, transform)).encode())
    for path in sorted(_source_files(report)):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _source_files(report: Report) -> set[Path]:
    """The modules that a transform may use: those beside its own, and the shared expressions."""
    assert expressions.__file__ is not None
    files = {Path(expressions.__file__)}
    for table in report.tables:
        module = sys.modules.get(table.transform.__module__)
        file = getattr(module, "__file__", None)
        if module is None or file is None:
            continue
        path = Path(file)
        # A module outside of a package has unrelated neighbours.
        files.update(path.parent.glob("*.py") if module.__package__ else [path])
    return files
