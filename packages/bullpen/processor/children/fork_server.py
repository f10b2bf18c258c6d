"""The fork server: a small process that forks a reaper for each run.

It uses only the standard library, so that fifty reapers share its memory and one starts in a
millisecond. A reaper starts the child of a run. It is the subreaper of all descendants, in any
session or group. It ends them when the child ends, on an order, or when its socket is closed
because the processor has ended. Linux only.

A request is five file descriptors: the request as JSON, the child's standard input, output and
error, and the reaper's socket. The reaper answers with one line of JSON: `{"exit": 0}` (or minus
the number of the signal) once all processes of the run have ended, `{"error": 2}` (the errno) if
the program could not be started, `{"directory": 2}` if its directory could not be entered, or
`{"user": 1}` if it could not become its user, or that user cannot read a required path.

A child of another user gives up root before it executes the program. Its reaper stays root to end
the processes of that user.
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
PR_SET_NO_NEW_PRIVS = 38
FDS = 5
STOP = b"s"
"""Ask the child to end, and after a pause end everything."""
KILL = b"k"
"""End everything now."""
SWEEP_SECONDS = 0.002
IGNORED = (signal.SIGINT, signal.SIGPIPE, signal.SIGXFSZ)
"""Ignored by Python or by the fork server, and not by children."""

_prctl = ctypes.CDLL(None, use_errno=True).prctl


def main(fd: int) -> None:
    """Fork a reaper for each request, until the processor has ended."""
    requests = socket.socket(fileno=fd)
    _prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    woken = _signal_pipe(signal.SIGCHLD)
    reapers: set[int] = set()
    gc.disable()
    gc.freeze()
    while True:
        ready = _ready(fd, woken)
        if woken in ready:
            _drain(woken)
            _reap(reapers)
        if fd in ready:
            data, fds, _, _ = socket.recv_fds(requests, 1, FDS)
            if not data:
                break
            _fork_reaper(requests, fds, reapers)
    for pid in reapers:
        os.kill(pid, signal.SIGTERM)
    for pid in reapers:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, 0)
    _kill_descendants()


def _fork_reaper(requests: socket.socket, fds: list[int], reapers: set[int]) -> None:
    for each in fds:
        # Otherwise the child would inherit the descriptors, including the reaper's socket.
        os.set_inheritable(each, False)
    parent = os.getpid()
    try:
        # Fewer arrive if this process has too many open files.
        pid = os.fork() if len(fds) == FDS else None
    except OSError as error:
        pid = None
        with socket.socket(fileno=fds.pop()) as control:
            _send_report(control, {"error": error.errno or errno.EAGAIN})
    if pid == 0:
        requests.close()
        _be_reaper(fds, parent)
    if pid is not None:
        reapers.add(pid)
    for each in fds:
        os.close(each)


def _reap(reapers: set[int]) -> None:
    with contextlib.suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            reapers.discard(ended[0])
    # Children of a killed reaper belong to this process now; theirs will when they are dead.
    for pid in _children() - reapers:
        _kill(pid)


def _be_reaper(fds: list[int], parent: int) -> NoReturn:
    """Act as the reaper of one child until the process ends."""
    status = 1
    try:
        os.setsid()
        _prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        _prctl(PR_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0)
        woken = _signal_pipe(signal.SIGCHLD, signal.SIGTERM)
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
    pause, wrappers = float(str(request["pause"])), int(str(request["wrappers"]))
    code = _watch(child, pause, wrappers, control, woken)
    if code is None:
        os.kill(child, signal.SIGKILL)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    _kill_descendants()
    _send_report(control, {"exit": code})


def _watch(
    child: int, pause: float, wrappers: int, control: socket.socket, woken: int
) -> int | None:
    """Wait until the child ends; returns its exit code, or None if it must be killed."""
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
                _interrupt(child, wrappers)
                deadline = time.monotonic() + pause
    return None


def _interrupt(child: int, wrappers: int) -> None:
    """Send SIGINT to the program, which may be below processes that would not forward it."""
    pid = child
    for _ in range(wrappers):
        below = _children(pid)
        if len(below) != 1:
            break
        (pid,) = below
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGINT)


def _start(request: dict[str, object], fds: list[int], control: socket.socket) -> int | None:
    failed, failing = os.pipe()
    reaper = os.getpid()
    pid = os.fork()
    if pid == 0:
        _exec_child(request, fds, failing, reaper)
    os.close(failing)
    what, _, number = os.read(failed, 64).decode().partition(" ")
    os.close(failed)
    if not what:
        return pid
    os.waitpid(pid, 0)
    _send_report(control, {what: int(number)})
    return None


def _exec_child(request: dict[str, object], fds: list[int], failing: int, reaper: int) -> NoReturn:
    """Execute the program of the child."""
    argv, environ, user = request["argv"], request["environ"], request["user"]
    assert isinstance(argv, list)
    assert isinstance(environ, dict)
    what = "user"
    try:
        os.setsid()
        if user is not None:
            assert isinstance(user, dict)
            _become(user, fds)
        # Afterwards, because a change of the user resets it.
        _prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
        if os.getppid() != reaper:
            os._exit(127)
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGTERM, *IGNORED):
            signal.signal(number, signal.SIG_DFL)
        what = "directory"
        os.chdir(str(request["directory"]))
        for target, each in enumerate(fds):
            os.dup2(each, target)
        what = "error"
        os.execvpe(argv[0], argv, environ)  # noqa: S606 - the purpose of this program
    except OSError as error:
        os.write(failing, f"{what} {error.errno}".encode())
    except ValueError:  # a NUL in an argument: EINVAL, as the system has it
        os.write(failing, f"{what} {errno.EINVAL}".encode())
    finally:
        os._exit(127)


def _become(user: dict[str, object], fds: list[int]) -> None:
    """Become another user permanently, without any right of root."""
    uid, gid, groups, needs = user["uid"], user["gid"], user["groups"], user["needs"]
    assert isinstance(uid, int)
    assert isinstance(gid, int)
    assert isinstance(groups, list)
    assert isinstance(needs, list)
    for each in fds:  # so that it can open /dev/stdout
        os.fchown(each, uid, gid)
    os.setgroups(groups)
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)
    os.umask(0o077)
    if _prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "no_new_privs")
    with contextlib.suppress(PermissionError):
        os.setuid(0)
        raise OSError(errno.EINVAL, "root was not given up")
    if not all(os.access(each, os.R_OK) for each in needs):
        raise PermissionError(errno.EACCES, "it cannot read a required path")


def _wait(child: int) -> int | None:
    """Reap ended processes; returns the child's exit code if it is among them."""
    over = None
    with contextlib.suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            if ended[0] == child:
                over = os.waitstatus_to_exitcode(ended[1])
    return over


def _kill_descendants() -> None:
    """Kill every descendant; a process without a parent becomes a child of this one."""
    while True:
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
            children = _children()
            if sum(map(_kill, children)):
                os.waitpid(-1, 0)
            elif children:
                return  # they changed their user and cannot be killed
            else:
                time.sleep(SWEEP_SECONDS)
        except ChildProcessError:
            return


def _kill(pid: int) -> bool:
    """Kill a process; false if that is not permitted."""
    with contextlib.suppress(ProcessLookupError):
        try:
            os.kill(pid, signal.SIGKILL)
        except PermissionError:
            return False
    return True


def _children(pid: int | None = None) -> set[int]:
    """The living children of a process, or of this one."""
    of = os.getpid() if pid is None else pid
    try:
        # This takes microseconds: a process that forks and exits repeatedly is not faster.
        children = pathlib.Path(f"/proc/{of}/task/{of}/children").read_text().split()
    except FileNotFoundError:  # a kernel without it
        names = (each.name for each in pathlib.Path("/proc").iterdir())
        children = [name for name in names if name.isdigit() and _parent(name) == of]
    return set(map(int, children))


def _parent(pid: str) -> int:
    with contextlib.suppress(OSError):
        # State and parent follow the name in parentheses, which may contain anything.
        fields = pathlib.Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        return int(fields[1]) if fields[0] != b"Z" else 0
    return 0


def _signal_pipe(*numbers: signal.Signals) -> int:
    """A file descriptor that is readable after each of these signals."""
    read_end, write_end = os.pipe()
    for each in (read_end, write_end):
        os.set_blocking(each, False)
    for number in numbers:
        signal.signal(number, lambda *_: None)
    signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
    return read_end


def _ready(first: int, second: int, seconds: float | None = None) -> list[int]:
    # Unlike select(), poll() accepts descriptors of any number.
    poll = select.poll()
    for each in (first, second):
        poll.register(each, select.POLLIN)
    return [fd for fd, _ in poll.poll(None if seconds is None else seconds * 1000)]


def _drain(fd: int) -> bytes:
    with contextlib.suppress(BlockingIOError):
        return os.read(fd, 4096)
    return b""


def _send_report(control: socket.socket, message: dict[str, int]) -> None:
    with contextlib.suppress(OSError):
        control.sendall(json.dumps(message).encode() + b"\n")


if __name__ == "__main__":
    main(int(sys.argv[1]))
