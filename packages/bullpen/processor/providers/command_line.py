"""Runs a command line as a provider: starts it, reads what it prints, and sees to its end."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from bullpen.core.answers.said import clean
from bullpen.core.message import ErrorKind
from bullpen.core.outcome import Failure
from bullpen.core.settings import Settings
from bullpen.processor.children.child import Child, End, Ending, Limits
from bullpen.processor.children.launcher import Launcher
from bullpen.processor.children.stop import Stop
from bullpen.processor.providers.diagnosis import not_started
from bullpen.processor.providers.environment import child_environment
from bullpen.processor.providers.harness import Harness, Lost, Reader
from bullpen.processor.providers.lines import Lines
from bullpen.processor.providers.provider import Reply, Tell, Turn

MEMORY = 8 << 20
"""So many bytes of a run's output are kept in memory; the rest goes to a file and is not read."""
ERRORS = 64 << 10


class CommandLine:
    """A provider behind a command line."""

    def __init__(
        self,
        harness: Harness,
        launcher: Launcher,
        settings: Settings,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self._harness = harness
        self._launcher = launcher
        self._settings = settings
        self._environ = os.environ if environ is None else environ

    def run(self, turn: Turn, stop: Stop, tell: Tell) -> Reply | Failure | None:
        """Run it; if the session to resume is gone, once more with a new one."""
        result = self._once(turn, stop, tell)
        if not isinstance(result, Lost):
            return result
        again = self._once(replace(turn, session=None), stop, tell)
        if isinstance(again, Lost):
            return Failure(kind=ErrorKind.RETRYABLE, error=f"no session can be begun: {again.why}")
        return replace(again, lost=result.why) if isinstance(again, Reply) else again

    def _once(self, turn: Turn, stop: Stop, tell: Tell) -> Reply | Failure | Lost | None:
        if not turn.directory.is_dir():
            return Failure(kind=ErrorKind.SETUP, error=f"{turn.directory} is not there")
        reader = self._harness.reader(turn)
        child, program = self._start(turn)
        errors = b""
        with Lines(MEMORY, self._overflow(turn)) as lines:
            try:
                for is_error, data in child.output(stop, self._limits()):
                    if is_error:
                        errors = (errors + data)[-ERRORS:]
                    else:
                        _read(reader, lines.feed(data), tell)
                _read(reader, lines.rest(), tell)
            finally:
                child.close()
            cut = lines.cut
        if stop.is_set():
            return None
        assert child.end is not None
        if child.timeout is not None:
            return self._timed_out(child, cut)
        if child.end.ending is Ending.NOT_STARTED:
            return not_started(program, str(turn.directory), child.end.code)
        return _result(reader, child.end, clean(errors.decode(errors="replace")), cut)

    def _start(self, turn: Turn) -> tuple[Child, str]:
        system_file = self._settings.run / "prompts" / f"{turn.agent.id}.md"
        system_file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        system_file.write_text(turn.system, encoding="utf-8")
        command = self._harness.command(turn, system_file)
        own = {
            "BULLPEN_HOME": str(self._settings.home),
            "BULLPEN_AGENT": turn.agent.id,
            **command.environ,
        }
        more = [name.strip() for name in self._settings.pass_environment.split(",")]
        passes = (*self._harness.passes, *(name for name in more if name))
        environ = child_environment(self._environ, passes, own)
        stdin = clean(command.stdin).encode()
        return self._launcher.start(command.argv, turn.directory, environ, stdin), command.argv[0]

    def _limits(self) -> Limits:
        return Limits(self._settings.idle_seconds, self._settings.run_seconds)

    def _overflow(self, turn: Turn) -> Path:
        return self._settings.home / "logs" / f"output_{turn.agent.id}.log"

    def _timed_out(self, child: Child, cut: str | None) -> Failure:
        settings = self._settings
        if child.timeout == "idle":
            text = f"it said nothing for {settings.idle_seconds} s and was ended"
        else:
            text = f"it took longer than {settings.run_seconds} s and was ended"
        return Failure(kind=ErrorKind.RETRYABLE, error=text + (f" ({cut})" if cut else ""))


def _read(reader: Reader, lines: list[str], tell: Tell) -> None:
    for line in lines:
        shown = reader.line(line)
        if shown is not None:
            tell(shown)


def _result(reader: Reader, end: End, errors: str, cut: str | None) -> Reply | Failure | Lost:
    result = reader.close(end, errors)
    if isinstance(result, Failure) and cut is not None:
        return replace(result, error=f"{result.error} ({cut})")
    if isinstance(result, Reply) and not result.text.strip():
        return Failure(
            kind=ErrorKind.RETRYABLE, error="it answered nothing at all", usage=result.usage
        )
    return result
