"""`make bench` works: every section runs, every bar is measured, the floor writes the same rows.

Nothing here looks at a speed. `make test` runs one section, `make bench-check` all of them.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.bench.__main__ import SECTIONS, run
from tests.bench.bars import BARS_OF
from tests.bench.scale import TINY
from tests.bench.section import Bench
from tests.bench.stores import BenchStores
from tests.postgres import PostgresServer
from tests.stores import Stores


class Borrowing(BenchStores):
    """Databases of the bench's on the server that the tests have already."""

    def __init__(self, stores: Stores, directory: Path) -> None:
        super().__init__(directory)
        self._lender = stores

    @property
    def server(self) -> PostgresServer:
        """Theirs; it is not for the bench to stop."""
        return self._lender.server

    def postgres_url(self, name: str) -> str:
        """The address of a new database, under a name that none of theirs has."""
        return super().postgres_url(f"bench_{self.directory.name}_{name}"[-60:])


@pytest.mark.postgres
@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [each if each == "cycle" else pytest.param(each, marks=pytest.mark.bench) for each in SECTIONS],
)
def test_the_bench_measures_each_section_and_its_bars(
    name: str, stores: Stores, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "results.json"
    run([name], Bench(Borrowing(stores, tmp_path), TINY), path)
    document = json.loads(path.read_text())
    assert list(document["sections"]) == [name]
    section = document["sections"][name]
    assert all(section["checks"].values()), section["checks"]
    values = {each["what"]: each["value"] for each in section["measures"]}
    absent = tuple(each.split()[0] for each in document["missing"])
    expected = {bar for bar in BARS_OF[name] if not absent or not bar.endswith(absent)}
    assert expected <= values.keys()
    printed = capsys.readouterr().out
    for each in absent:
        assert f"left out: {each}" in printed
    if name == "cycle":
        assert "the floor, durable, wrote the same rows" in section["checks"]
    if name == "processes":
        assert values["8 processes, sqlite durable: duplicates"] == 0


def test_every_section_has_its_bars() -> None:
    assert list(BARS_OF) == list(SECTIONS)
