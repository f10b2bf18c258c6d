"""A run of the job in the background: started by the API, one at a time, with its state.

The process outlives the API. Its standard output is one JSON document, from which the state of the
run is read after its end; its progress is in the log `report-run.log`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path

import psutil

from bullpen.core.clock import SECOND
from bullpen.core.errors import NoSpark, Overloaded, ReportsRunning
from bullpen.core.files import PRIVATE_DIRECTORY_MODE, file_lock, is_locked, replace_file
from bullpen.core.settings import Settings
from bullpen.core.strict_json import read_json

RUN_LOCK = "run.lock"
"""In the directory of the reports: the lock that the job holds during a run."""

COMMAND = ("report", "run", "--json")
RECORD = "report-run.json"
OUTPUT = "report-run.out"
START_LOCK = "report-run.lock"
LOG = "report-run.log"
START_SECONDS = 5.0
NICENESS = 10
"""The priority of the process: agents and the API go first."""

PARTIAL_HINT = "The other reports are new. Run `bullpen report run` to see why these failed."

MAX_OUTPUT_BYTES = 1 << 20


class RunState(StrEnum):
    """The state of the latest run."""

    NEVER = "never"
    """None was started in the background on this machine."""
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStatus:
    """The latest run that was started in the background, or one that is running now."""

    state: RunState
    started_at: int | None = None
    """Of a run that was started in the background."""
    finished_at: int | None = None
    error: str | None = None
    """Why it failed."""
    hint: str | None = None


@dataclass(frozen=True, slots=True)
class _Process:
    """A process: numbers are given again, the time of the start tells them apart."""

    pid: int
    created: float
    started_at: int

    def is_running(self) -> bool:
        try:
            process = psutil.Process(self.pid)
            return (
                process.create_time() == self.created and process.status() != psutil.STATUS_ZOMBIE
            )
        except psutil.Error:
            return False


def start_run(settings: Settings, now: int) -> RunStatus:
    """Start a run that continues after this process; refused while another one is running."""
    if find_spec("pyspark") is None:
        raise NoSpark("there is no package pyspark")
    settings.run.mkdir(mode=PRIVATE_DIRECTORY_MODE, parents=True, exist_ok=True)
    settings.logs.mkdir(mode=PRIVATE_DIRECTORY_MODE, parents=True, exist_ok=True)
    with file_lock(settings.run / START_LOCK, START_SECONDS) as held:
        if held is None:
            raise Overloaded("another request is starting a run of the reports")
        if run_status(settings).state is RunState.RUNNING:
            raise ReportsRunning("a run of the reports is in progress")
        output = settings.run / OUTPUT
        output.unlink(missing_ok=True)
        with output.open("wb") as out, (settings.logs / LOG).open("ab") as log:
            process = subprocess.Popen(
                [Path(sys.executable).parent / "bullpen", *COMMAND],
                env={**os.environ, "BULLPEN_HOME": str(settings.home)},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=log,
                start_new_session=True,
                cwd="/",
            )
        record = _Process(process.pid, psutil.Process(process.pid).create_time(), now)
        lower_priority(process.pid)
        replace_file(settings.run / RECORD, json.dumps(asdict(record)).encode())
    # Else it would stay a zombie until this process ends.
    threading.Thread(target=process.wait, name="report run", daemon=True).start()
    return RunStatus(state=RunState.RUNNING, started_at=now)


def lower_priority(pid: int) -> None:
    """Let other processes go first; the process leads a session of its own."""
    os.setpriority(os.PRIO_PROCESS, pid, NICENESS)
    # Linux may share the processor between sessions first. Then only this counts.
    with suppress(OSError):
        Path(f"/proc/{pid}/autogroup").write_text(f"{NICENESS}")


def run_status(settings: Settings) -> RunStatus:
    """The state of the latest run in the background, or of one that someone else started."""
    process = _read_record(settings.run / RECORD)
    if process is not None and process.is_running():
        return RunStatus(state=RunState.RUNNING, started_at=process.started_at)
    if is_locked(settings.reports / RUN_LOCK):
        return RunStatus(state=RunState.RUNNING)
    if process is None:
        return RunStatus(state=RunState.NEVER)
    return _read_output(settings.run / OUTPUT, process.started_at)


def stop_run(settings: Settings, seconds: float) -> None:
    """End a run that was started in the background; it changes nothing then."""
    process = _read_record(settings.run / RECORD)
    if process is None or not process.is_running():
        return
    with suppress(psutil.Error):
        found = psutil.Process(process.pid)
        found.terminate()
        _, alive = psutil.wait_procs([found], seconds)
        for each in alive:
            each.kill()


def _read_record(path: Path) -> _Process | None:
    try:
        match read_json(path.read_text(encoding="utf-8")):
            case {"pid": int(pid), "created": float(created), "started_at": int(started_at)}:
                return _Process(pid, created, started_at)
    except (OSError, ValueError):
        pass
    return None


def _read_output(path: Path, started_at: int) -> RunStatus:
    """How a run ended: an error is a document with `error` and `hint`."""
    try:
        with path.open("rb") as file:
            text = file.read(MAX_OUTPUT_BYTES)
        finished_at = int(path.stat().st_mtime * SECOND)
        document = read_json(text.decode())
    except (OSError, ValueError):
        error, hint = "the run ended without a result", f"See the log {LOG}."
        return RunStatus(state=RunState.FAILED, started_at=started_at, error=error, hint=hint)
    ended = RunStatus(state=RunState.COMPLETED, started_at=started_at, finished_at=finished_at)
    match document:
        case {"error": str(error), "hint": str(hint)}:
            return replace(ended, state=RunState.FAILED, error=error, hint=hint)
        case {"failed": [_, *_] as failed}:
            error = f"not computed: {', '.join(map(str, failed))}"
            return replace(ended, state=RunState.FAILED, error=error, hint=PARTIAL_HINT)
    return ended
