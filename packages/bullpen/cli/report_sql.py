"""bullpen report sql: a query over the reports and the facts."""

from __future__ import annotations

import click

from bullpen.cli.command import Result, command
from bullpen.cli.options import Amount, limit_option
from bullpen.cli.output import format_count
from bullpen.core.clock import SystemClock, format_time, owner_zone_name
from bullpen.core.settings import Settings
from bullpen.core.strict_json import Json
from bullpen.reports.manifest import Manifest, read_manifest
from bullpen.reports.read.filter import parse_day
from bullpen.reports.read.sandbox import SqlTable, files_of, sql_tables
from bullpen.reports.read.sql import SqlResult, run_sql
from bullpen.reports.read.values import format_duration, format_number

TABLES_HEADING = ("TABLE", "OF", "ROWS", "COLUMNS")
LEAST_SECONDS = 0.1


@command(name="sql")
@click.argument("query", metavar="TEXT", required=False)
@click.option("--tables", is_flag=True, help="List the tables and their columns.")
@click.option(
    "--since",
    metavar="DATE|DURATION",
    help="Read only days from this one on, for less memory.",
)
@click.option(
    "--timeout",
    type=Amount(LEAST_SECONDS),
    default=30.0,
    show_default="30",
    help="Time limit of the query in seconds.",
)
@limit_option(100)
def sql(
    settings: Settings,
    query: str | None,
    tables: bool,
    since: str | None,
    timeout: float,
    limit: int,
) -> Result:
    """Run one SELECT over the reports and the facts.

    The SQL is DuckDB's. The query runs on a copy in memory, with at most 1 GB, and without access
    to files and settings. Only the columns that it names are copied.

    \b
    Examples:
      bullpen report sql --tables
      bullpen report sql "SELECT agent, count(*) FROM attempts GROUP BY agent"
      bullpen report sql "SELECT * FROM events ORDER BY id DESC" --since 1d --json
    """
    manifest = read_manifest(settings.reports)
    if tables:
        if query is not None:
            raise click.UsageError("give a query or --tables, not both")
        return _tables(manifest)
    if query is None:
        raise click.UsageError("missing query")
    now = SystemClock().now()
    zone = owner_zone_name(settings) if manifest is None else manifest.zone
    day = None if since is None else parse_day(since, now, zone)
    result = run_sql(settings.reports, query, limit=limit, seconds=timeout, since=day)
    hints = [_describe_age(result, now)]
    if result.truncated:
        hints.append(f"There are more than {format_count(limit, 'row')}. Use --limit to show more.")
    return Result(
        result,
        rows=[
            [each.name for each in result.columns],
            *([_format_cell(cell) for cell in row] for row in result.rows),
        ],
        empty="No rows.",
        hints=hints,
    )


def _tables(manifest: Manifest | None) -> Result:
    tables = sql_tables()
    rows = {
        each.name: sum(file.rows for file in files_of(manifest, each)) if manifest else 0
        for each in tables
    }
    return Result(
        [_document(each, rows[each.name]) for each in tables],
        rows=[
            TABLES_HEADING,
            *(
                (
                    each.name,
                    each.kind,
                    format_number(rows[each.name]),
                    ", ".join(column.name for column in each.columns),
                )
                for each in tables
            ),
        ],
        hints=["What each column means: bullpen report sql --tables --json"],
    )


def _document(table: SqlTable, rows: int) -> dict[str, object]:
    columns = [
        {
            "name": each.name,
            "type": each.type.value,
            "unit": None if each.unit is None else each.unit.value,
            "description": each.description,
        }
        for each in table.columns
    ]
    return {"name": table.name, "of": table.kind, "rows": rows, "columns": columns}


def _format_cell(value: Json) -> str:
    return "" if value is None else str(value)


def _describe_age(result: SqlResult, now: int) -> str:
    if result.covers_until is None:
        return "No facts yet."
    until = format_time(result.covers_until, result.zone)
    return f"Complete until {until}, {format_duration(now - result.covers_until)} ago."
