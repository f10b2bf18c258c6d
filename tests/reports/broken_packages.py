"""Packages with reports that cannot be used, each for another reason.

A process that imports this module has the packages of the directory `TESTS_PACKAGES`.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from bullpen.core.registry import REPORTS
from tests.registry.packages import install

PACKAGES = "TESTS_PACKAGES"

if directory := os.environ.get(PACKAGES):
    sys.path.insert(0, directory)

CODE = """
from dataclasses import replace
from bullpen.core.registry import ReportInfo
from bullpen.reports.report import load_report
people = load_report("people")
table, view = people.tables[0], people.views[0]
view = replace(view, sql=view.sql.replace("people", "{name}"))
own = replace(people, name="{name}", tables=(replace(table, name="{name}"),), views=(view,))
REPORT = {report}
INFO = ReportInfo(name="{name}", factory="{factory}:REPORT")
"""

REPORTS_OF = {
    "number": ("7", "is not a Report"),
    "renamed": ("people", "its name is 'people'"),
    "empty": ("replace(own, tables=())", "needs a table and a view"),
    "blind": ("replace(own, views=())", "needs a table and a view"),
    "drawn": (
        "replace(own, views=(replace(view, chart=replace(view.chart, y=('nothing',))),))",
        "no column 'nothing'",
    ),
    "outside": ("replace(own, tables=(replace(table, name='../x'),))", "'../x' is not a name"),
    "thief": ("replace(own, tables=(table,))", "table people belongs to the report people"),
}
"""By name: the report of a package, and a part of the reason why it cannot be used."""

REASONS = {
    "absent": "no_such_module",
    "ending": "SystemExit",
    **{name: reason for name, (_, reason) in REPORTS_OF.items()},
}


def write_packages(directory: Path) -> None:
    """Install a package for each reason, and one whose report can be used."""
    for name, (report, _) in {**REPORTS_OF, "whole": ("own", "")}.items():
        code = CODE.format(name=name, report=report, factory=f"third_{name}")
        _install(directory, name, code)
    _install(directory, "absent", "import no_such_module")
    _install(directory, "ending", CODE.format(name="ending", report="own", factory="third_exit"))
    (directory / "third_exit.py").write_text("raise SystemExit(7)")


def _install(directory: Path, name: str, code: str) -> None:
    install(directory, f"third_{name}", REPORTS.group, {name: f"third_{name}:INFO"}, code)
