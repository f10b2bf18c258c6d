"""The class archive: one file for each Java and Spark, whole or not there at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from bullpen.core.errors import StoreFull
from bullpen.reports.spark import class_archive
from bullpen.reports.spark.class_archive import LEAST_BYTES, ClassArchive, is_worth_recording
from bullpen.reports.spark.java import Java


@pytest.fixture
def jars(tmp_path: Path) -> Path:
    made = tmp_path / "jars"
    made.mkdir()
    (made / "spark.jar").write_text("classes")
    return made


def archive(tmp_path: Path, jars: Path, version: int = 17, build: str = "17.0.1") -> ClassArchive:
    return ClassArchive.find(Java(tmp_path, version, build), jars, tmp_path)


def recorded(directory: Path, size: int = LEAST_BYTES) -> Path:
    """What Java wrote."""
    made = directory / "recorded"
    made.write_bytes(b"x" * size)
    return made


def test_another_java_or_another_spark_has_another_file(tmp_path: Path, jars: Path) -> None:
    first = archive(tmp_path, jars)
    assert archive(tmp_path, jars) == first
    assert archive(tmp_path, jars, build="17.0.2") != first
    (jars / "spark.jar").write_text("other classes")
    assert archive(tmp_path, jars) != first


def test_a_new_file_replaces_those_for_others(tmp_path: Path, jars: Path) -> None:
    old = archive(tmp_path, jars, build="17.0.0")
    old.keep(recorded(tmp_path))
    assert old.exists()
    new = archive(tmp_path, jars)
    new.keep(recorded(tmp_path))
    assert (old.exists(), new.exists()) == (False, True)


def test_an_incomplete_file_is_not_kept(tmp_path: Path, jars: Path) -> None:
    found = archive(tmp_path, jars)
    found.keep(tmp_path / "missing")
    found.keep(recorded(tmp_path, LEAST_BYTES - 1))
    assert not found.exists()


def test_only_one_process_writes_it_and_only_where_there_is_space(
    tmp_path: Path, jars: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = archive(tmp_path, jars)
    with found.lock(0) as first, found.lock(0) as second:
        assert (first, second) == (True, False)
    with monkeypatch.context() as patch:

        def full(*_: object) -> None:
            raise StoreFull("no space")

        patch.setattr(class_archive, "require_free_space", full)
        with found.lock(0) as may:
            assert not may
    found.keep(recorded(tmp_path))
    with found.lock(0) as may:
        assert not may


def test_java_gets_the_option_of_its_version(tmp_path: Path, jars: Path) -> None:
    file = tmp_path / "f"
    options = {
        version: (archive(tmp_path, jars, version).recording(file).partition("=")[0])
        for version in (17, 24, 25)
    }
    assert options == {
        17: "-XX:ArchiveClassesAtExit",
        24: "-XX:ArchiveClassesAtExit",
        25: "-XX:AOTCacheOutput",
    }


def test_it_is_written_in_a_long_run_or_after_several_short_ones() -> None:
    assert is_worth_recording(small=False, runs=0)
    assert not is_worth_recording(small=True, runs=1)
    assert is_worth_recording(small=True, runs=20)
