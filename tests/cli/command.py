"""The real command in child processes, in a home of its own."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.cli import warm

PROGRAM = (sys.executable, "-c", "from bullpen.cli.main import main; main()")
LIMIT_SECONDS = 240.0
"""Generous: below what `bullpen send` waits by itself, and what a test may take."""


@dataclass(frozen=True)
class Result:
    """How a command ended and what it said."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:  # noqa: ANN401 - whatever the command printed
        """The one document on standard output."""
        return json.loads(self.out)


@dataclass(frozen=True)
class Bullpen:
    """The command, with this environment."""

    home: Path
    environ: dict[str, str] = field(default_factory=dict)

    def __call__(self, *args: str, stdin: str | bytes = "", **more: str) -> Result:
        """Run a command to its end."""
        data = stdin.encode() if isinstance(stdin, str) else stdin
        return self._run(args, data, more)

    def unread(self, *args: str, stdin: str = "", **more: str) -> Result:
        """Run a command to whose output nobody listens any more."""
        return self._run(args, stdin.encode(), more, unread=True)

    def _run(
        self, args: Sequence[str], data: bytes, more: Mapping[str, str], *, unread: bool = False
    ) -> Result:
        environ = self.environment(**more)
        status, out, err = warm.run(args, environ, data, LIMIT_SECONDS, unread=unread)
        result = Result(status, out.decode(), err.decode())
        assert "Traceback" not in result.err, result.err
        return result

    def ok(self, *args: str, stdin: str = "", **more: str) -> Result:
        """Run a command that must succeed."""
        result = self(*args, stdin=stdin, **more)
        assert result.status == 0, result
        return result

    def environment(self, **more: str) -> dict[str, str]:
        """The environment of the command: nothing of the caller's Bullpen is in it."""
        inherited = {name: text for name, text in os.environ.items() if "BULLPEN_" not in name}
        return {
            **inherited,
            "PATH": without_agents(os.environ.get("PATH", os.defpath)),
            "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
            "PYTHONIOENCODING": "utf-8",
            "BULLPEN_HOME": str(self.home),
            "BULLPEN_WORKSPACE": str(self.home / "workspace"),
            # Else each start of the services would start one more process.
            "BULLPEN_REPORTS_MINUTES": "0",
            **self.environ,
            **more,
        }


def without_agents(path: str) -> str:
    """The search path of a machine on which no real command line is installed."""
    directories = path.split(os.pathsep)
    real = ("claude", "codex")
    return os.pathsep.join(
        each for each in directories if not any((Path(each) / name).exists() for name in real)
    )
