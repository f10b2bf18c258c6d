"""Test a provider with one real run, in its own process: `cli` must not import the processor."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from enum import StrEnum

from bullpen.core.ids import RUN_VARIABLE
from bullpen.core.message import ErrorKind
from bullpen.core.settings import ENVIRONMENT_PREFIX, FIELDS, Settings
from bullpen.ops.services.search_path import search_path

PROBE_SECONDS = 60
START_SECONDS = 20.0
"""How much longer the process may take than its run, to start and to clean up."""
REASON_CHARS = 300


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """The result of a test."""

    provider: str
    model: str = ""
    ok: bool = False
    answer: str = ""
    seconds: float = 0.0
    error: str = ""
    kind: str = ""
    """The kind of failure, such as `auth`; empty if the test passed."""


def probe(
    settings: Settings, provider: str, model: str = "", seconds: int = PROBE_SECONDS
) -> ProbeResult:
    """Run the provider once with these settings; this takes seconds and costs a little.

    The provider answers one word. Nothing is stored, and the working directory is temporary.
    """
    program = (sys.executable, "-m", "bullpen.processor.probe")
    command = [*program, "--provider", provider, "--model", model, "--seconds", str(seconds)]
    with subprocess.Popen(
        command,
        env=_environment(settings),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as child:
        try:
            out, errors = child.communicate(timeout=seconds + START_SECONDS)
        except subprocess.TimeoutExpired:
            _terminate(child)
            text = f"no answer within {seconds} s"
            return ProbeResult(provider, model, error=text, kind=ErrorKind.RETRYABLE.value)
        except BaseException:  # Ctrl-C: the child ends first
            _terminate(child)
            raise
    return _read(provider, model, out, errors)


def _terminate(child: subprocess.Popen[bytes]) -> None:
    child.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.communicate(timeout=START_SECONDS)
    child.kill()


def _read(provider: str, model: str, out: bytes, errors: bytes) -> ProbeResult:
    with contextlib.suppress(ValueError, TypeError):
        return ProbeResult(**json.loads(out))
    reason = errors.decode(errors="replace").strip().rpartition("\n")[2][:REASON_CHARS]
    text = f"the test ended without a result: {reason or 'no reason given'}"
    return ProbeResult(provider, model, error=text, kind=ErrorKind.SETUP.value)


def _environment(settings: Settings) -> dict[str, str]:
    """The environment with these settings and the PATH of the services."""
    environ = {name: text for name, text in os.environ.items() if name != RUN_VARIABLE}
    environ["PATH"] = search_path(settings, os.environ).runs
    for name in FIELDS:
        value = getattr(settings, name)
        text = value.value if isinstance(value, StrEnum) else str(value)
        if text:
            environ[ENVIRONMENT_PREFIX + name.upper()] = text
    return environ
