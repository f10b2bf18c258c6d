"""Exports: what other tools read from the files, and files that are in the way."""

from __future__ import annotations

import csv
import io
import json
from contextlib import closing
from datetime import date
from pathlib import Path

import pytest

from bullpen.core.errors import InTheWay, NoReportsYet, NotFound, ReportsDamaged
from bullpen.reports.read.answer import find_view, table_question, view_question
from bullpen.reports.read.export import Format, export_to_file
from bullpen.reports.read.filter import EVERYTHING, Filter
from bullpen.reports.report import load_report
from tests.cli.command import Bullpen
from tests.reports.written import END, PEOPLE, Row, write_reports

REPORT = load_report("people")
(TABLE,) = (each for each in REPORT.tables if each.name == "people")
DAYS = view_question(REPORT, find_view(REPORT, "days"), EVERYTHING)
AWKWARD = 'Ann "the\nfirst", Ünal'


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with reports."""
    rows: list[Row] = [*PEOPLE, {**PEOPLE[-1], "sender_id": "3", "sender": AWKWARD}]
    write_reports(tmp_path / "reports", {TABLE: rows})
    return tmp_path


def read_back(form: Format, path: Path) -> list[tuple[object, ...]]:
    """Day, sender and messages of each row, as another tool reads them."""
    import duckdb

    if form is Format.CSV:
        text = io.StringIO(path.read_text(encoding="utf-8"), newline="")
        return [
            (date.fromisoformat(each["day"]), each["sender"], int(each["messages"]))
            for each in csv.DictReader(text)
        ]
    if form is Format.JSON:
        return [
            (date.fromisoformat(each["day"]), each["sender"], each["messages"])
            for each in json.loads(path.read_text(encoding="utf-8"))
        ]
    with closing(duckdb.connect(":memory:")) as database:
        found = database.execute(f"SELECT day, sender, messages FROM '{path}'")
        assert [str(each[1]) for each in found.description or ()] == ["DATE", "VARCHAR", "BIGINT"]
        return found.fetchall()


@pytest.mark.parametrize("form", list(Format))
def test_another_tool_reads_the_same_rows_in_the_same_order(home: Path, form: Format) -> None:
    question = table_question(REPORT, TABLE, Filter(since=date(2026, 11, 19)))
    path = home / f"out.{form}"
    export = export_to_file(home / "reports", question, form, path)
    assert read_back(form, path) == [
        (date(2026, 11, 19), "Bob", 12),
        (date(2026, 11, 20), "Ann", 3),
        (date(2026, 11, 20), "Cleo", 5),
        (date(2026, 11, 20), AWKWARD, 5),
    ]
    assert (export.rows, export.bytes) == (4, path.stat().st_size)
    assert export.freshness.covers_until == END


def test_sums_in_parquet_are_whole_numbers(home: Path) -> None:
    import duckdb

    path = home / "days.parquet"
    export_to_file(home / "reports", DAYS, Format.PARQUET, path)
    with closing(duckdb.connect(":memory:")) as database:
        rows = database.execute(f"DESCRIBE SELECT * FROM '{path}'").fetchall()
    assert {row[0]: row[1] for row in rows}["messages"] == "BIGINT"


def test_an_existing_file_stays_unless_it_is_to_be_replaced(home: Path) -> None:
    path = home / "mine.csv"
    path.write_text("mine")
    with pytest.raises(InTheWay, match="already exists"):
        export_to_file(home / "reports", DAYS, Format.CSV, path)
    assert path.read_text() == "mine"
    export_to_file(home / "reports", DAYS, Format.CSV, path, replace=True)
    assert path.read_text().startswith("day,channel,messages,")


def test_a_failed_export_leaves_nothing_and_keeps_the_old_file(home: Path) -> None:
    path = home / "mine.csv"
    path.write_text("mine")
    (broken,) = home.glob("reports/results/people/month=2026-11/*.parquet")
    broken.write_bytes(b"x" * broken.stat().st_size)
    before = sorted(home.iterdir())
    with pytest.raises(ReportsDamaged):
        export_to_file(home / "reports", DAYS, Format.CSV, path, replace=True)
    with pytest.raises(NotFound, match="does not exist"):
        export_to_file(home / "reports", DAYS, Format.CSV, home / "none" / "x.csv")
    with pytest.raises(NoReportsYet):
        export_to_file(home, DAYS, Format.CSV, home / "x.csv")
    assert path.read_text() == "mine"
    assert sorted(home.iterdir()) == before


def test_the_command_writes_rows_to_standard_output_and_their_age_beside_it(home: Path) -> None:
    bullpen = Bullpen(home)
    result = bullpen.ok("report", "export", "people", "--view", "days", "--until", "2026-10-31")
    assert result.out == "day,channel,messages,senders\n2026-10-31,telegram,4,1\n"
    assert result.err.startswith("Complete until 2026-11-20 12:00 UTC, ")


def test_the_suffix_of_the_file_is_its_format(home: Path) -> None:
    bullpen = Bullpen(home)
    formats = {"a.json": "json", "a.parquet": "parquet", "a.csv": "csv", "a.txt": "csv"}
    for name, form in formats.items():
        path = home / name
        document = bullpen.ok("report", "export", "people", "-o", str(path), "--json").json
        assert (document["format"], document["path"]) == (form, str(path))
    refused = bullpen("report", "export", "people", "-o", str(home / "a.csv"))
    assert refused.status == 1
    assert "--force" in refused.err
    assert bullpen("report", "export", "people", "--json").status == 2
