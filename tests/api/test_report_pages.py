"""The pages of the reports: what a browser gets, and what nothing in it can do."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
import requests
from markupsafe import escape

from bullpen.api.portal.figures import MAX_BARS, MAX_SERIES, OTHER, Row, make_figure
from bullpen.core.access.keys import Scope
from bullpen.core.clock import HOUR
from bullpen.reports import Chart, ChartKind, Column, Type, Unit, View
from bullpen.reports.manifest import MANIFEST, ReportState, read_manifest, write_manifest
from bullpen.reports.read.values import Value as Cell
from bullpen.reports.report import list_reports, load_report
from tests.api.served import Served, serving
from tests.cli.warm import FIRST
from tests.reports.broken_packages import PACKAGES, REASONS, write_packages
from tests.reports.written import END, PEOPLE, write_reports
from tests.stores import Stores

BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
PAGE = "/reports/people"
ALL = f"{PAGE}?period=all"
HOSTILE = '</script><img src=x onerror="alert(1)">&'


@pytest.fixture(scope="module")
def served(stores: Stores, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The API on SQLite: pages read files, whatever the store is. Some packages are broken."""
    packages = tmp_path_factory.mktemp("packages")
    write_packages(packages)
    environ = {FIRST: "tests.reports.broken_packages", PACKAGES: str(packages)}
    with serving(stores.settings("sqlite"), **environ) as running:
        yield running


@pytest.fixture
def computed(served: Served) -> Iterator[Served]:
    """The same with reports."""
    write_reports(served.settings.reports, {load_report("people").tables[0]: PEOPLE})
    yield served
    (served.settings.reports / MANIFEST).unlink()


class Page(HTMLParser):
    """The parts of a page that these tests look at."""

    def __init__(self, response: requests.Response) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.cells: list[str] = []
        self.options: list[str] = []
        self.figures: list[dict[str, list[dict[str, Any]]]] = []
        self._inside = ""
        assert response.headers["Content-Type"].startswith("text/html"), response.text
        self.feed(response.text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.tags.append((tag, found))
        self._inside = "json" if found.get("type") == "application/json" else tag
        if tag == "td":
            self.cells.append("")

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside == "td":
            self.cells[-1] += data
        elif self._inside == "option":
            self.options.append(data.strip())
        elif self._inside == "json":
            self.figures.append(json.loads(data))

    def attributes(self, tag: str, name: str) -> list[str]:
        """The values of an attribute."""
        return [found[name] for each, found in self.tags if each == tag and name in found]


def browse(served: Served, path: str, token: str | None = None) -> requests.Response:
    """The answer to a browser."""
    return served.ask("GET", path, token=token, headers=BROWSER)


def page(served: Served, path: str, token: str | None = None) -> Page:
    """The page of an address that a browser may read."""
    response = browse(served, path, token)
    assert response.status_code == 200, response.text
    return Page(response)


def test_before_the_first_run_each_page_says_what_to_type(served: Served) -> None:
    for path in ("/reports", PAGE):
        text = browse(served, path).text
        assert "No reports yet" in text
        assert "bullpen report run" in text


def test_every_report_is_on_the_overview_and_each_link_leads_to_a_page(computed: Served) -> None:
    links = page(computed, "/reports").attributes("a", "href")
    assert [f"/reports/{each.name}" in links for each in list_reports()] == [True] * len(
        list_reports()
    )
    broken = {
        each: status
        for each in links
        if each.startswith("/") and (status := browse(computed, each).status_code) != 200
    }
    assert broken == {}


def test_a_broken_report_of_a_package_is_on_the_overview_with_the_reason(
    computed: Served,
) -> None:
    text = browse(computed, "/reports").text
    assert [reason for reason in REASONS.values() if escape(reason) not in text] == []
    links = Page(browse(computed, "/reports")).attributes("a", "href")
    assert "/reports/whole" in links
    assert not {f"/reports/{name}" for name in REASONS} & {*links}
    response = browse(computed, "/reports/ending")
    assert (response.status_code, "SystemExit" in response.text) == (404, True)
    listed = {each["name"]: each["problem"] for each in computed.get("/api/reports")}
    assert {name for name, problem in listed.items() if problem} == REASONS.keys()


def test_a_report_that_the_last_run_could_not_compute_says_so_with_its_age(
    computed: Served,
) -> None:
    directory = computed.settings.reports
    manifest = read_manifest(directory)
    assert manifest is not None
    failed = ReportState(covers_until=END - 24 * HOUR, error="<no> memory", missing=("2026-11-20",))
    write_manifest(directory, replace(manifest, reports={"people": failed}))
    said = "The last run could not compute 2026-11-20: &lt;no&gt; memory"
    for path in ("/reports", ALL):
        text = browse(computed, path).text
        assert text.count(said) == 1, path
        assert "2026-11-19 12:00 UTC" in text
    assert said not in browse(computed, "/reports/usage").text


def test_a_damaged_report_breaks_neither_the_overview_nor_another_report(
    computed: Served,
) -> None:
    today = datetime.now(UTC).date()
    rows = [{**PEOPLE[0], "day": today}]
    write_reports(computed.settings.reports, {load_report("people").tables[0]: rows}, run=4)
    (file,) = computed.settings.reports.glob("results/people/*/4.parquet")
    file.write_bytes(b"x")
    text = browse(computed, "/reports").text
    assert file.name in text
    assert text.count('class="problem"') == len(REASONS) + 1
    assert browse(computed, "/reports/usage").status_code == 200


def test_a_page_has_the_numbers_of_the_report_as_chart_table_and_csv(computed: Served) -> None:
    found = page(computed, ALL)
    assert {"Ann", "Bob", "Cleo", "37", "12", "5"} <= set(found.cells)
    (bars, days) = found.figures
    assert dict(zip(bars["traces"][0]["x"], bars["traces"][0]["y"], strict=True)) == {
        "Ann": 37,
        "Bob": 12,
        "Cleo": 5,
    }
    assert {str(each["name"]) for each in days["traces"]} == {"telegram", "slack"}
    (first, _) = [each for each in found.attributes("a", "href") if ".csv" in each]
    text = browse(computed, first).text
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [(each["sender"], each["messages"]) for each in rows] == [
        ("Ann", "37"),
        ("Bob", "12"),
        ("Cleo", "5"),
    ]


def test_the_address_has_the_filters_and_links_keep_them(computed: Served) -> None:
    path = f"{PAGE}?since=2026-11-18&until=2026-11-20&channel=telegram"
    found = page(computed, path)
    assert {"Ann", "33", "Cleo"} <= set(found.cells)
    assert "Bob" not in found.cells
    (first, _) = [each for each in found.attributes("a", "href") if ".csv" in each]
    assert first.endswith("people.csv?since=2026-11-18&until=2026-11-20&channel=telegram")
    assert "Bob" not in browse(computed, first).text
    empty = page(computed, f"{PAGE}?since=&until=&channel=&period=all")
    assert "Bob" in empty.cells


def test_a_view_that_a_filter_does_not_reach_says_so(computed: Served) -> None:
    handoffs = load_report("handoffs").tables
    chain: dict[str, Cell] = {
        "day": date(2026, 11, 19),
        "depth": 0,
        "conversations": 1,
        "runs": 1,
        "messages": 1,
    }
    write_reports(computed.settings.reports, {handoffs[-1]: [chain]}, run=3)
    text = browse(computed, "/reports/handoffs?period=all&channel=slack").text
    assert text.count("not filtered by channel") == text.count("Of everything")
    assert "not filtered by channel" in text
    assert "not filtered" not in browse(computed, "/reports/handoffs?period=all").text


def test_each_run_shows_its_own_numbers_at_once(computed: Served) -> None:
    """Pages are kept in memory until the next run, or until the filters or the day change."""
    (table,) = load_report("people").tables
    day = datetime.now(UTC).date()
    for run in (6, 7, 8):
        rows = [{**PEOPLE[0], "day": day, "messages": 1000 + run, "channel": f"c{run}"}]
        write_reports(computed.settings.reports, {table: rows}, run=run)
        for path in (ALL, PAGE, "/reports"):
            text = browse(computed, path).text
            found = [each for each in (6, 7, 8) if f"1,00{each}" in text]
            assert found == [run], path
        assert page(computed, ALL).options.count(f"c{run}") == 1
    assert "1,008" not in page(computed, f"{PAGE}?channel=c7").cells


def test_a_period_ends_today_and_the_overview_has_thirty_days(computed: Served) -> None:
    (table,) = load_report("people").tables
    today = datetime.now(UTC).date()
    days = {0: 1, 6: 10, 7: 100, 29: 1000, 30: 10_000}
    rows = [
        {**PEOPLE[0], "day": today - timedelta(days=ago), "messages": messages}
        for ago, messages in days.items()
    ]
    write_reports(computed.settings.reports, {table: rows}, run=9)
    sums = {"7": "11", "30": "1,111", "all": "11,111"}
    for period, expected in sums.items():
        assert expected in page(computed, f"{PAGE}?period={period}").cells, period
    assert re.search('class="figure">1,111 ', browse(computed, "/reports").text)


def test_a_card_of_values_that_cannot_be_added_shows_the_last_day(computed: Served) -> None:
    buckets = load_report("latency").tables[1]
    today = datetime.now(UTC).date()
    rows: list[dict[str, Cell]] = [
        {
            "day": today - timedelta(days=ago),
            "agent": "coder",
            "stage": "waiting",
            "bucket": milliseconds,
            "count": 1,
        }
        for ago, milliseconds in ((2, 31), (0, 47), (1, 53))
    ]
    write_reports(computed.settings.reports, {buckets: rows}, run=11)
    text = browse(computed, "/reports").text
    found = re.findall(r'class="figure">(\d+) ms', text)
    assert found == ["47"]
    assert "waiting, p95, last day" in text


def test_a_long_table_is_cut_and_the_csv_is_not(computed: Served) -> None:
    (table,) = load_report("people").tables
    rows = [{**PEOPLE[0], "sender_id": f"{n}", "sender": f"Ann {n}"} for n in range(130)]
    write_reports(computed.settings.reports, {table: rows}, run=10)
    response = browse(computed, ALL)
    found = Page(response)
    assert len([each for each in found.cells if each.startswith("Ann")]) == 100
    assert "The first 100 rows. The CSV has all." in response.text
    assert len(found.figures[0]["traces"][0]["x"]) == MAX_BARS
    (first, _) = [each for each in found.attributes("a", "href") if ".csv" in each]
    assert len(list(csv.DictReader(io.StringIO(browse(computed, first).text)))) == 130
    headings = dict(
        zip(
            ("channel", "sender", "messages", "conversations", "last at"),
            found.attributes("th", "class"),
            strict=False,
        )
    )
    assert (headings["messages"], headings["last at"]) == ("number", "text")


def test_the_overview_has_the_age_of_the_report_that_covers_least(computed: Served) -> None:
    directory = computed.settings.reports
    manifest = read_manifest(directory)
    assert manifest is not None
    states = {
        name: ReportState(covers_until=END - hours * HOUR)
        for name, hours in (("usage", 1), ("people", 5), ("delivery", 2))
    }
    write_manifest(directory, replace(manifest, reports=states))
    assert "to 2026-11-20 07:00 UTC" in browse(computed, "/reports").text


def test_old_numbers_are_marked(computed: Served) -> None:
    now = int(datetime.now(UTC).timestamp() * 1000)
    marked = []
    for hours in (0, 4):
        directory = computed.settings.reports
        manifest = read_manifest(directory)
        assert manifest is not None
        until = now - hours * HOUR
        facts = {name: replace(each, covers_until=until) for name, each in manifest.facts.items()}
        reports = {"people": ReportState(covers_until=until)}
        write_manifest(directory, replace(manifest, facts=facts, reports=reports))
        text = browse(computed, ALL).text
        marked.append(("These numbers are" in text, "These numbers are 4 h" in text))
    assert marked == [(False, False), (True, True)]


def test_a_browser_without_a_login_is_told_how_and_a_program_gets_json(computed: Served) -> None:
    response = browse(computed, PAGE, token="")
    assert response.status_code == 401
    assert "bullpen open" in response.text
    assert computed.refused("GET", PAGE, token="") == (401, "no_access")


def test_a_key_for_some_agents_sees_no_page_and_a_reader_has_no_button(computed: Served) -> None:
    some = computed.key(Scope.READ, agents=("coder",))
    paths = ("/reports", PAGE, f"{PAGE}/people.csv")
    assert [browse(computed, each, some).status_code for each in paths] == [403] * 3
    reader = page(computed, PAGE, computed.key(Scope.READ))
    assert "run" not in reader.attributes("button", "id")
    assert "run" in page(computed, PAGE).attributes("button", "id")
    claimer = computed.key(Scope.CLAIM)
    assert browse(computed, PAGE, claimer).status_code == 403


def test_no_text_of_a_person_becomes_markup(computed: Served) -> None:
    rows = [{**PEOPLE[0], "sender": HOSTILE, "channel": HOSTILE, "day": date(2026, 11, 19)}]
    write_reports(computed.settings.reports, {load_report("people").tables[0]: rows}, run=2)
    response = browse(computed, ALL)
    found = Page(response)
    assert HOSTILE in found.cells
    assert HOSTILE in found.figures[0]["traces"][0]["x"]
    assert [each for each, _ in found.tags if each == "img"] == []
    policy = response.headers["Content-Security-Policy"]
    assert "unsafe" not in policy
    assert "script-src 'self'" in policy
    inline = [found for tag, found in found.tags if tag == "script" and "src" not in found]
    assert {each["type"] for each in inline} == {"application/json"}
    assert not [name for _, found in found.tags for name in found if re.match("on|style", name)]


def test_every_file_of_a_page_is_served_by_its_checksum_and_kept(computed: Served) -> None:
    found = page(computed, ALL)
    files = [*found.attributes("script", "src"), *found.attributes("link", "href")]
    files = [each for each in files if not each.startswith("data:")]
    assert len(files) >= 4
    for each in files:
        response = computed.ask("GET", each, token="")
        assert (response.status_code, "immutable" in response.headers["Cache-Control"]) == (
            200,
            True,
        ), each
    for wrong in ("/assets/0/style.css", f"{files[-1]}x", "/assets/0/..%2f__init__.py"):
        assert computed.ask("GET", wrong).status_code == 404, wrong


@pytest.mark.parametrize(
    ("path", "status", "text"),
    [
        ("/reports/nothing", 404, "bullpen report list"),
        (f"{PAGE}/nothing.csv", 404, "Views of people"),
        (f"{PAGE}?since=yesterday", 400, "since"),
        (f"{PAGE}?since=2026-11-20&until=2026-11-01", 400, "after the last day"),
    ],
)
def test_a_wrong_address_is_a_page_that_says_why(
    computed: Served, path: str, status: int, text: str
) -> None:
    response = browse(computed, path)
    assert response.status_code == status
    assert text in response.text
    assert Page(response).attributes("link", "rel")


def test_damaged_reports_are_a_page_with_the_file_and_what_to_do(computed: Served) -> None:
    directory: Path = computed.settings.reports
    write_reports(directory, {load_report("people").tables[0]: PEOPLE}, run=5)
    (file,) = directory.glob("results/people/month=2026-10/5.parquet")
    file.write_bytes(b"PAR1" + b"0" * (file.stat().st_size - 8) + b"PAR1")
    response = browse(computed, ALL)
    assert response.status_code == 500
    assert file.name in response.text
    assert "bullpen report run" in response.text


def test_more_series_than_a_person_can_tell_apart_are_summed_as_other() -> None:
    view = View(
        name="days",
        title="Days",
        sql="",
        columns=(
            Column("day", Type.DATE, "The day."),
            Column("channel", Type.TEXT, "The channel."),
            Column("messages", Type.INTEGER, "Messages.", Unit.COUNT),
        ),
        chart=Chart(kind=ChartKind.STACKED, x="day", y=("messages",), series="channel"),
    )
    rows = [
        {"day": day, "channel": f"c{number:02}", "messages": 100 - number}
        for day in ("2026-11-02", "2026-11-01")
        for number in range(10)
    ]
    figure = make_figure(view, rows)
    assert figure is not None
    assert [each["name"] for each in figure.traces] == [
        *(f"c{number:02}" for number in range(MAX_SERIES)),
        OTHER,
    ]
    assert figure.traces[0]["x"] == ["2026-11-01", "2026-11-02"]
    assert figure.traces[-1]["y"] == [93 + 92 + 91] * 2


def test_each_of_a_few_days_has_a_label() -> None:
    """Plotly would label the hours between two days, and milliseconds around one."""
    columns = (
        Column("month", Type.DATE, "The month."),
        Column("runs", Type.INTEGER, "Runs.", Unit.COUNT),
    )
    chart = Chart(kind=ChartKind.LINE, x="month", y=("runs",))
    view = View(name="months", title="Months", sql="", columns=columns, chart=chart)
    days = [f"2026-11-{day:02}" for day in range(1, 7)]
    axes = []
    for count in (1, 5, 6):
        figure = make_figure(view, [{"month": each, "runs": 1} for each in days[:count]])
        assert figure is not None
        axis = figure.layout["xaxis"]
        assert isinstance(axis, dict)
        axes.append(axis.get("tickvals"))
    assert axes == [days[:1], days[:5], None]


def test_percentiles_are_never_added_and_long_names_stay_different_places() -> None:
    name = Column("error", Type.TEXT, "The error.")
    p95 = Column("p95", Type.INTEGER, "The percentile.", Unit.MILLISECONDS)
    view = View(
        name="errors",
        title="Errors",
        sql="",
        columns=(name, p95),
        chart=Chart(kind=ChartKind.BAR, x="error", y=("p95",)),
    )
    long = "the same beginning of two errors: "
    rows: list[Row] = [{"error": f"{long}{end}", "p95": 1000} for end in ("one", "two", "two")]
    figure = make_figure(view, rows)
    assert figure is not None
    assert figure.traces[0]["y"] == [1, 1]
    axis = figure.layout["xaxis"]
    assert isinstance(axis, dict)
    assert axis["tickvals"] == [f"{long}one", f"{long}two"]
    assert len(axis["ticktext"][0]) < len(long)


def test_each_value_of_a_filter_is_offered_once(computed: Served) -> None:
    """Also if only one table of the report has the column."""
    options = page(computed, ALL).options
    assert [options.count(each) for each in ("telegram", "slack")] == [1, 1]
