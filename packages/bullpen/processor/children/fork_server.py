"""The nursery: a small process that forks a keeper for each run.

A program of its own with the standard library alone, so that fifty keepers share its memory and
one is there in a millisecond. A keeper is the subreaper of everything below its child, in whatever
session or group that is, and ends it all when the child is over, when it is told to, or when the
processor is gone, which the end of its socket says. Linux only.

The processor sends a request's file descriptors: the request as JSON, and the child's standard
input, output and error, and the keeper's socket. The keeper answers with one line of JSON:
`{"exit": 0}` (minus the signal's number if that ended it) once nothing of the run is left, or
`{"error": 2}` (the errno) if the program could not be started, `{"directory": 2}` if it could not
be started there.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import gc
import json
import os
import pathlib
import select
import signal
import socket
import sys
import time
from typing import NoReturn

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
FDS = 5
STOP = b"s"
"""Ask the child to end, and after a pause end everything."""
KILL = b"k"
"""End everything now."""
SWEEP_SECONDS = 0.002
IGNORED = (signal.SIGINT, signal.SIGPIPE, signal.SIGXFSZ)
"""By Python or by the nursery; not by what is started."""

_prctl = ctypes.CDLL(None, use_errno=True).prctl


def main(fd: int) -> None:
    """Fork a keeper for each request, until the processor is gone."""
    requests = socket.socket(fileno=fd)
    _prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    woken = _hear(signal.SIGCHLD)
    keepers: set[int] = set()
    gc.disable()
    gc.freeze()
    while True:
        ready = _ready(fd, woken)
        if woken in ready:
            _drain(woken)
            _reap(keepers)
        if fd in ready:
            asked, fds, _, _ = socket.recv_fds(requests, 1, FDS)
            if not asked:
                break
            _take(requests, fds, keepers)
    for pid in keepers:
        os.kill(pid, signal.SIGTERM)
    for pid in keepers:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, 0)
    _kill_descendants()


def _take(requests: socket.socket, fds: list[int], keepers: set[int]) -> None:
    for each in fds:
        # What was received would be open in the child as well, the keeper's socket included.
        os.set_inheritable(each, False)
    parent = os.getpid()
    try:
        # Fewer arrive if no more can be opened here.
        pid = os.fork() if len(fds) == FDS else None
    except OSError as error:
        pid = None
        with socket.socket(fileno=fds.pop()) as control:
            _say(control, {"error": error.errno or errno.EAGAIN})
    if pid == 0:
        requests.close()
        _be_reaper(fds, parent)
    if pid is not None:
        keepers.add(pid)
    for each in fds:
        os.close(each)


def _reap(keepers: set[int]) -> None:
    with contextlib.suppress(ChildProcessError):
        while (found := os.waitpid(-1, os.WNOHANG))[0]:
            keepers.discard(found[0])
    # What a killed keeper kept is ours now; what these leave is when they are dead.
    for pid in _children() - keepers:
        _kill(pid)


def _be_reaper(fds: list[int], parent: int) -> NoReturn:
    """Be the keeper of one child."""
    status = 1
    try:
        os.setsid()
        _prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        _prctl(PR_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0)
        woken = _hear(signal.SIGCHLD, signal.SIGTERM)
        with os.fdopen(fds[0], "rb") as file:
            request = json.load(file)
        control = socket.socket(fileno=fds[4])
        if os.getppid() == parent:
            _run(request, fds[1:4], control, woken)
        status = 0
    finally:
        _kill_descendants()
        os._exit(status)


def _run(request: dict[str, object], fds: list[int], control: socket.socket, woken: int) -> None:
    child = _start(request, fds, control)
    for each in fds:
        os.close(each)
    if child is None:
        return
    code = _watch(child, float(str(request["pause"])), control, woken)
    if code is None:
        os.kill(child, signal.SIGKILL)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    _kill_descendants()
    _say(control, {"exit": code})


def _watch(child: int, pause: float, control: socket.socket, woken: int) -> int | None:
    """Wait for the child's end, its exit code; None if it must be killed."""
    deadline: float | None = None
    while deadline is None or time.monotonic() < deadline:
        left = None if deadline is None else max(0.0, deadline - time.monotonic())
        ready = _ready(control.fileno(), woken, left)
        if woken in ready:
            if signal.SIGTERM in _drain(woken):
                return None
            over = _wait(child)
            if over is not None:
                return over
        if control.fileno() in ready:
            if control.recv(1) != STOP:
                return None
            if deadline is None:
                os.kill(child, signal.SIGINT)
                deadline = time.monotonic() + pause
    return None


def _start(request: dict[str, object], fds: list[int], control: socket.socket) -> int | None:
    failed, failing = os.pipe()
    keeper = os.getpid()
    pid = os.fork()
    if pid == 0:
        _become(request, fds, failing, keeper)
    os.close(failing)
    what, _, number = os.read(failed, 64).decode().partition(" ")
    os.close(failed)
    if not what:
        return pid
    os.waitpid(pid, 0)
    _say(control, {what: int(number)})
    return None


def _become(request: dict[str, object], fds: list[int], failing: int, keeper: int) -> NoReturn:
    """Be the child."""
    argv, environ = request["argv"], request["environ"]
    assert isinstance(argv, list)
    assert isinstance(environ, dict)
    what = "directory"
    try:
        os.setsid()
        _prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
        if os.getppid() != keeper:
            os._exit(127)
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGTERM, *IGNORED):
            signal.signal(number, signal.SIG_DFL)
        os.chdir(str(request["directory"]))
        for target, each in enumerate(fds):
            os.dup2(each, target)
        what = "error"
        os.execvpe(argv[0], argv, environ)  # noqa: S606 - what this program is for
    except OSError as error:
        os.write(failing, f"{what} {error.errno}".encode())
    except ValueError:  # a NUL in an argument, as the system would say it
        os.write(failing, f"{what} {errno.EINVAL}".encode())
    finally:
        os._exit(127)


def _wait(child: int) -> int | None:
    """Reap what has ended; the child's exit code if it was among it."""
    over = None
    with contextlib.suppress(ChildProcessError):
        while (found := os.waitpid(-1, os.WNOHANG))[0]:
            if found[0] == child:
                over = os.waitstatus_to_exitcode(found[1])
    return over


def _kill_descendants() -> None:
    """Kill every descendant; who loses its parent becomes a child of this process."""
    while True:
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
            children = _children()
            if sum(map(_kill, children)):
                os.waitpid(-1, 0)
            elif children:
                return  # they became another user's: nobody here may end them
            else:
                time.sleep(SWEEP_SECONDS)
        except ChildProcessError:
            return


def _kill(pid: int) -> bool:
    """Whether it is dead or dying now."""
    with contextlib.suppress(ProcessLookupError):
        try:
            os.kill(pid, signal.SIGKILL)
        except PermissionError:
            return False
    return True


def _children() -> set[int]:
    """The living children of this process."""
    me = os.getpid()
    try:
        # In microseconds: who forks and exits, over and over, is not quicker.
        found = pathlib.Path(f"/proc/{me}/task/{me}/children").read_text().split()
    except FileNotFoundError:  # a kernel without it
        names = (each.name for each in pathlib.Path("/proc").iterdir())
        found = [name for name in names if name.isdigit() and _parent(name) == me]
    return set(map(int, found))


def _parent(pid: str) -> int:
    with contextlib.suppress(OSError):
        # After the name in parentheses, which may hold anything: state, parent.
        fields = pathlib.Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        return int(fields[1]) if fields[0] != b"Z" else 0
    return 0


def _hear(*numbers: signal.Signals) -> int:
    """A file descriptor on which these signals are heard."""
    heard, hearing = os.pipe()
    for each in (heard, hearing):
        os.set_blocking(each, False)
    for number in numbers:
        signal.signal(number, lambda *_: None)
    signal.set_wakeup_fd(hearing, warn_on_full_buffer=False)
    return heard


def _ready(first: int, second: int, seconds: float | None = None) -> list[int]:
    # Unlike select() it takes a descriptor of any number.
    poll = select.poll()
    for each in (first, second):
        poll.register(each, select.POLLIN)
    return [fd for fd, _ in poll.poll(None if seconds is None else seconds * 1000)]


def _drain(heard: int) -> bytes:
    with contextlib.suppress(BlockingIOError):
        return os.read(heard, 4096)
    return b""


def _say(control: socket.socket, message: dict[str, int]) -> None:
    with contextlib.suppress(OSError):
        control.sendall(json.dumps(message).encode() + b"\n")


if __name__ == "__main__":
    main(int(sys.argv[1]))
