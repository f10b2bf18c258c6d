"""Providers that are command lines: arguments, environment, and JSON read line by line."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from sqlalchemy.engine import make_url

from bullpen.core.errors import InTheWay
from bullpen.core.ids import RUN_VARIABLE
from bullpen.core.message import ErrorKind, Failure
from bullpen.core.roster.agents import Sandbox
from bullpen.core.settings import Settings
from bullpen.core.text import sanitise_text
from bullpen.core.workspace.safe_files import Root, remove_inside, write_inside
from bullpen.ops.services.search_path import run_environment
from bullpen.processor.children.child import (
    Child,
    ChildExit,
    ExitReason,
    Launcher,
    Limit,
    Limits,
    Stop,
)
from bullpen.processor.children.sandbox import SandboxError
from bullpen.processor.providers.base import (
    CliAdapter,
    OutputReader,
    Reply,
    ReportProgress,
    RunRequest,
    SessionGone,
)
from bullpen.processor.providers.errors import ERROR_LENGTH, start_failure
from bullpen.processor.providers.other_user import account_of, hand_over, write_prompt
from bullpen.processor.providers.sandboxed import (
    no_user_failure,
    prepare,
    sandbox_complaint,
    setup_error,
)

MAX_OUTPUT_BYTES = 8 << 20
"""More output of a run is written to a file."""

MAX_STDERR_BYTES = 64 << 10

COMMON = (
    *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "TZ", "TMPDIR", "LANG", "LC_*"),
    *("XDG_*", "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "SYSTEMROOT"),
    *("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"),
)
"""Variables that every run gets; none contains a secret of Bullpen."""


class CliProvider:
    """A provider that runs a command line."""

    def __init__(
        self,
        adapter: CliAdapter,
        launcher: Launcher,
        settings: Settings,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self._adapter = adapter
        self._launcher = launcher
        self._settings = settings
        self._home = settings.home.absolute()
        self._given = environ

    @property
    def _environ(self) -> Mapping[str, str]:
        """The environment of the processor with the PATH that is recorded now."""
        return run_environment(self._settings, os.environ) if self._given is None else self._given

    def run(
        self, request: RunRequest, stop: Stop, report: ReportProgress
    ) -> Reply | Failure | None:
        """Run the program; if the session no longer exists, run it again with a new one."""
        result = self._run_once(request, stop, report)
        if not isinstance(result, SessionGone):
            return result
        again = self._run_once(replace(request, session=None), stop, report)
        if isinstance(again, SessionGone):
            return Failure(kind=ErrorKind.RETRYABLE, error=f"cannot start a session: {again.why}")
        return replace(again, session_lost=result.why) if isinstance(again, Reply) else again

    def _run_once(
        self, request: RunRequest, stop: Stop, report: ReportProgress
    ) -> Reply | Failure | SessionGone | None:
        with contextlib.ExitStack() as stack:
            return self._run_with(request, stop, report, stack)

    def _run_with(
        self, request: RunRequest, stop: Stop, report: ReportProgress, stack: contextlib.ExitStack
    ) -> Reply | Failure | SessionGone | None:
        collector = OutputCollector(self._adapter.reader(request), report)
        try:
            child, program = self._start(request, stack)
        except SandboxError as error:
            return Failure(kind=ErrorKind.SETUP, error=setup_error(request, str(error)))
        except (OSError, InTheWay) as error:  # too many open files, or a full disk
            return Failure(kind=ErrorKind.RETRYABLE, error=f"cannot start the run: {error}")
        with LineBuffer(
            MAX_OUTPUT_BYTES, self._home / "logs" / f"output_{request.agent.id}.log"
        ) as lines:
            try:
                for is_error, data in child.output(stop, self._limits()):
                    if is_error:
                        collector.feed_stderr(data)
                    else:
                        collector.feed_lines(lines.feed(data))
                collector.feed_lines(lines.rest())
            finally:
                child.close()
        if child.stopped:
            return None
        failed = child.end is not None and child.end.code == 1
        if failed and (complaint := sandbox_complaint(request, collector.errors)):
            return Failure(kind=ErrorKind.SETUP, error=setup_error(request, complaint))
        result = self._result(request, child, program, collector)
        return _with(result, lines.cut) if isinstance(result, Failure) else result

    def _start(self, request: RunRequest, stack: contextlib.ExitStack) -> tuple[Child, str]:
        if request.agent.sandbox is Sandbox.USER:
            account = account_of(request, self._settings)
            request = hand_over(request, account, self._settings)
        system_file = self._write_prompt(request)
        command = self._adapter.command(request, system_file)
        environ = self._environ
        own = {
            **Settings.environment_for_runs(environ),
            "BULLPEN_HOME": str(self._home),
            RUN_VARIABLE: request.run,
            **self._database(),
            **command.environ,
        }
        more = [name.strip() for name in self._settings.pass_environment.split(",")]
        environ = child_environment(
            environ,
            self._adapter.env_patterns,
            own,
            hidden=command.hidden_env,
            more=[name for name in more if name],
        )
        stdin = sanitise_text(command.stdin).encode()
        ready = prepare(command, environ, request, self._settings, system_file)
        if command.files and ready.files is not None:
            stack.enter_context(_written(ready.files, command.files))
        child = self._launcher.start(
            ready.argv,
            request.directory,
            ready.environ,
            stdin,
            wrappers=ready.wrappers,
            user=ready.user,
        )
        return child, command.argv[0]

    def _write_prompt(self, request: RunRequest) -> Path:
        text = sanitise_text(request.system)
        if request.agent.sandbox is Sandbox.USER:
            return write_prompt(request, text)
        path = self._home / "run" / "prompts" / f"{request.agent.id}.md"
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def _database(self) -> dict[str, str]:
        """The database URL for the commands of skills; one with a password is not passed on."""
        url = self._settings.database_url
        secret = bool(url) and make_url(url).password is not None
        return {} if secret or not url else {"BULLPEN_DATABASE_URL": url}

    def _limits(self) -> Limits:
        return Limits(self._settings.idle_seconds, self._settings.run_seconds)

    def _result(
        self, request: RunRequest, child: Child, program: str, collector: OutputCollector
    ) -> Reply | Failure | SessionGone:
        assert child.end is not None
        if child.timeout is not None:
            return self._timed_out(child.timeout)
        match child.end.reason:
            case ExitReason.NOT_STARTED | ExitReason.NO_DIRECTORY:
                return start_failure(program, str(request.directory), child.end)
            case ExitReason.NO_USER:
                return no_user_failure(request, child.end)
            case ExitReason.LOST:
                # Its output does not prove that it succeeded.
                return Failure(
                    kind=ErrorKind.RETRYABLE,
                    error=f"{program} ended because its parent process was killed",
                )
        return collector.result(child.end)

    def _timed_out(self, limit: Limit) -> Failure:
        settings = self._settings
        if limit is Limit.IDLE:
            text = f"no output for {settings.idle_seconds} s; the run was stopped"
        else:
            text = f"the run took longer than {settings.run_seconds} s and was stopped"
        return Failure(kind=ErrorKind.RETRYABLE, error=text)


@contextlib.contextmanager
def _written(place: Root, files: Mapping[str, str]) -> Iterator[None]:
    """Files that exist during the run, readable only by their owner."""
    if not place.parts:
        place.anchor.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        for name, text in files.items():
            parts = (*place.parts, name)
            write_inside(place.anchor, parts, sanitise_text(text), template=True)
        yield
    finally:
        for name in files:
            remove_inside(place.anchor, (*place.parts, name))


class OutputCollector:
    """Collects the output of one run."""

    def __init__(self, reader: OutputReader, report: ReportProgress) -> None:
        self._reader = reader
        self._report = report
        self._characters = 0
        self._errors = b""

    def feed_lines(self, lines: list[str]) -> None:
        """Add lines of its output."""
        for line in lines:
            # The reader keeps the text that it returns.
            if self._characters > MAX_OUTPUT_BYTES:
                return
            shown = self._reader.line(line)
            if shown is not None:
                self._characters += len(shown)
                self._report(shown)

    def feed_stderr(self, data: bytes) -> None:
        """Add bytes of its standard error, of which the end is kept."""
        self._errors = (self._errors + data)[-MAX_STDERR_BYTES:]

    @property
    def errors(self) -> str:
        """Its standard error, of which the end is kept."""
        return sanitise_text(self._errors.decode(errors="replace"))

    def result(self, end: ChildExit) -> Reply | Failure | SessionGone:
        """The result of the run, which has ended."""
        if self._characters > MAX_OUTPUT_BYTES:
            return Failure(
                kind=ErrorKind.PERMANENT,
                error=f"the answer exceeds {MAX_OUTPUT_BYTES} characters",
            )
        result = self._reader.close(end, self.errors)
        if isinstance(result, Reply) and not result.text.strip():
            return Failure(
                kind=ErrorKind.RETRYABLE, error="the answer is empty", usage=result.usage
            )
        return result


class LineBuffer:
    """Splits output into lines of UTF-8; above a limit, all of it is written to a file as well.

    A single line that is longer than the limit is only in the file.
    """

    def __init__(self, max_bytes: int, overflow: Path) -> None:
        self._max_bytes = max_bytes
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
        """A note that the output was too long; None if it was not."""
        if self._total <= self._max_bytes:
            return None
        return f"the output exceeds {self._max_bytes} bytes; all of it is in {self._path}"

    def feed(self, data: bytes) -> list[str]:
        """Add bytes; returns the lines that are complete now."""
        self._total += len(data)
        if self._total > self._max_bytes:
            self._spill(data)
        *ends, rest = data.split(b"\n")
        lines = []
        for end in ends:
            self._add(end)
            lines += self.rest()
        self._add(rest)
        return lines

    def rest(self) -> list[str]:
        """The last line, if it has no end yet."""
        line = b"".join(self._parts).decode(errors="replace")
        self._parts = []
        self._length = 0
        return [line] if line.strip() else []

    def _add(self, part: bytes) -> None:
        self._length += len(part)
        self._parts.append(part)
        if self._length > self._max_bytes:
            self._parts.clear()

    def _spill(self, data: bytes) -> None:
        # The run continues if the disk is full.
        with contextlib.suppress(OSError):
            if self._file is None:
                self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                self._file = self._path.open("wb", buffering=0)
                self._path.chmod(0o600)
                self._file.write(b"".join(self._parts))
            self._file.write(data)


def child_environment(
    environ: Mapping[str, str],
    passes: Iterable[str],
    own: Mapping[str, str],
    *,
    hidden: Iterable[str] = (),
    more: Iterable[str] = (),
) -> dict[str, str]:
    """The environment of a run: permitted variables, those of the settings, and its own."""
    passed = {
        **_named(_named(environ, [*COMMON, *passes]), hidden, named=False),
        **_named(environ, more),
    }
    # The shipped skills call `bullpen`.
    here = str(Path(sys.executable).parent)
    path = passed.get("PATH") or "/usr/local/bin:/usr/bin:/bin"
    return {**passed, "PATH": f"{path}:{here}", **own}


def _named(
    environ: Mapping[str, str], names: Iterable[str], *, named: bool = True
) -> dict[str, str]:
    """The variables with one of these names; with `named=False` those with none of them."""
    names = list(names)
    exact = {name for name in names if not name.endswith("*")}
    prefixes = tuple(name[:-1] for name in names if name.endswith("*"))
    return {
        name: value
        for name, value in environ.items()
        if (name in exact or name.startswith(prefixes)) is named
    }


def _with(failure: Failure, cut: str | None) -> Failure:
    """The failure with a shortened error, and a note about the rest of the output."""
    error = failure.error[: 2 * ERROR_LENGTH]
    return replace(failure, error=f"{error} ({cut})" if cut else error)
