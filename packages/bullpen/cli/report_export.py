"""bullpen report export: the rows of a report as a file."""

from __future__ import annotations

import shutil
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

import click

from bullpen.cli.command import Result, command, json_requested
from bullpen.cli.output import format_count
from bullpen.cli.report_options import filter_options, parse_filter, report_argument
from bullpen.core.clock import SystemClock
from bullpen.core.settings import Settings
from bullpen.reports.read.answer import (
    Question,
    find_table,
    find_view,
    table_question,
    view_question,
)
from bullpen.reports.read.export import Export, Format, export_to_file, write_rows
from bullpen.reports.report import load_report


@command(name="export")
@report_argument
@click.option(
    "--format",
    "form",
    type=click.Choice([each.value for each in Format]),
    help="Format of the rows; without it, the suffix of FILE, or csv.",
)
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write to FILE instead of standard output.",
)
@click.option("--force", is_flag=True, help="Replace an existing FILE.")
@click.option("--view", metavar="NAME", help="View of the report. The first one is the default.")
@click.option("--table", metavar="NAME", help="Table of the report, instead of a view.")
@filter_options(None)
def export(
    settings: Settings,
    name: str,
    form: str | None,
    output: Path | None,
    force: bool,
    view: str | None,
    table: str | None,
    **filters: str | None,
) -> Result | None:
    """Export a report as CSV, JSON or Parquet.

    Durations and times are in milliseconds, and times count from 1970 (UTC).

    \b
    Examples:
      bullpen report export people > people.csv
      bullpen report export people --view days -o days.parquet
      bullpen report export people --table people --since 7d --format json
    """
    if view is not None and table is not None:
        raise click.UsageError("give --view or --table, not both")
    report = load_report(name)
    chosen = parse_filter(settings, **filters)
    if table is not None:
        question = table_question(report, find_table(report, table), chosen)
    else:
        question = view_question(report, find_view(report, view), chosen)
    kind = _format(form, output)
    if output is not None:
        path = output.expanduser().absolute()
        return _result(
            path, kind, export_to_file(settings.reports, question, kind, path, replace=force)
        )
    if json_requested():
        raise click.UsageError("--json needs --output, because the rows go to standard output")
    if kind is Format.PARQUET and sys.stdout.isatty():
        raise click.UsageError("a terminal cannot show Parquet: use --output")
    return _print(settings, question, kind)


def _format(form: str | None, output: Path | None) -> Format:
    """The format that was given, or the one of the file's suffix."""
    if form is not None:
        return Format(form)
    suffix = "" if output is None else output.suffix.lower().lstrip(".")
    return Format(suffix) if suffix in set(Format) else Format.CSV


def _print(settings: Settings, question: Question, form: Format) -> Result:
    """Write the rows to standard output, and their age to standard error."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "rows"
        export = write_rows(settings.reports, question, form, path)
        with path.open("rb") as file:
            shutil.copyfileobj(file, sys.stdout.buffer)
        sys.stdout.buffer.flush()
    return Result(None, hints=[export.freshness.describe(SystemClock().now())])


def _result(path: Path, form: Format, export: Export) -> Result:
    return Result(
        {
            "path": str(path),
            "format": form.value,
            "rows": export.rows,
            "bytes": export.bytes,
            **asdict(export.freshness),
        },
        f"Wrote {format_count(export.rows, 'row')} to {path}.",
        hints=[export.freshness.describe(SystemClock().now())],
    )
