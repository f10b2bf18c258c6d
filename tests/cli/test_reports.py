"""bullpen report list, show and sql: what people see, and how old it is."""

from __future__ import annotations

import resource
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from bullpen.core.registry import REPORTS
from bullpen.reports.manifest import ReportState, read_manifest, write_manifest
from bullpen.reports.report import load_report
from tests.cli.command import PROGRAM, Bullpen
from tests.cli.terminal import terminal
from tests.cli.warm import FIRST
from tests.reports.broken_packages import PACKAGES, REASONS, write_packages
from tests.reports.written import END, PEOPLE, Row, write_reports

(TABLE,) = (each for each in load_report("people").tables if each.name == "people")
HOSTILE = "\x1b]52;c;ZXZpbA==\x07evil"


@pytest.fixture
def bullpen(tmp_path: Path) -> Bullpen:
    """A home with reports, and without a database."""
    write_reports(tmp_path / "reports", {TABLE: PEOPLE}, zone="Europe/Berlin")
    return Bullpen(tmp_path)


SHOWN = """\
Messages by day and channel, 2026-10-01 to 2026-11-20
Complete until 2026-11-20 13:00 CET, AGE ago.

telegram  ▂                 █ ▃  max 30
slack                        ▄   max 12
          2026-10-31 2026-11-20

DAY         CHANNEL   MESSAGES  SENDERS
2026-10-31  telegram  4         1
2026-11-18  telegram  30        1
2026-11-19  slack     12        1
2026-11-20  telegram  8         2
"""


def show(bullpen: Bullpen, *arguments: str, **environ: str) -> str:
    """What `report show people` prints from October on, without the age."""
    period = ("--since", "2026-10-01", "--until", "2026-11-20")
    out = bullpen.ok("report", "show", "people", *period, *arguments, **environ).out
    head, _, rest = out.partition(" CET, ")
    return f"{head} CET, AGE ago.{rest.partition(' ago.')[2]}"


def test_a_report_is_shown_as_chart_and_table_with_its_age(bullpen: Bullpen) -> None:
    assert show(bullpen, "--view", "days", PYTHONUTF8="1") == SHOWN


def test_a_terminal_without_unicode_gets_plain_characters(bullpen: Bullpen) -> None:
    shown = subprocess.run(
        [*PROGRAM, "report", "show", "people", "--since", "2026-10-01"],
        env=bullpen.environment(PYTHONIOENCODING="ascii"),
        check=True,
        capture_output=True,
    )
    assert b"Ann   #####" in shown.stdout
    assert shown.stdout.isascii()


def test_the_newest_days_are_shown_where_rows_are_cut(bullpen: Bullpen) -> None:
    command = ("report", "show", "people", "--view", "days", "--since", "2026-10-01", "-n", "1")
    result = bullpen.ok(*command)
    assert "2026-11-20  telegram  8" in result.out
    assert "2026-11-19  slack" not in result.out
    assert "The last 1 of 4 rows. Use --limit to show more." in result.err
    assert "Other views: people. Use --view to show one." in result.err


def test_a_filter_that_selects_nothing_says_so(bullpen: Bullpen) -> None:
    out = show(bullpen, "--channel", "sms")
    assert out.endswith("\nNo rows in this period.\n")
    assert ", 2026-10-01 to 2026-11-20, channel sms\n" in out


def test_before_the_first_run_each_command_says_what_to_type(tmp_path: Path) -> None:
    bullpen = Bullpen(tmp_path)
    listed = bullpen.ok("report", "list")
    assert "Who writes, how much, and on which channel?" in listed.out
    assert "not computed" in listed.out
    assert "bullpen report run" in listed.err
    for command in (["show", "people"], ["export", "people"], ["sql", "SELECT 1"]):
        result = bullpen("report", *command)
        assert result.status == 1
        assert "bullpen report run" in result.err
    assert "attempts" in bullpen.ok("report", "sql", "--tables").out


def test_the_list_has_rows_period_and_age(bullpen: Bullpen) -> None:
    (line,) = (
        each for each in bullpen.ok("report", "list").out.splitlines() if each.startswith("people")
    )
    assert "  5  " in line
    assert "2026-11-01" in line
    assert bullpen.ok("report", "list", "-q").out.split()[:1] == ["throughput"]


def test_the_list_says_which_reports_failed_and_which_cannot_be_used(
    bullpen: Bullpen, tmp_path: Path
) -> None:
    packages = tmp_path / "packages"
    write_packages(packages)
    directory = bullpen.home / "reports"
    manifest = read_manifest(directory)
    assert manifest is not None
    failed = ReportState(covers_until=END, error="no memory\nat line 7")
    write_manifest(directory, replace(manifest, reports={**manifest.reports, "people": failed}))
    environ = {FIRST: "tests.reports.broken_packages", PACKAGES: str(packages)}
    listed = bullpen.ok("report", "list", **environ)
    states = {line.split()[0]: line.split("  ")[-1].strip() for line in listed.out.splitlines()}
    assert states["people"] == "failed"
    assert (states["usage"], states["whole"]) == ("computed", "not computed")
    assert {states[name] for name in REASONS} == {"not loaded"}
    assert "people: The last run could not compute this report: no memory\n" in listed.err
    for name, reason in REASONS.items():
        (line,) = (each for each in listed.err.splitlines() if each.startswith(f"{name} cannot"))
        assert reason in line
    for name in ("ending", "thief"):
        refused = bullpen("report", "show", name, **environ)
        assert (refused.status, REASONS[name] in refused.err) == (1, True)
    names = bullpen.ok("report", "list", "-q", **environ).out.split()
    assert names == [*REPORTS.built_in, "whole"]


def test_mistakes_are_explained(bullpen: Bullpen) -> None:
    mistakes = {
        ("show", "peple"): "there is no report 'peple'",
        ("show", "people", "--view", "dais"): "Did you mean 'days'?",
        ("show", "people", "--view", "days", "--table", "people"): "not both",
        ("show", "people", "--since", "yesterday"): "invalid day 'yesterday'",
        ("show", "people", "--agent", "coder"): "no filter 'agent'",
        ("sql",): "missing query",
        ("sql", "DROP TABLE people"): "the query is not a SELECT",
    }
    for arguments, text in mistakes.items():
        result = bullpen("report", *arguments)
        assert result.status in (1, 2)
        assert text in result.err, (arguments, result)


def test_no_control_character_of_a_sender_reaches_a_terminal(tmp_path: Path) -> None:
    rows: list[Row] = [{**PEOPLE[-1], "sender": HOSTILE, "channel": HOSTILE}]
    write_reports(tmp_path / "reports", {TABLE: rows})
    bullpen = Bullpen(tmp_path)
    shown = ["report", "show", "people", "--since", "2026-10-01"]
    for command in (shown, ["report", "sql", "SELECT sender, channel FROM people"]):
        result = bullpen.ok(*command)
        assert "evil" in result.out
        assert "\x1b" not in result.out + result.err
    with terminal(bullpen, *shown) as at:
        at.end()
        assert "\x1b]52" not in at.shown
        assert "\x07" not in at.shown


def test_a_report_is_shown_in_a_fraction_of_a_second(bullpen: Bullpen) -> None:
    """On an idle machine 0.22 s of processor time, and little more by the clock."""
    command = [*PROGRAM, "report", "show", "people", "--since", "2026-10-01"]
    taken = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, env=bullpen.environment(), check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        taken.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    assert min(taken) < 0.45, taken


def test_reading_imports_neither_spark_nor_pyarrow_nor_pandas(bullpen: Bullpen) -> None:
    code = (
        "import sys; from bullpen.cli.main import cli;"
        f"cli({['report', 'show', 'people', '--since', '2026-10-01']!r}, standalone_mode=False);"
        "heavy = {'pyspark', 'pyarrow', 'pandas', 'numpy', 'plotly', 'rich'};"
        "print(sorted(heavy & set(sys.modules)))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code],
        env=bullpen.environment(),
        check=True,
        capture_output=True,
        text=True,
    )
    assert result.stdout.splitlines()[-1] == "[]"
