"""`make bench` works: every section runs, every bar is measured, the floor writes the same rows.

Nothing here looks at a speed.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.bench.__main__ import SECTIONS, run
from tests.bench.bars import BARS
from tests.bench.scale import TINY


@pytest.mark.postgres
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_bench_measures_every_section_and_every_bar(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "results.json"
    run(list(SECTIONS), TINY, tmp_path, path)
    document = json.loads(path.read_text())
    sections = document["sections"]
    assert list(sections) == list(SECTIONS)
    checks = {what: ok for each in sections.values() for what, ok in each["checks"].items()}
    assert "the floor, durable, wrote the same rows" in checks
    assert all(checks.values()), checks
    measured = {each["what"] for section in sections.values() for each in section["measures"]}
    absent = tuple(each.split()[0] for each in document["missing"])
    expected = {bar for bar in BARS if not bar.endswith(absent)} if absent else set(BARS)
    assert expected <= measured
    printed = capsys.readouterr().out
    for name in absent:
        assert f"left out, for it is not installed: {name}" in printed
    duplicates = "8 processes, sqlite durable: duplicates"
    assert [
        each["value"] for each in sections["processes"]["measures"] if each["what"] == duplicates
    ] == [0]
