"""Start supervisord, one for each home, and end orphaned services."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import psutil

from bullpen.core.errors import Overloaded, RunsAlready
from bullpen.core.files import file_lock, is_locked
from bullpen.core.network import socket_directory
from bullpen.core.settings import Settings
from bullpen.core.text import format_count
from bullpen.ops.services import (
    LOCK_SUFFIX,
    SUPERVISED_VARIABLE,
    SUPERVISOR_VARIABLE,
    lock_file,
)
from bullpen.ops.services.programs import (
    RENAMED_SERVICES,
    ServiceProgram,
    clear_added,
    include_paths,
    make_directories,
    supervisor_config,
)
from bullpen.ops.services.supervisor import (
    create_control_secret,
    wait_for_exit,
)

PR_SET_PDEATHSIG = 1
STOP_MARGIN_SECONDS = 30
"""The time that the processor may take to stop, besides the grace period of its runs."""
START_LOCK_SECONDS = 120.0
KILL_SECONDS = 10.0
PAUSES_FILE = "pauses.json"
"""In run/: the services that the crash guard paused, and the end of each pause."""


def launch(
    settings: Settings, services: Sequence[ServiceProgram], *, stays: bool = True
) -> subprocess.Popen[bytes]:
    """Start supervisord with these services; unless it `stays`, it ends with this process."""
    (settings.run / PAUSES_FILE).unlink(missing_ok=True)  # no service is paused after a start
    if stays:
        recovery_file(settings).touch()
    else:
        recovery_file(settings).unlink(missing_ok=True)
    files = f"{include_paths(services)} {clear_added(settings)}"
    with (settings.logs / "supervisord.out").open("ab") as out:
        return subprocess.Popen(
            supervisor_command(supervisor_config()),
            env=supervisor_environment(settings, os.environ, files),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
            cwd="/",
            preexec_fn=None if stays else partial(terminate_with_parent, os.getpid()),
        )


def supervisor_command(config: Path) -> list[str]:
    """The command line of supervisord with this configuration."""
    # As root it requires an explicit user.
    user = ("-u", "root") if os.geteuid() == 0 else ()
    return [sys.executable, "-m", "bullpen.ops.services.supervisord", "-c", str(config), *user]


def supervisor_environment(
    settings: Settings, environ: Mapping[str, str], files: str
) -> dict[str, str]:
    """The environment of supervisord and its services; supervisord.conf refers to it."""
    return {
        **environ,
        "BULLPEN_HOME": str(settings.home),
        "BULLPEN_BIN": str(Path(sys.executable).parent),
        "BULLPEN_SOCKETS": str(socket_directory(settings)),
        "BULLPEN_SERVICES": files,
        "BULLPEN_CONTROL": create_control_secret(settings),
        "BULLPEN_STOP_SECONDS": str(settings.grace_seconds + STOP_MARGIN_SECONDS),
    }


def terminate_with_parent(parent: int) -> None:
    """Ask Linux to send SIGTERM to this process when its parent ends; a no-op elsewhere."""
    if not sys.platform.startswith("linux"):
        return
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:  # the parent ended before the call
        os.kill(os.getpid(), signal.SIGTERM)


def supervisor_pid(environ: Mapping[str, str]) -> int:
    """The process id of the supervisor that started this process; it may have ended."""
    return int(environ.get(SUPERVISOR_VARIABLE) or os.getppid())


def recovery_file(settings: Settings) -> Path:
    """The file that exists while a killed supervisor must be restarted."""
    return settings.run / "recover"


def is_supervised(environ: Mapping[str, str]) -> bool:
    """Whether the supervisor started this process, rather than a person."""
    return SUPERVISED_VARIABLE in environ


@contextmanager
def service_lock(settings: Settings, name: str) -> Iterator[None]:
    """Hold the lock of a service; raises RunsAlready if another process does."""
    with _pid_lock(settings, lock_file(settings, name), 0.0) as holder:
        if holder is not None:
            raise RunsAlready(
                f"the {name} of this supervisor is already running (process {holder})"
            )
        yield


@contextmanager
def start_lock(settings: Settings, seconds: float = START_LOCK_SECONDS) -> Iterator[None]:
    """Hold the lock for starting and stopping this home's services; waits for another process."""
    with _pid_lock(settings, settings.run / "starting", seconds) as holder:
        if holder is not None:
            raise Overloaded(f"process {holder} is starting or stopping the services")
        yield


@contextmanager
def _pid_lock(settings: Settings, path: Path, seconds: float) -> Iterator[int | str | None]:
    """Hold a lock file with this process's id in it; yields another holder after this time."""
    make_directories(settings)
    with file_lock(path, seconds) as number:
        if number is None:
            yield _read_pid(path) or "(unknown)"
            return
        os.ftruncate(number, 0)
        os.write(number, f"{os.getpid()}\n".encode())
        yield None


def lock_holders(settings: Settings) -> dict[str, int]:
    """The process id of each running service of this home, under a supervisor or not."""
    found = {}
    for path in sorted(settings.run.glob(f"*{LOCK_SUFFIX}")):
        if is_locked(path) and (pid := _read_pid(path)) is not None:
            found[RENAMED_SERVICES.get(path.stem, path.stem)] = pid
    return found


def _read_pid(path: Path) -> int | None:
    """The process id in a lock file; None until its holder has written it."""
    text = path.read_text(encoding="utf-8").strip()
    return int(text) if text.isdecimal() else None


def process_and_children(pid: int) -> set[int]:
    """The ids of a process and its children; the API's children accept its connections."""
    try:
        return {pid, *(each.pid for each in psutil.Process(pid).children())}
    except psutil.NoSuchProcess:
        return {pid}


def find_orphans(settings: Settings) -> dict[str, psutil.Process]:
    """The processes of this home's services by name, while no supervisor runs."""
    found = {}
    for name, pid in lock_holders(settings).items():
        with suppress(psutil.NoSuchProcess):
            found[name] = psutil.Process(pid)
    return found


def end_orphans(
    found: Mapping[str, psutil.Process], seconds: float, tell: Callable[[str], None]
) -> None:
    """Terminate processes; after this time, kill the remaining ones and their children."""
    processes = list(found.values())
    for each in processes:
        with suppress(psutil.NoSuchProcess):
            each.terminate()
    alive = wait_for_exit(processes, seconds)
    if not alive:
        return
    count = format_count(len(alive), "process", "processes")
    tell(f"Killing {count}, still running after {seconds:.0f} s.")
    family = []
    for each in alive:
        with suppress(psutil.NoSuchProcess):
            family += [*each.children(recursive=True), each]
    for each in family:
        with suppress(psutil.NoSuchProcess):
            each.kill()
    wait_for_exit(family, KILL_SECONDS)
