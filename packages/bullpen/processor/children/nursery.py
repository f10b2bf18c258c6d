"""The nursery: a small process that forks a keeper for each run.

A program of its own with the standard library alone, so that fifty keepers share its memory and
one is there in a millisecond. A keeper is the subreaper of everything below its child, in whatever
session or group that is, and ends it all when the child is over, when it is told to, or when the
processor is gone, which the end of its socket says. Linux only.

The processor sends a request's file descriptors: the request as JSON, and the child's standard
input, output and error, and the keeper's socket. The keeper answers with lines of JSON:
`{"pid": 1}`, then `{"exit": 0}` (minus the signal's number if that ended it), or `{"error": 2}`
(the errno) if the program could not be started.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import os
import pathlib
import select
import signal
import socket
import sys
import time

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
FDS = 5
STOP = b"s"
"""Ask the child to end, and after a pause end everything."""
KILL = b"k"
"""End everything now."""
SWEEP_SECONDS = 0.002

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
        ready = _ready(requests.fileno(), woken)
        if woken in ready:
            _drain(woken)
            _reap(keepers)
        if fd in ready:
            _, fds, _, _ = socket.recv_fds(requests, 1, FDS)
            if not fds:
                break
            parent = os.getpid()
            pid = os.fork()
            if pid == 0:
                requests.close()
                _keep(fds, parent)
            keepers.add(pid)
            for each in fds:
                os.close(each)
    # Each keeper sees the end of its own socket, and ends what it keeps.
    for pid in keepers:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, 0)
    _end_all()


def _reap(keepers: set[int]) -> None:
    with contextlib.suppress(ChildProcessError):
        while (found := os.waitpid(-1, os.WNOHANG))[0]:
            keepers.discard(found[0])
    # What a killed keeper kept is ours now.
    for pid in _children(os.getpid()):
        if pid not in keepers:
            _kill_tree(pid)


def _keep(fds: list[int], parent: int) -> None:
    """Be the keeper of one child; never returns."""
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
        _end_all()
        os._exit(status)


def _run(request: dict[str, object], fds: list[int], control: socket.socket, woken: int) -> None:
    child = _start(request, fds, control)
    for each in fds:
        os.close(each)
    if child is None:
        return
    _say(control, {"pid": child})
    code = _watch(child, float(str(request["pause"])), control, woken)
    if code is None:
        os.kill(child, signal.SIGKILL)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    _end_all()
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
    argv, directory, environ = request["argv"], request["directory"], request["environ"]
    assert isinstance(argv, list)
    assert isinstance(environ, dict)
    failed, failing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.setsid()
            _prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
            signal.set_wakeup_fd(-1)
            for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGPIPE):
                signal.signal(number, signal.SIG_DFL)
            os.chdir(str(directory))
            for target, each in enumerate(fds):
                os.dup2(each, target)
            os.execvpe(argv[0], argv, environ)  # noqa: S606 - what this program is for
        except OSError as error:
            os.write(failing, str(error.errno).encode())
        finally:
            os._exit(127)
    os.close(failing)
    answer = os.read(failed, 16)
    os.close(failed)
    if not answer:
        return pid
    os.waitpid(pid, 0)
    _say(control, {"error": int(answer)})
    return None


def _wait(child: int) -> int | None:
    """Reap what has ended; the child's exit code if it was among it."""
    over = None
    with contextlib.suppress(ChildProcessError):
        while (found := os.waitpid(-1, os.WNOHANG))[0]:
            if found[0] == child:
                over = os.waitstatus_to_exitcode(found[1])
    return over


def _end_all() -> None:
    """Kill every descendant; who loses its parent becomes a child of this process."""
    while True:
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        for pid in _children(os.getpid()):
            _kill_tree(pid)
        time.sleep(SWEEP_SECONDS)


def _kill_tree(pid: int) -> None:
    # Parents first: who is dead starts nothing more.
    below = _children(pid)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)
    for each in below:
        _kill_tree(each)


def _children(pid: int) -> list[int]:
    found = []
    for each in pathlib.Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            number = int(each.name)
            # After the name in parentheses, which may hold anything: state, parent.
            fields = (each / "stat").read_bytes().rpartition(b")")[2].split()
            if int(fields[1]) == pid and fields[0] != b"Z":
                found.append(number)
    return found


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
    return select.select([first, second], [], [], seconds)[0]


def _drain(heard: int) -> bytes:
    with contextlib.suppress(BlockingIOError):
        return os.read(heard, 4096)
    return b""


def _say(control: socket.socket, message: dict[str, int]) -> None:
    with contextlib.suppress(OSError):
        control.sendall(json.dumps(message).encode() + b"\n")


if __name__ == "__main__":
    main(int(sys.argv[1]))
