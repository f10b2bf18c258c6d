"""The list of the reports: reports of packages that are broken, and reports that failed."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from bullpen.core.errors import UnknownReport
from bullpen.core.registry import REPORTS
from bullpen.reports.manifest import ReportState, write_manifest
from bullpen.reports.read.catalog import Freshness, complete_until, list_entries
from bullpen.reports.report import load_report
from tests.reports.broken_packages import REASONS, write_packages
from tests.reports.written import BEGIN, END, PEOPLE, write_reports

TABLE = load_report("people").tables[0]
SECOND = 1000
FRESH = Freshness(covers_from=BEGIN, covers_until=END, generated_at=END, zone="Europe/Berlin")


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Installed packages, most of which have a broken report."""
    directory = tmp_path / "packages"
    write_packages(directory)
    monkeypatch.syspath_prepend(str(directory))
    importlib.invalidate_caches()
    return directory


@pytest.mark.usefixtures("packages")
def test_a_broken_report_of_a_package_is_listed_with_the_reason_and_breaks_no_other(
    tmp_path: Path,
) -> None:
    entries = {each.name: each for each in list_entries(tmp_path)}
    assert list(entries) == [*REPORTS.built_in, "whole", *sorted(REASONS)]
    assert {name for name, each in entries.items() if each.problem} == REASONS.keys()
    assert missing_reasons({name: str(each.problem) for name, each in entries.items()}) == []


@pytest.mark.usefixtures("packages")
def test_a_broken_report_is_an_unknown_one_with_the_reason() -> None:
    reasons = {}
    for name in REASONS:
        with pytest.raises(UnknownReport) as raised:
            load_report(name)
        reasons[name] = str(raised.value)
    assert missing_reasons(reasons) == []


def missing_reasons(problems: Mapping[str, str]) -> list[str]:
    return [f"{name}: {problems[name]}" for name in REASONS if REASONS[name] not in problems[name]]


def test_a_report_says_what_the_last_run_could_not_compute() -> None:
    error = replace(FRESH, error="division by zero")
    said = [
        FRESH,
        error,
        replace(error, missing=("2026-11-19",)),
        replace(error, missing=("2026-11-20", "2026-11-18", "2026-11-19")),
        replace(error, covers_until=None),
    ]
    age = "Complete until 2026-11-20 13:00 CET, 1 min 30 s ago."
    assert [each.describe(END + 90 * SECOND) for each in said] == [
        age,
        f"{age} The last run could not compute this report: division by zero",
        f"{age} The last run could not compute 2026-11-19: division by zero",
        f"{age} The last run could not compute 3 days from 2026-11-18 to 2026-11-20:"
        " division by zero",
        "Not computed yet. The last run could not compute this report: division by zero",
    ]


def test_facts_are_complete_until_the_oldest_of_their_tables(tmp_path: Path) -> None:
    manifest = write_reports(tmp_path, {TABLE: PEOPLE})
    found = []
    for until in (END - 5, None):
        events = replace(manifest.facts["events"], covers_until=until)
        facts = {**manifest.facts, "events": events}
        found.append(complete_until(replace(manifest, facts=facts)))
    assert found == [END - 5, None]


def test_the_list_has_the_rows_the_age_and_the_failure_of_each_report(tmp_path: Path) -> None:
    manifest = write_reports(tmp_path, {TABLE: PEOPLE})
    failed = ReportState(covers_until=END - 7, error="no memory", missing=("2026-11-20",))
    write_manifest(tmp_path, replace(manifest, reports={**manifest.reports, "usage": failed}))
    found = {each.name: each for each in list_entries(tmp_path)}
    assert {name: each.rows for name, each in found.items() if each.rows} == {"people": 5}
    fresh = {name: each.freshness for name, each in found.items()}
    errors = {name: each.error for name, each in fresh.items() if each is not None and each.error}
    assert errors == {"usage": "no memory"}
    usage, people = fresh["usage"], fresh["people"]
    assert usage is not None
    assert people is not None
    assert (usage.covers_until, usage.missing) == (END - 7, ("2026-11-20",))
    assert (people.covers_until, people.missing) == (END, ())
