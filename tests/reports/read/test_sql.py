"""Queries of people: what they may read, and that nothing else happens."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from bullpen.core.errors import BadQuery, NoReportsYet, ReportsDamaged
from bullpen.reports.facts.tables import ATTEMPTS
from bullpen.reports.read import sandbox
from bullpen.reports.read.database import open_database
from bullpen.reports.read.query import Query, parse_query
from bullpen.reports.read.sandbox import Request, run_query, sql_tables
from bullpen.reports.read.sql import run_sql
from bullpen.reports.report import load_report
from tests.reports.written import END, PEOPLE, Row, fact_files, write_reports

(TABLE,) = (each for each in load_report("people").tables if each.name == "people")
KNOWN = [each.name for each in sql_tables()]

RUNS: dict[str, list[Row]] = {
    "2026-11-19": [{"id": 1, "agent": "coder", "attempt": 1}],
    "2026-11-20": [
        {"id": 2, "agent": "coder", "attempt": 2},
        {"id": 3, "agent": "tester", "attempt": 1},
    ],
}


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Reports and facts."""
    place = tmp_path / "reports"
    facts = fact_files(place, "attempts", ATTEMPTS.landed_columns, RUNS)
    write_reports(place, {TABLE: PEOPLE}, facts={"attempts": facts})
    return place


def ask(directory: Path, sql: str, since: str | None = None, limit: int = 100) -> list[object]:
    """The rows of a query, in this process."""
    request = Request(directory=str(directory), sql=sql, limit=limit, seconds=30, since=since)
    rows = run_query(request)["rows"]
    assert isinstance(rows, list)
    return rows


def digests(place: Path) -> dict[str, str]:
    """Every file below a directory."""
    return {
        str(each.relative_to(place)): hashlib.sha256(each.read_bytes()).hexdigest()
        for each in place.rglob("*")
        if each.is_file()
    }


ATTACKS = {
    "two statements": "SELECT 1; SELECT 2",
    "COPY": "COPY people TO '{out}'",
    "COPY in a WITH": "WITH x AS (COPY people TO '{out}') SELECT * FROM x",
    "COPY over a fact": (
        "WITH x AS (COPY people TO '{fact}' (FORMAT parquet, USE_TMP_FILE false)) SELECT * FROM x"
    ),
    "COPY in a subquery": "SELECT (WITH x AS (COPY people TO '{out}') SELECT count(*) FROM x)",
    "COPY in a WITH of a WITH": (
        "WITH y AS (WITH x AS (COPY people TO '{out}') FROM x) SELECT * FROM y"
    ),
    "COPY FROM": "COPY people FROM '{fact}'",
    "INSERT in a WITH": "WITH x AS (INSERT INTO people SELECT * FROM people RETURNING *) FROM x",
    "DELETE in a WITH": "WITH x AS (DELETE FROM people RETURNING *) FROM x",
    "UPDATE in a WITH": "WITH x AS (UPDATE people SET messages = 0 RETURNING *) FROM x",
    "EXPORT": "EXPORT DATABASE '{out}'",
    "ATTACH": "ATTACH '{out}'",
    "CREATE": "CREATE TABLE t AS SELECT 1",
    "DROP": "DROP TABLE people",
    "INSTALL": "INSTALL httpfs",
    "LOAD": "LOAD httpfs",
    "SET": "SET memory_limit = '100GB'",
    "RESET": "RESET memory_limit",
    "PRAGMA": "PRAGMA database_list",
    "CALL": "CALL pragma_version()",
    "EXPLAIN ANALYZE": "EXPLAIN ANALYZE COPY people TO '{out}'",
    "PREPARE": "PREPARE x AS SELECT 1",
    "PIVOT": "PIVOT people ON channel USING sum(messages)",
    "VACUUM": "VACUUM",
    "read_csv": "SELECT * FROM read_csv('{secret}')",
    "read_text": "SELECT * FROM read_text('{secret}')",
    "read_text in a subquery": "SELECT (SELECT content FROM read_text('{secret}'))",
    "read_text in ORDER BY": "SELECT 1 ORDER BY (SELECT content FROM read_text('{secret}'))",
    "read_text in LIMIT": "SELECT 1 LIMIT (SELECT length(content) FROM read_text('{secret}'))",
    "read_blob": "SELECT * FROM read_blob('{fact}')",
    "read_parquet": "SELECT * FROM read_parquet('{fact}')",
    "parquet_metadata": "SELECT * FROM parquet_metadata('{fact}')",
    "sniff_csv": "SELECT * FROM sniff_csv('{secret}')",
    "glob": "SELECT * FROM glob('/*')",
    "a file as a table": "SELECT * FROM '{fact}'",
    "a URL as a table": "SELECT * FROM 'https://example.com/a.csv'",
    "a Python variable": "SELECT * FROM RUNS",
    "query": "SELECT * FROM query('SELECT 1')",
    "query_table": "SELECT * FROM query_table('people')",
    "serialized SQL": "SELECT * FROM json_execute_serialized_sql('{{}}')",
    "getenv": "SELECT getenv('HOME')",
    "current_setting": "SELECT current_setting('secret_directory')",
    "secrets": "SELECT * FROM duckdb_secrets()",
    "which_secret": "SELECT * FROM which_secret('a', 'b')",
    "settings": "SELECT * FROM duckdb_settings()",
    "logging": "SELECT * FROM enable_logging(storage = 'file', storage_path = '{out}')",
    "profiling": "SELECT * FROM enable_profiling(save_location = '{out}')",
    "pragma function": "SELECT * FROM pragma_database_size()",
    "catalog": "SELECT * FROM information_schema.tables",
    "system table": "SELECT * FROM pg_class",
    "schema": "SELECT * FROM temp.people",
    "checkpoint": "SELECT * FROM force_checkpoint()",
    "external resource": "SELECT * FROM create_external_resource('a', 'b')",
    "python pointer": "SELECT * FROM pandas_scan(1)",
    "SHOW": "SHOW TABLES",
    "SHOW in a subquery": "SELECT * FROM (SHOW ALL TABLES)",
    "nothing": "",
    "a comment": "-- SELECT 1",
    "NUL": "SELECT 1 \0; COPY people TO '{out}'",
}


def test_an_attack_is_refused_before_it_runs_and_changes_nothing(
    directory: Path, tmp_path: Path, subtests: pytest.Subtests
) -> None:
    (tmp_path / "secret").write_text("the secret")
    before = digests(tmp_path)
    for name, text in ATTACKS.items():
        with subtests.test(name), open_database() as database:
            sql = fill(text, directory, tmp_path)
            if name == "getenv":  # DuckDB has no such function
                with pytest.raises(BadQuery):
                    ask(directory, sql)
            else:
                with pytest.raises(BadQuery):
                    parse_query(database, sql, KNOWN)
    assert digests(tmp_path) == before


def test_an_attack_that_the_check_would_miss_reaches_no_file(
    directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests
) -> None:
    """The second wall: the database is closed to files and settings before the query runs."""
    (tmp_path / "secret").write_text("the secret")
    before = digests(tmp_path)

    def check_nothing(database: object, sql: str, known: object) -> object:
        with open_database() as other:
            return Query(
                sql=sql,
                tables=parse_query(other, "SELECT * FROM people, attempts", KNOWN).tables,
                words=frozenset(),
                all_columns=True,
            )

    monkeypatch.setattr(sandbox, "parse_query", check_nothing)
    for name in ATTACKS.keys() - {"nothing", "a comment"}:
        text = ATTACKS[name]
        with subtests.test(name):
            found = ""
            with suppress(BadQuery):
                found = str(ask(directory, fill(text, directory, tmp_path)))
            assert "the secret" not in found
            assert "PAR1" not in found
            assert digests(tmp_path) == before


def fill(text: str, directory: Path, tmp_path: Path) -> str:
    fact = next(directory.glob("facts/attempts/*/*.parquet"))
    return text.format(out=tmp_path / "out", fact=fact, secret=tmp_path / "secret")


QUERIES: dict[str, list[object]] = {
    "SELECT agent, count(*) FROM attempts GROUP BY agent ORDER BY agent": [
        ["coder", 2],
        ["tester", 1],
    ],
    "SELECT count(*) FROM attempts": [[3]],
    "SELECT max(a.id) FROM attempts AS a JOIN people p ON p.messages > a.id": [[3]],
    "WITH c AS (SELECT * FROM attempts) SELECT id FROM c WHERE attempt = 2": [[2]],
    "SELECT a.agent FROM (SELECT a FROM attempts a WHERE a.id = 3)": [["tester"]],
    "FROM attempts AS x(number) SELECT min(number)": [[1]],
    "SELECT id FROM attempts NATURAL JOIN (SELECT 2 AS id)": [[2]],
    "SELECT count(*) FROM events": [[0]],
    "SELECT count(COLUMNS('agent|id')) FROM attempts": [[3, 3, 3]],
    "SELECT sum(n) FROM range(4) t(n)": [[6]],
    "SELECT unnest([1, 2])": [[1], [2]],
    "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 3) FROM t": [
        [1],
        [2],
        [3],
    ],
    "SELECT 1 UNION ALL SELECT sum(messages) FROM PEOPLE": [[1], [54]],
    "VALUES (1, 'a', NULL, 1.5, DATE '2026-11-20', [1], {'a': 1}, 'nan'::DOUBLE);": [
        [1, "a", None, 1.5, "2026-11-20", [1], {"a": 1}, None]
    ],
    "SELECT 9223372036854775807::HUGEINT + 1": [["9223372036854775808"]],
}


def test_a_select_reads_facts_and_reports(directory: Path, subtests: pytest.Subtests) -> None:
    for sql, rows in QUERIES.items():
        with subtests.test(sql):
            if "COLUMNS" in sql:
                (row,) = ask(directory, sql)
                assert isinstance(row, list)
                assert set(row) <= {0, 3}
            else:
                assert ask(directory, sql) == rows


def test_every_column_of_every_table_can_be_read(
    directory: Path, subtests: pytest.Subtests
) -> None:
    for table in sql_tables():
        with subtests.test(table.name):
            names = ", ".join(f'"{each.name}"' for each in table.columns)
            rows = ask(directory, f"SELECT {names} FROM {table.name}")
            assert rows == ask(directory, f"SELECT * FROM {table.name}")


def test_only_days_from_since_on_are_read(directory: Path) -> None:
    assert ask(directory, "SELECT count(*) FROM attempts", "2026-11-20") == [[2]]
    assert ask(directory, "SELECT sum(messages) FROM people", "2026-11-19") == [[20]]
    assert ask(directory, "SELECT count(*) FROM people", "2027-01-01") == [[0]]


def test_the_result_says_how_old_it_is_and_whether_there_is_more(directory: Path) -> None:
    result = run_sql(directory, "SELECT id, agent FROM attempts ORDER BY id", limit=2, seconds=30)
    assert result.rows == ((1, "coder"), (2, "coder"))
    assert [(each.name, each.type) for each in result.columns] == [
        ("id", "BIGINT"),
        ("agent", "VARCHAR"),
    ]
    assert result.truncated
    assert (result.covers_until, result.generated_at) == (END, END + 5000)


@pytest.mark.parametrize(
    ("sql", "seconds", "message"),
    [
        ("SELECT count(*) FROM range(1000000) a, range(1000000) b", 0.5, "took too long"),
        ("SELECT length(lpad('a', 2000000000, 'b'))", 0.5, "took too long"),
        ("SELECT length(repeat('a', 3000000000))", 30, "needs more than 1024 MB"),
        ("SELECT list(r) FROM range(500000000) t(r)", 30, "needs more than 1024 MB"),
    ],
)
def test_a_query_has_limits_of_time_and_memory(
    directory: Path, sql: str, seconds: float, message: str
) -> None:
    began = time.monotonic()
    with pytest.raises(BadQuery, match=message):
        run_sql(directory, sql, limit=1, seconds=seconds)
    assert time.monotonic() - began < 60


def test_columns_that_do_not_fit_into_memory_are_named(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandbox, "MEMORY_MB", 1)
    rows: list[Row] = [{"id": n, "error": f"{n}" * 400} for n in range(2000)]
    facts = fact_files(directory, "attempts", ATTEMPTS.landed_columns, {"2026-11-20": rows}, 2)
    write_reports(directory, {}, run=2, facts={"attempts": facts})
    with pytest.raises(BadQuery, match="the columns of attempts need more than 1 MB") as raised:
        ask(directory, "SELECT * FROM attempts")
    assert "--since" in raised.value.hint


def test_errors_say_what_is_wrong(directory: Path) -> None:
    wrong = {
        "SELECT * FROM atempts": "table 'atempts' does not exist. Did you mean 'attempts'?",
        "SELECT nothing FROM people": 'Referenced column "nothing" not found',
        "SELEC 1": "cannot be parsed: syntax error",
        "SELECT 1; SELECT 2": "the query has 2 statements",
        "COPY people TO 'x'": "the query is not a SELECT",
    }
    for sql, message in wrong.items():
        with pytest.raises(BadQuery) as raised:
            ask(directory, sql)
        assert message in str(raised.value)
    with pytest.raises(BadQuery, match="cannot be parsed"):
        run_sql(directory, "SELEC 1", limit=1, seconds=1)


def test_a_column_that_does_not_exist_is_compared_with_those_that_do(directory: Path) -> None:
    """DuckDB knows only the columns that the query names, which were copied."""
    everything = "Run `bullpen report sql --tables` to see all columns."
    wrong = {
        "SELECT chanel FROM people": f"Did you mean 'channel'? {everything}",
        "SELECT p.mesages FROM people p": f"Did you mean 'messages'? {everything}",
        "SELECT zzz FROM people": everything,
    }
    for sql, hint in wrong.items():
        with pytest.raises(BadQuery) as raised:
            ask(directory, sql)
        assert raised.value.hint == hint
        assert "Candidate" not in str(raised.value)


def _remove(path: Path) -> None:
    path.unlink()


def _damage(path: Path) -> None:
    path.write_bytes(b"x" * path.stat().st_size)


@pytest.mark.parametrize("damage", [_remove, _damage])
def test_a_missing_or_damaged_fact_file_is_named(
    directory: Path, damage: Callable[[Path], None]
) -> None:
    (file,) = directory.glob("facts/attempts/date=2026-11-19/*.parquet")
    damage(file)
    with pytest.raises(ReportsDamaged, match=str(file)):
        ask(directory, "SELECT id FROM attempts")
    assert ask(directory, "SELECT count(*) FROM people") == [[5]]


def test_before_the_first_run_the_error_says_so(tmp_path: Path) -> None:
    with pytest.raises(NoReportsYet):
        run_sql(tmp_path, "SELECT 1", limit=1, seconds=1)


def test_names_of_tables_are_unique() -> None:
    assert len({each.lower() for each in KNOWN}) == len(KNOWN)
