"""The example of a report from a package: found by its entry point, and right."""

from __future__ import annotations

import importlib
import re
import tomllib
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bullpen.core.registry import REPORTS
from bullpen.reports.report import Report, list_reports, load_report
from tests.reports.transforms import Row, answer, at, given_facts, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples/bullpen-offhours"
PAGE = ROOT / "docs/how-to/add-a-report.md"
FRIDAY, SATURDAY = date(2026, 11, 20), date(2026, 11, 21)


@pytest.fixture
def offhours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Report:
    """The report of the package, installed as pip does it."""
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
    info = tmp_path / "bullpen_offhours-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: bullpen-offhours\nVersion: 1.0\n")
    entries = project["entry-points"][REPORTS.group]
    lines = [f"{name} = {path}" for name, path in entries.items()]
    (info / "entry_points.txt").write_text("\n".join([f"[{REPORTS.group}]", *lines]))
    monkeypatch.syspath_prepend(str(EXAMPLE))
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    return load_report("offhours")


def test_a_report_of_a_package_is_listed_after_the_built_in_ones(offhours: Report) -> None:
    assert [each.name for each in list_reports()] == [*REPORTS.built_in, "offhours"]
    assert not REPORTS.problems()
    assert offhours.tables[0].name == offhours.name


def test_runs_are_counted_by_the_local_time_of_day(offhours: Report, spark: SparkSession) -> None:
    times = [
        "2026-11-20 07:59:59",
        "2026-11-20 08:00:00",
        "2026-11-20 17:59:59",
        "2026-11-20 18:00:00",
        "2026-11-21 12:00:00",
    ]
    runs: list[Row] = [
        {"finished_at": at(each), "cost": 0.5, "outcome": "failed"} for each in times
    ]
    events: list[Row] = [
        {"type": each, "created_at": at(times[4])} for each in ("message_dead", "other")
    ]
    facts = given_facts(spark, runs, events)
    assert [tuple(row.values()) for row in rows_of(offhours.tables[0], facts)] == [
        (FRIDAY, "night", "coder", 2, 2, 0, 1_000_000),
        (FRIDAY, "work", "coder", 2, 2, 0, 1_000_000),
        (SATURDAY, "weekend", "coder", 1, 1, 1, 500_000),
    ]
    assert answer(offhours, "periods", facts) == [
        ("night", 2, 2, 1.0, 0, 1.0),
        ("weekend", 1, 1, 1.0, 1, 0.5),
        ("work", 2, 2, 1.0, 0, 1.0),
    ]


def test_the_code_on_the_page_is_that_of_the_example() -> None:
    blocks = re.findall(r"```(?:python|toml)\n(.*?)```", PAGE.read_text(), re.DOTALL)
    code = "".join(each.read_text() for each in EXAMPLE.rglob("*.*") if each.suffix != ".pyc")
    assert len(blocks) > 3
    assert not [each for each in blocks if each not in code]
