"""Landing: what a range of facts becomes on the disk."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bullpen.core.clock import DAY, HOUR
from bullpen.core.errors import NotShared
from bullpen.core.settings import Settings
from bullpen.core.store.base import Store
from bullpen.reports.facts.read import StoreAddress
from bullpen.reports.job import land
from bullpen.reports.job.days import utc_date
from bullpen.reports.job.land import Landed, Landing, Range
from bullpen.reports.job.land_here import land_here, land_in_process
from bullpen.reports.job.parquet import read_parquet, write_parquet
from tests.reports.job.facts import SPRING, Run, write_runs
from tests.stores import Stores

ZONE = "Europe/Berlin"


@pytest.fixture
def settings(stores: Stores) -> Settings:
    return stores.settings("sqlite")


@pytest.mark.parametrize("many_spans", [0, 1_000], ids=["sorted", "sliced"])
def test_a_row_is_in_the_file_of_its_date_wherever_it_is_in_the_range(
    store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, many_spans: int
) -> None:
    monkeypatch.setattr(land, "MANY_SPANS", many_spans)
    ends = [SPRING + each * HOUR for each in (0, 30, 1, -20, 31, 2, 2, 100, -1)]
    write_runs(store, [Run(each, each) for each in ends])
    landed = landing_of(store, tmp_path).land(Range("attempts", 1, 9))
    dates = [utc_date(each // DAY).isoformat() for each in ends]
    assert [each.file.date for each in landed] == sorted({*dates})
    for each in landed:
        ids = read_parquet(tmp_path / each.file.name)["id"].to_pylist()
        assert ids == [number for number, date in enumerate(dates, 1) if date == each.file.date]
        assert (each.file.first, each.file.last, each.file.rows) == (ids[0], ids[-1], len(ids))


def test_only_columns_whose_values_repeat_have_a_dictionary(tmp_path: Path) -> None:
    """For the others it doubles the time to write, and the file becomes larger."""
    rows = pa.table({"id": range(10_000), "agent": ["coder", "writer"] * 5_000})
    write_parquet(tmp_path / "x.parquet", [rows])
    group = pq.ParquetFile(tmp_path / "x.parquet").metadata.row_group(0)
    assert [group.column(n).has_dictionary_page for n in (0, 1)] == [False, True]


def test_a_task_of_spark_does_not_import_pandas(store: Store, tmp_path: Path) -> None:
    """That takes 0.3 s and 50 MB of each process."""
    write_runs(store, [Run(SPRING - 40 * HOUR, SPRING), Run(SPRING, SPRING + DAY)])
    code = f"""
import sys
from pathlib import Path
from bullpen.reports.facts.read import StoreAddress
from bullpen.reports.job.land import Landed, Landing, Range, _to_batches
landing = Landing(Path({str(tmp_path)!r}), {ZONE!r}, StoreAddress({store.settings.url!r}))
landed = landing.land(Range("attempts", 1, 2))
(first, second) = _to_batches(landed)
print(*(each for each in ("pandas", "pyarrow.dataset") if each in sys.modules))
assert [Landed.from_json(each["landed"][0].as_py()) for each in (first, second)] == landed
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("\n", "")


def test_a_process_lands_the_same_as_this_one(store: Store, tmp_path: Path) -> None:
    write_runs(store, [Run(SPRING + each * HOUR, SPRING + each * DAY) for each in range(1, 5)])
    landing, parts = landing_of(store, tmp_path), [Range("attempts", 1, 2), Range("attempts", 3, 9)]
    here, below = land_here(landing, parts), land_in_process(landing, parts)
    assert [nameless(each) for each in below] == [nameless(each) for each in here]
    for each in (*here, *below):
        ids = read_parquet(tmp_path / each.file.name)["id"].to_pylist()
        assert ids == [*range(each.file.first, each.file.last + 1)]


def test_an_error_of_the_process_is_the_same_as_one_of_this(store: Store, tmp_path: Path) -> None:
    gone = Landing(tmp_path, ZONE, StoreAddress(f"sqlite:///{tmp_path}/absent.db"))
    with pytest.raises(NotShared, match="does not exist on this machine") as raised:
        land_in_process(gone, [Range("attempts", 1, 1)])
    assert raised.value.hint.startswith("Use PostgreSQL")
    write_runs(store, [Run(SPRING, SPRING)])
    (tmp_path / "facts").write_text("no directory")
    with pytest.raises(FileExistsError):
        land_in_process(landing_of(store, tmp_path), [Range("attempts", 1, 1)])


def landing_of(store: Store, directory: Path) -> Landing:
    """Lands facts of the store in the directory."""
    return Landing(directory, ZONE, StoreAddress(store.settings.url))


def nameless(landed: Landed) -> Landed:
    """It without the random part of the file's name."""
    name, _, _ = landed.file.name.rpartition("-")
    return replace(landed, file=replace(landed.file, name=name))
