"""Reports over the API: the list, rows by pages with their age, and who may read them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bullpen.core.access.keys import Scope
from bullpen.core.files import file_lock
from bullpen.reports.detached_run import RUN_LOCK
from bullpen.reports.manifest import MANIFEST
from bullpen.reports.report import load_report
from tests.api.served import Served, serving
from tests.api.test_metrics import scrape
from tests.reports.written import BEGIN, END, PEOPLE, write_reports
from tests.stores import Stores

ROWS = "/api/reports/people/rows"


@pytest.fixture(scope="module")
def served(stores: Stores) -> Iterator[Served]:
    """The API on SQLite: reports are read from files, whatever the store is."""
    settings = stores.settings("sqlite")
    with serving(settings) as running:
        yield running


@pytest.fixture
def computed(served: Served) -> Iterator[Served]:
    """The same with reports."""
    write_reports(served.settings.reports, {load_report("people").tables[0]: PEOPLE})
    yield served
    (served.settings.reports / MANIFEST).unlink()


def test_before_the_first_run_the_reports_are_listed_and_have_no_rows(served: Served) -> None:
    listed = {each["name"]: each for each in served.get("/api/reports")}
    assert listed["people"]["freshness"] is None
    assert listed["people"]["rows"] == 0
    assert served.refused("GET", ROWS) == (404, "no_reports_yet")
    assert scrape(served)["bullpen_reports_complete_timestamp_seconds"] == []


def test_a_report_is_described_with_its_columns(computed: Served) -> None:
    found = computed.get("/api/reports/people")
    assert [each["name"] for each in found["views"]] == ["people", "days"]
    assert found["views"][1]["chart"] == {
        "kind": "stacked",
        "x": "day",
        "y": ["messages"],
        "series": "channel",
    }
    assert found["tables"][0]["grain"][:2] == ["day", "channel"]
    assert {"name", "type", "unit", "description"} == set(found["tables"][0]["columns"][0])
    assert found["freshness"]["covers_until"] == END
    assert computed.refused("GET", "/api/reports/nothing") == (404, "unknown_report")


def test_rows_have_the_time_that_they_cover(computed: Served) -> None:
    answer = computed.get(f"{ROWS}?since=2026-11-19&channel=telegram")
    assert answer.pop("generated_at") == END + 5000
    assert answer == {
        "report": "people",
        "view": "people",
        "covers_from": BEGIN,
        "covers_until": END,
        "zone": "Etc/UTC",
        "error": None,
        "missing": [],
        "since": "2026-11-19",
        "until": None,
        "ignored_filters": [],
        "total": 2,
        "rows": [
            {
                "channel": "telegram",
                "sender": name,
                "messages": messages,
                "conversations": 1,
                "last_at": END - 1000 * messages,
            }
            for name, messages in (("Cleo", 5), ("Ann", 3))
        ],
        "next_cursor": None,
    }
    complete = scrape(computed)["bullpen_reports_complete_timestamp_seconds"]
    assert [each.value for each in complete] == [END / 1000]


def test_a_client_pages_through_a_table(computed: Served) -> None:
    days: list[str] = []
    more: str | None = ""
    while more is not None:
        page = computed.get(f"{ROWS}?table=people&limit=2{more}")
        days += [each["day"] for each in page["rows"]]
        cursor = page["next_cursor"]
        more = None if cursor is None else f"&cursor={cursor}"
    assert days == ["2026-10-31", "2026-11-18", "2026-11-19", "2026-11-20", "2026-11-20"]


def test_a_question_that_a_report_cannot_answer_is_refused(
    computed: Served, subtests: pytest.Subtests
) -> None:
    wrong = {
        "view=nothing": (404, "unknown_report"),
        "table=nothing": (404, "unknown_report"),
        "view=days&table=people": (400, "bad_query"),
        "agent=coder": (400, "bad_query"),
        "since=yesterday": (400, "bad_query"),
        "since=2026-11-02&until=2026-11-01": (400, "bad_query"),
        "cursor=1": (400, "bad_query"),
        "cursor=000000000000-2": (409, "conflict"),
        "limit=0": (400, "bad_request"),
        "limit=501": (400, "bad_request"),
    }
    for query, expected in wrong.items():
        with subtests.test(query):
            assert computed.refused("GET", f"{ROWS}?{query}") == expected


def test_a_key_for_one_agent_reads_no_report_of_everyone(computed: Served) -> None:
    key = computed.key(Scope.READ, agents=("coder",))
    for path in ("/api/reports", "/api/reports/people", ROWS, "/api/reports/run"):
        assert computed.refused("GET", path, token=key) == (403, "out_of_reach")
    for query in ("", "?agent=tester", "?agent=coder&view=busy", "?agent=coder&table=peaks"):
        path = f"/api/reports/throughput/rows{query}"
        assert computed.refused("GET", path, token=key) == (403, "out_of_reach")
    assert computed.get("/api/reports/throughput/rows?agent=coder", token=key)["rows"] == []


def test_the_run_is_started_by_admins_only_and_one_at_a_time(computed: Served) -> None:
    key = computed.key(Scope.READ)
    refused = computed.refused("POST", "/api/reports/run", token=key)
    assert refused == (403, "scope_too_small")
    assert computed.get("/api/reports/run", token=key)["state"] == "never"
    with file_lock(computed.settings.reports / RUN_LOCK):
        assert computed.get("/api/reports/run")["state"] == "running"
        assert computed.refused("POST", "/api/reports/run") == (409, "reports_running")


def test_a_damaged_report_is_an_error_that_names_the_file(computed: Served) -> None:
    (file,) = computed.settings.reports.glob("results/people/month=2026-11/*.parquet")
    file.write_bytes(b"x")
    response = computed.ask("GET", ROWS)
    assert (response.status_code, response.json()["code"]) == (500, "reports_damaged")
    assert str(file) in response.json()["error"]


def test_a_page_takes_a_few_hundredths_of_a_second(computed: Served) -> None:
    """The processor's time of the server; the clock's depends on what else the machine does."""

    def used() -> float:
        times = [each.cpu_times() for each in computed.workers]
        return sum(each.user + each.system for each in times)

    computed.get(f"{ROWS}?view=days")
    before = used()
    for _ in range(20):
        computed.get(f"{ROWS}?view=days")
    assert (used() - before) / 20 < 0.1
