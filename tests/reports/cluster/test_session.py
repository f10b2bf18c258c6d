"""A Spark session: it computes, and leaves nothing behind."""

from __future__ import annotations

import signal
from pathlib import Path

import psutil

from bullpen.core.settings import Settings
from bullpen.reports.spark.session import open_session


def test_a_session_computes_and_leaves_no_process_and_no_file_behind(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    before = {each.pid for each in psutil.Process().children(recursive=True)}
    handler = signal.getsignal(signal.SIGINT)
    with open_session(settings, small=True) as spark:
        assert signal.getsignal(signal.SIGINT) is handler
        assert spark.range(10).count() == 10
        assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
        assert len(list((tmp_path / "spark").glob("session-*"))) == 1
    assert {each.pid for each in psutil.Process().children(recursive=True)} == before
    assert not list((tmp_path / "spark").glob("session-*"))
