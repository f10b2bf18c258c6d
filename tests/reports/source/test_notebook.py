"""The notebook of the documentation runs as a person would run it, and shows no password."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.reports.source.rows import bare_row, full_row, write_rows
from tests.stores import Stores

NOTEBOOK = Path(__file__).resolve().parents[3] / "examples/notebook/bullpen_in_spark.py"

PASSWORD = "n0b0dy-may-5ee-this"


def runs() -> list[dict[str, Any]]:
    """Runs of two agents: @coder fails now and then."""
    made = []
    for number in range(1, 41):
        failed = number % 8 == 0
        row = full_row("attempts", number) if failed else bare_row("attempts", number)
        row |= {
            "agent": "coder" if number % 2 == 0 else "writer",
            "outcome": "failed" if failed else "completed",
            "cost": 0.25,
            "available_at": 1000,
            "started_at": 1000 + number,
        }
        if failed:
            row |= {"fingerprint": "f1" if number == 8 else "f2", "sender_id": "U1"}
        made.append(row)
    return made


@pytest.mark.postgres
@pytest.mark.long
def test_the_notebook_answers_its_questions_and_no_file_or_output_has_the_password(
    stores: Stores, tmp_path: Path
) -> None:
    settings = stores.settings("postgresql")
    types = ["message_enqueued"] * 3 + ["message_dead"]
    with stores.opened(settings) as store:
        write_rows(store, "attempts", runs())
        events = [{**full_row("events", n), "type": each} for n, each in enumerate(types, 1)]
        write_rows(store, "events", events)
    log = tmp_path / "event-log"
    log.mkdir()
    conf = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": log.as_uri(),
        "spark.eventLog.compress": "false",
        "spark.local.dir": str(tmp_path),
        # Compiles fast and optimises little: this costs half the time.
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
    }
    options = " ".join(f"--conf {name}={value}" for name, value in conf.items())
    environ = {
        **os.environ,
        "BULLPEN_HOME": str(settings.home),
        "BULLPEN_DATABASE_URL": settings.database_url.replace("@", f":{PASSWORD}@", 1),
        "PYSPARK_SUBMIT_ARGS": f"{options} pyspark-shell",
    }
    done = subprocess.run(
        [sys.executable, NOTEBOOK, "kept"],
        cwd=tmp_path,
        env=environ,
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.returncode == 0, done.stderr
    cells = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in done.stdout.splitlines()
        if line.startswith("|")
    ]
    assert ["coder", "20", "5", "5.0"] in cells
    assert ["writer", "20", "0", "5.0"] in cells
    assert ["coder", "21", "38"] in cells
    assert ["f2", "4", "1"] in [each[:3] for each in cells]
    assert ["message_enqueued", "3"] in cells
    assert ["message_dead", "1"] in cells
    assert len(list((tmp_path / "kept/events").glob("date=*/*.parquet"))) > 0

    texts = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert any(b"SparkListenerSQLExecutionStart" in each for each in texts.values())
    shown = [path for path, each in texts.items() if PASSWORD.encode() in each]
    assert not shown
    assert PASSWORD not in done.stdout + done.stderr
    assert not Counter(re.findall(r"ERROR|Traceback", done.stderr))
