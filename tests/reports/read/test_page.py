"""The page about reading reports: its snippets for other tools do what they say."""

from __future__ import annotations

import re
from contextlib import closing
from datetime import date
from pathlib import Path

import pytest

from bullpen.reports.report import load_report
from tests.reports.written import PEOPLE, write_reports

PAGE = Path(__file__).resolve().parents[3] / "docs" / "how-to" / "read-reports.md"
(TABLE,) = (each for each in load_report("people").tables if each.name == "people")

MESSAGES = [
    (date(2026, 10, 31), "telegram", 4),
    (date(2026, 11, 18), "telegram", 30),
    (date(2026, 11, 19), "slack", 12),
    (date(2026, 11, 20), "telegram", 8),
]


def snippet(language: str) -> str:
    (found,) = re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    return str(found)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Reports, and a file of the run before that no longer counts."""
    write_reports(tmp_path, {TABLE: PEOPLE})
    write_reports(tmp_path, {TABLE: PEOPLE}, run=2)
    return tmp_path


def test_duckdb_reads_the_files_of_the_manifest(directory: Path) -> None:
    import duckdb

    found: list[tuple[object, ...]] = []
    with closing(duckdb.connect(":memory:")) as database:
        for statement in snippet("sql").replace("~/.bullpen/reports", str(directory)).split(";\n"):
            if statement.strip():
                found = database.execute(statement).fetchall()
    assert found == MESSAGES


def test_pandas_reads_the_files_of_the_manifest(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names: dict[str, object] = {}
    exec(snippet("python").replace("~/.bullpen/reports", str(directory)), names)
    lines = capsys.readouterr().out.splitlines()[1:]
    assert [line.split()[-1] for line in lines if line and line.split()[-1].isdigit()] == [
        str(each[2]) for each in MESSAGES
    ]
