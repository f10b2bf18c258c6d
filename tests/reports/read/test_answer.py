"""Reading a report: filters, pages, freshness, and files that are missing or damaged."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from bullpen.core.errors import BadQuery, Conflict, NoReportsYet, ReportsDamaged, ReportsError
from bullpen.reports import manifest as manifests
from bullpen.reports.manifest import MANIFEST, Manifest, ReportState, write_manifest
from bullpen.reports.read import database
from bullpen.reports.read.answer import Answer, find_view, read_table, read_view
from bullpen.reports.read.filter import EVERYTHING, Filter
from bullpen.reports.report import Report, load_report
from tests.reports.written import BEGIN, END, PEOPLE, Row, write_reports

REPORT = load_report("people")
(TABLE,) = REPORT.tables
DAYS = find_view(REPORT, "days")
HOSTILE = "it's\"; DROP TABLE people; --"


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Reports over two months."""
    write_reports(tmp_path, {TABLE: PEOPLE})
    return tmp_path


def messages(answer: Answer) -> int:
    """The sum of the messages in the rows."""
    return sum(int(str(each["messages"])) for each in answer.records())


def ask(directory: Path, chosen: Filter = EVERYTHING, limit: int = 100) -> Answer:
    return read_view(directory, REPORT, DAYS, chosen, limit=limit)


def pages(directory: Path, limit: int) -> Iterator[Answer]:
    cursor = None
    while True:
        answer = read_table(directory, REPORT, TABLE, limit=limit, cursor=cursor)
        yield answer
        cursor = answer.next_cursor
        if cursor is None:
            return


def test_an_answer_says_what_it_covers_and_when_it_was_computed(directory: Path) -> None:
    document = read_view(directory, REPORT, REPORT.views[0], limit=1).document()
    assert document == {
        "report": "people",
        "view": "people",
        "covers_from": BEGIN,
        "covers_until": END,
        "generated_at": END + 5000,
        "zone": "Etc/UTC",
        "error": None,
        "missing": (),
        "since": None,
        "until": None,
        "ignored_filters": [],
        "total": 3,
        "rows": [
            {
                "channel": "telegram",
                "sender": "Ann",
                "messages": 37,
                "conversations": 3,
                "last_at": END - 3000,
            }
        ],
        "next_cursor": document["next_cursor"],
    }
    assert document["next_cursor"] is not None
    json.dumps(document)


def test_the_filters_select_days_and_values(directory: Path) -> None:
    chosen = [
        Filter(),
        Filter(since=date(2026, 11, 19)),
        Filter(until=date(2026, 10, 31)),
        Filter(since=date(2026, 11, 18), until=date(2026, 11, 18)),
        Filter(channel="slack"),
        Filter(channel="slack", since=date(2026, 11, 20)),
        Filter(since=date(2027, 1, 1)),
        Filter(channel=HOSTILE),
    ]
    assert [messages(ask(directory, each)) for each in chosen] == [54, 20, 4, 30, 12, 0, 0, 0]


def test_a_filter_that_a_report_does_not_have_is_refused(directory: Path) -> None:
    with pytest.raises(BadQuery, match="no filter 'agent'") as raised:
        ask(directory, Filter(agent="coder"))
    assert raised.value.hint == "Its filters: since, until, channel."
    with pytest.raises(BadQuery, match="is after the last day"):
        ask(directory, Filter(since=date(2026, 11, 2), until=date(2026, 11, 1)))


def test_an_answer_names_the_filters_that_its_tables_do_not_have(tmp_path: Path) -> None:
    write_reports(tmp_path, {})
    throughput = load_report("throughput")
    chosen = Filter(agent="coder", team="dev")
    ignored = {
        name: read_view(
            tmp_path, throughput, find_view(throughput, name), chosen, limit=1
        ).ignored_filters
        for name in ("days", "utilisation")
    }
    assert ignored == {"days": (), "utilisation": ("team",)}


def test_a_value_of_a_filter_is_only_compared(tmp_path: Path) -> None:
    rows: list[Row] = [{**PEOPLE[0], "channel": HOSTILE}, PEOPLE[1]]
    write_reports(tmp_path, {TABLE: rows})
    assert messages(ask(tmp_path, Filter(channel=HOSTILE))) == 4


def test_pages_have_each_row_once_in_the_order_of_the_grain(directory: Path) -> None:
    found = list(pages(directory, 2))
    rows = [row for page in found for row in page.rows]
    assert [len(page.rows) for page in found] == [2, 2, 1]
    assert {page.total for page in found} == {5}
    assert rows == sorted(rows, key=lambda row: tuple(map(str, row[:3])))
    assert len(set(rows)) == 5


def test_a_page_after_a_run_is_refused_and_never_of_other_numbers(directory: Path) -> None:
    first = read_table(directory, REPORT, TABLE, limit=2)
    write_reports(directory, {TABLE: PEOPLE[1:]}, run=2)
    with pytest.raises(Conflict, match="have changed since the first page"):
        read_table(directory, REPORT, TABLE, limit=2, cursor=first.next_cursor)
    for cursor in ("", "x", "2", "-", "0" * 12 + "--1", "0" * 12 + "-²", "0" * 12 + "-" + "9" * 16):
        with pytest.raises(BadQuery, match="invalid cursor"):
            read_table(directory, REPORT, TABLE, limit=2, cursor=cursor)


def test_a_page_of_another_filter_or_table_is_refused(directory: Path) -> None:
    first = ask(directory, limit=1)
    assert first.next_cursor is not None
    for view, chosen in ((DAYS, Filter(channel="slack")), (REPORT.views[0], EVERYTHING)):
        with pytest.raises(Conflict, match="filters have changed"):
            read_view(directory, REPORT, view, chosen, limit=1, cursor=first.next_cursor)


def test_a_table_without_rows_gives_an_empty_answer(tmp_path: Path) -> None:
    write_reports(tmp_path, {})
    answer = ask(tmp_path)
    assert (answer.rows, answer.total, answer.next_cursor) == ((), 0, None)


def test_sums_are_whole_numbers_of_64_bits(directory: Path) -> None:
    (row,) = ask(directory, Filter(channel="slack")).records()
    assert type(row["messages"]) is int
    assert row == {"day": "2026-11-19", "channel": "slack", "messages": 12, "senders": 1}


def test_before_the_first_run_the_error_says_what_to_type(tmp_path: Path) -> None:
    with pytest.raises(NoReportsYet) as raised:
        ask(tmp_path)
    assert "bullpen report run" in raised.value.hint


def november(directory: Path) -> Path:
    """The file of one month."""
    (found,) = directory.glob("results/people/month=2026-11/*.parquet")
    return found


def _remove(path: Path) -> None:
    path.unlink()


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-40])


def _scramble(path: Path) -> None:
    path.write_bytes(b"x" * path.stat().st_size)


def _scramble_data(path: Path) -> None:
    """Damage the values and leave the footer."""
    data = bytearray(path.read_bytes())
    data[8:120] = b"\xff" * 112
    path.write_bytes(bytes(data))


def _replace(path: Path) -> None:
    """Another file, which can be read."""
    (october,) = path.parents[1].glob("month=2026-10/*.parquet")
    path.write_bytes(october.read_bytes())


@pytest.mark.parametrize("damage", [_remove, _cut, _scramble, _scramble_data, _replace])
def test_the_error_names_a_missing_or_damaged_file(directory: Path, damage: object) -> None:
    assert callable(damage)
    damage(november(directory))
    with pytest.raises(ReportsDamaged, match=str(november_name(directory))):
        ask(directory)
    assert messages(ask(directory, Filter(until=date(2026, 10, 31)))) == 4


def november_name(directory: Path) -> Path:
    return directory / "results" / "people" / "month=2026-11"


def test_a_damaged_manifest_is_named(directory: Path) -> None:
    (directory / MANIFEST).write_text("{")
    with pytest.raises(ReportsDamaged, match=MANIFEST):
        ask(directory)


def test_a_file_of_an_older_report_without_a_column_is_named(directory: Path) -> None:
    old = replace(TABLE, columns=TABLE.columns[:-1])
    write_reports(directory, {old: PEOPLE})
    with pytest.raises(ReportsDamaged, match="no column 'last_at'"):
        ask(directory)


def test_an_error_in_the_query_of_a_view_is_not_damage(directory: Path) -> None:
    wrong = replace(DAYS, sql="SELECT nothing FROM people")
    with pytest.raises(ReportsError, match="the query failed") as raised:
        read_view(directory, REPORT, wrong, limit=1)
    assert not isinstance(raised.value, ReportsDamaged)


def test_the_database_is_shared_until_a_statement_fails(directory: Path) -> None:
    """After an internal error, DuckDB refuses all further statements of the same database."""

    def shared() -> object:
        with database.connect() as connection:
            connection.execute("SELECT 1")
        return database._shared_database()

    first = shared()
    assert shared() is first
    with pytest.raises(ReportsError, match="the query failed"):
        read_view(directory, REPORT, replace(DAYS, sql="SELECT nothing FROM people"), limit=1)
    assert shared() is not first
    assert messages(ask(directory)) == 54


def test_files_that_a_run_replaces_meanwhile_are_read_from_the_new_manifest(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader that was stopped for two runs finds its files gone, and never mixes two runs."""
    read = manifests.read_manifest
    calls = []

    def read_slowly(path: Path) -> Manifest | None:
        manifest = read(path)
        calls.append(manifest)
        if len(calls) == 1:
            write_reports(directory, {TABLE: PEOPLE[:2]}, run=2)
            for old in directory.glob("results/**/1.parquet"):
                old.unlink()
        return manifest

    monkeypatch.setattr(database, "read_manifest", read_slowly)
    assert messages(ask(directory)) == 34
    assert len(calls) == 2


def test_a_reader_of_the_old_manifest_finds_its_files(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = manifests.read_manifest

    def read_early(path: Path) -> Manifest | None:
        manifest = read(path)
        write_reports(directory, {TABLE: PEOPLE[:2]}, run=2)
        return manifest

    monkeypatch.setattr(database, "read_manifest", read_early)
    assert messages(ask(directory)) == 54


def test_a_report_covers_no_more_than_the_facts_that_it_reads(directory: Path) -> None:
    manifest = write_reports(directory, {TABLE: PEOPLE})
    facts = dict(manifest.facts)
    facts["events"] = replace(facts["events"], covers_from=BEGIN + 7, covers_until=END - 7)
    write_manifest(directory, replace(manifest, facts=facts))
    both: Report = replace(REPORT, facts=("attempts", "events"))
    for report, expected in ((both, END - 7), (replace(REPORT, facts=("attempts",)), END)):
        answer = read_view(directory, report, DAYS, limit=1)
        assert answer.freshness.covers_until == expected
    assert read_view(directory, both, DAYS, limit=1).freshness.covers_from == BEGIN + 7


def test_a_report_that_the_last_run_could_not_compute_says_so_and_keeps_its_age(
    directory: Path,
) -> None:
    manifest = write_reports(directory, {TABLE: PEOPLE})
    failed = ReportState(covers_until=END - 7, error="division by zero")
    for states, until, error in (
        ({REPORT.name: failed}, END - 7, "division by zero"),
        ({"another": ReportState(covers_until=END)}, None, None),
    ):
        write_manifest(directory, replace(manifest, reports=states))
        answer = read_view(directory, REPORT, DAYS, limit=1)
        assert (answer.document()["covers_until"], answer.document()["error"]) == (until, error)
        assert (str(error) in answer.freshness.describe(END)) == (error is not None)
