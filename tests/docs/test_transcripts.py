"""The commands that README and tutorial show print what these pages say."""

from __future__ import annotations

import re
import sys
import time
from pathlib import Path

import pytest

from tests.docs.transcripts import (
    PAGES,
    ROOT,
    Finished,
    Step,
    matches,
    normalise,
    parse,
    rewrite,
    run_page,
)

HINT = f"If the run is right: {sys.executable} -m tests.docs.transcripts"
WAITING_SECONDS = 120.0
"""A reader waits no longer than this, all commands of the tutorial together."""


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_every_command_prints_what_the_page_shows(page: str) -> None:
    began = time.monotonic()
    results = run_page(ROOT / page)
    took = time.monotonic() - began
    wrong = [each.diff() for each in results if each.differs]
    assert not wrong, "\n\n".join([*wrong, HINT])
    assert took < WAITING_SECONDS


@pytest.mark.parametrize("page", PAGES)
def test_every_block_of_commands_is_one_that_is_run(page: str) -> None:
    fences = re.findall(r"^```(.*)$", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE)
    assert {"console"} <= set(fences[::2]) <= {"console", "python"}
    assert set(fences[1::2]) == {""}


PAGE = """\
<!-- run: prepare -->
```console
$ bullpen send "one
> two"
@coder: cli_aaaaaaaa took 3 s
…
last
$ cd
```
"""


def test_a_page_is_read_as_commands_and_their_output() -> None:
    hidden, send, cd = parse(PAGE)
    assert (hidden.command, hidden.hidden) == ("prepare", True)
    assert send.command == 'bullpen send "one\ntwo"'
    assert send.expected == ["@coder: cli_aaaaaaaa took 3 s", "…", "last"]
    assert (cd.command, cd.expected) == ("cd", [])


def test_ids_times_and_column_widths_do_not_count(subtests: pytest.Subtests) -> None:
    same = {
        "cli_aaaaaaaa  took 3 s": "cli_12345678 took 1 min 20 s",
        "api        RUNNING  4390  5 s": "api        RUNNING  28931  12 s",
        "at 2026-11-20 00:12 UTC": "at 2027-01-02 13:14 UTC",
        "bullpen, version 0.1.0": "bullpen, version 1.2.3",
        "253 rows and 1 file, 372.0 kB": "91 rows and 1 file, 1.2 MB",
    }
    for one, other in same.items():
        with subtests.test(line=one):
            assert normalise([one]) == normalise([other])
    assert normalise(["0 dead"]) != normalise(["1 dead"])


def test_a_difference_is_found_and_written_into_the_page() -> None:
    _, send, _ = parse(PAGE)
    assert matches(send.expected, ["@coder: cli_bbbbbbbb took 2 s", "a", "b", "last"])
    done = Finished(send, ["@coder: cli_aaaaaaaa needed 2 s", "a", "b", "last"])
    assert done.differs
    assert "-@coder: ID took DURATION" in done.diff()
    assert "+@coder: ID needed DURATION" in done.diff()
    assert rewrite(PAGE, [done]) == PAGE.replace("took 3 s", "needed 2 s")


def test_an_output_that_the_page_does_not_show_is_a_difference() -> None:
    assert Finished(Step("cd", 1), ["Error: no such directory"]).differs


def test_the_pages_name_no_path_of_this_machine() -> None:
    for page in PAGES:
        assert not re.search(r"/tmp/|/root|/home/", Path(ROOT / page).read_text(encoding="utf-8"))
