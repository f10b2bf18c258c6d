"""Providers that are command lines: arguments, environment, and JSON read line by line."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from sqlalchemy.engine import make_url

from bullpen.core.message import ErrorKind, Failure
from bullpen.core.settings import Settings
from bullpen.core.text import sanitise_text
from bullpen.processor.children.child import (
    Child,
    ChildExit,
    ExitReason,
    Launcher,
    Limit,
    Limits,
    Stop,
)
from bullpen.processor.providers.base import (
    CliAdapter,
    OutputReader,
    Reply,
    ReportProgress,
    RunRequest,
    SessionGone,
)
from bullpen.processor.providers.errors import ERROR_LENGTH, start_failure

COMMON = (
    *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "TZ", "TMPDIR", "LANG", "LC_*"),
    *("XDG_*", "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "SYSTEMROOT"),
    *("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"),
)
"""No secrets of ours are among these."""


def child_environment(
    environ: Mapping[str, str],
    passes: Iterable[str],
    own: Mapping[str, str],
    *,
    hides: Iterable[str] = (),
    more: Iterable[str] = (),
) -> dict[str, str]:
    """What of `environ` passes, save what is hidden; what a person adds; what is the run's own."""
    passed = {
        **_named(_named(environ, [*COMMON, *passes]), hides, named=False),
        **_named(environ, more),
    }
    # The skills that come with Bullpen call its command.
    here = str(Path(sys.executable).parent)
    path = passed.get("PATH") or "/usr/local/bin:/usr/bin:/bin"
    return {**passed, "PATH": f"{path}:{here}", **own}


def _named(
    environ: Mapping[str, str], names: Iterable[str], *, named: bool = True
) -> dict[str, str]:
    """The variables that have one of these names, or those that have none of them."""
    names = list(names)
    exact = {name for name in names if not name.endswith("*")}
    prefixes = tuple(name[:-1] for name in names if name.endswith("*"))
    return {
        name: value
        for name, value in environ.items()
        if (name in exact or name.startswith(prefixes)) is named
    }


class LineBuffer:
    """Lines of UTF-8, as they become whole; what is over `most` bytes is in a file as well.

    A single line that is longer than that is in the file alone.
    """

    def __init__(self, most: int, overflow: Path) -> None:
        self._most = most
        self._path = overflow
        self._parts: list[bytes] = []
        self._length = 0
        self._total = 0
        self._file: BinaryIO | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._file is not None:
            self._file.close()

    @property
    def cut(self) -> str | None:
        """In words, that there was too much of it."""
        if self._total <= self._most:
            return None
        return f"its output was over {self._most} bytes; the rest is in {self._path}"

    def feed(self, data: bytes) -> list[str]:
        """Take some bytes; gives the lines that are whole now."""
        self._total += len(data)
        if self._total > self._most:
            self._spill(data)
        *ends, rest = data.split(b"\n")
        lines = []
        for end in ends:
            self._add(end)
            lines += self.rest()
        self._add(rest)
        return lines

    def rest(self) -> list[str]:
        """The last line, if nothing has ended it."""
        line = b"".join(self._parts).decode(errors="replace")
        self._parts = []
        self._length = 0
        return [line] if line.strip() else []

    def _add(self, part: bytes) -> None:
        self._length += len(part)
        self._parts.append(part)
        if self._length > self._most:
            self._parts.clear()

    def _spill(self, data: bytes) -> None:
        # A disk that is full is no reason to lose the run.
        with contextlib.suppress(OSError):
            if self._file is None:
                self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                self._file = self._path.open("wb", buffering=0)
                self._path.chmod(0o600)
                self._file.write(b"".join(self._parts))
            self._file.write(data)


MAX_OUTPUT_BYTES = 8 << 20
"""So many bytes of a run's output are kept in memory; the rest goes to a file."""
MAX_STDERR_BYTES = 64 << 10


class CliProvider:
    """A provider behind a command line."""

    def __init__(
        self,
        harness: CliAdapter,
        launcher: Launcher,
        settings: Settings,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self._harness = harness
        self._launcher = launcher
        self._settings = settings
        self._home = settings.home.absolute()
        self._environ = os.environ if environ is None else environ

    def run(self, turn: RunRequest, stop: Stop, tell: ReportProgress) -> Reply | Failure | None:
        """Run it; if the session to resume is gone, once more with a new one."""
        result = self._once(turn, stop, tell)
        if not isinstance(result, SessionGone):
            return result
        again = self._once(replace(turn, session=None), stop, tell)
        if isinstance(again, SessionGone):
            return Failure(kind=ErrorKind.RETRYABLE, error=f"no session can be begun: {again.why}")
        return replace(again, lost=result.why) if isinstance(again, Reply) else again

    def _once(
        self, turn: RunRequest, stop: Stop, tell: ReportProgress
    ) -> Reply | Failure | SessionGone | None:
        listening = OutputCollector(self._harness.reader(turn), tell)
        try:
            child, program = self._start(turn)
        except OSError as error:  # too many open files, or a full disk
            return Failure(kind=ErrorKind.RETRYABLE, error=f"the run cannot be started: {error}")
        with LineBuffer(
            MAX_OUTPUT_BYTES, self._home / "logs" / f"output_{turn.agent.id}.log"
        ) as lines:
            try:
                for is_error, data in child.output(stop, self._limits()):
                    if is_error:
                        listening.feed_stderr(data)
                    else:
                        listening.hear(lines.feed(data))
                listening.hear(lines.rest())
            finally:
                child.close()
        if child.stopped:
            return None
        result = self._result(turn, child, program, listening)
        return _with(result, lines.cut) if isinstance(result, Failure) else result

    def _start(self, turn: RunRequest) -> tuple[Child, str]:
        system_file = self._home / "run" / "prompts" / f"{turn.agent.id}.md"
        system_file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        system_file.write_text(sanitise_text(turn.system), encoding="utf-8")
        command = self._harness.command(turn, system_file)
        own = {
            **Settings.environment_for_runs(self._environ),
            "BULLPEN_HOME": str(self._home),
            "BULLPEN_AGENT": turn.agent.id,
            **self._database(),
            **command.environ,
        }
        more = [name.strip() for name in self._settings.pass_environment.split(",")]
        environ = child_environment(
            self._environ,
            self._harness.env_patterns,
            own,
            hides=command.hides,
            more=[name for name in more if name],
        )
        stdin = sanitise_text(command.stdin).encode()
        return self._launcher.start(command.argv, turn.directory, environ, stdin), command.argv[0]

    def _database(self) -> dict[str, str]:
        """Where the commands of its skills find the queue; a password is not for it."""
        url = self._settings.database_url
        secret = bool(url) and make_url(url).password is not None
        return {} if secret or not url else {"BULLPEN_DATABASE_URL": url}

    def _limits(self) -> Limits:
        return Limits(self._settings.idle_seconds, self._settings.run_seconds)

    def _result(
        self, turn: RunRequest, child: Child, program: str, listening: OutputCollector
    ) -> Reply | Failure | SessionGone:
        assert child.end is not None
        if child.timeout is not None:
            return self._timed_out(child.timeout)
        match child.end.ending:
            case ExitReason.NOT_STARTED | ExitReason.NO_DIRECTORY:
                return start_failure(program, str(turn.directory), child.end)
            case ExitReason.LOST:
                # Whatever it had said: that it ended well, nobody can tell.
                return Failure(
                    kind=ErrorKind.RETRYABLE, error=f"{program} was lost with its keeper"
                )
        return listening.result(child.end)

    def _timed_out(self, limit: Limit) -> Failure:
        settings = self._settings
        if limit is Limit.IDLE:
            text = f"it said nothing for {settings.idle_seconds} s and was ended"
        else:
            text = f"it took longer than {settings.run_seconds} s and was ended"
        return Failure(kind=ErrorKind.RETRYABLE, error=text)


class OutputCollector:
    """What is kept of one run while it speaks."""

    def __init__(self, reader: OutputReader, tell: ReportProgress) -> None:
        self._reader = reader
        self._tell = tell
        self._said = 0
        self._errors = b""

    def hear(self, lines: list[str]) -> None:
        """Take lines of its output."""
        for line in lines:
            # The reader keeps what it gives to tell.
            if self._said > MAX_OUTPUT_BYTES:
                return
            shown = self._reader.line(line)
            if shown is not None:
                self._said += len(shown)
                self._tell(shown)

    def feed_stderr(self, data: bytes) -> None:
        """Take some of its standard error, of which the end is kept."""
        self._errors = (self._errors + data)[-MAX_STDERR_BYTES:]

    def result(self, end: ChildExit) -> Reply | Failure | SessionGone:
        """What came of it, now that it has ended."""
        if self._said > MAX_OUTPUT_BYTES:
            return Failure(
                kind=ErrorKind.PERMANENT,
                error=f"it said over {MAX_OUTPUT_BYTES} characters in one run",
            )
        result = self._reader.close(end, sanitise_text(self._errors.decode(errors="replace")))
        if isinstance(result, Reply) and not result.text.strip():
            return Failure(
                kind=ErrorKind.RETRYABLE, error="it answered nothing at all", usage=result.usage
            )
        return result


def _with(failure: Failure, cut: str | None) -> Failure:
    """The failure in a reasonable length, and where the rest of its output is."""
    error = failure.error[: 2 * ERROR_LENGTH]
    return replace(failure, error=f"{error} ({cut})" if cut else error)
