"""Built-in providers: `echo` repeats what it is told, `http` leaves the work to others."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from dataclasses import dataclass, replace

from bullpen.core.message import ErrorKind, Failure, Usage
from bullpen.core.settings import Settings
from bullpen.processor.children.child import Launcher, Stop
from bullpen.processor.providers.base import Reply, ReportProgress, RunRequest

# echo: repeats what it was told. Needs no account; for a first try, demonstrations and tests.
#
# Lines that begin with `!` are orders: `!say TEXT` answers exactly TEXT, `!sleep SECONDS` takes its
# time, `!fail [KIND]` fails so, `!crash` kills the processor, `!usage TOKENS COST` reports it.

MAX_USAGE = 1_000_000_000
"""More tokens, or dollars, than any run takes; NaN is not less than it either."""


HINT = (
    "(I am echo, and repeat what I am told. For a real answer install claude or codex, log in, "
    "and say: bullpen agent set {agent} --provider claude)"
)


@dataclass(slots=True)
class Script:
    """What the orders so far amount to."""

    stop: Stop
    said: list[str]
    usage: Usage
    failure: Failure | None = None
    stopped: bool = False


class Echo:
    """The built-in provider."""

    def __init__(self, hint_for: str = "") -> None:
        self._hint_for = hint_for
        """The agent that says how to connect a real one."""

    def run(self, turn: RunRequest, stop: Stop, tell: ReportProgress) -> Reply | Failure | None:
        """Follow the orders in the messages and repeat the rest."""
        script = Script(stop, [], Usage(provider="echo", model="echo"))
        for text in turn.texts:
            self._follow(script, text, turn.agent.id)
        if script.stopped:
            return None
        if script.failure is not None:
            return replace(script.failure, usage=script.usage)
        text = "\n\n".join(script.said)
        return Reply(text=text or "(nothing to say)", usage=script.usage)

    def _follow(self, script: Script, text: str, agent: str) -> None:
        orders = [line.partition(" ") for line in text.splitlines()]
        orders = [each for each in orders if each[0] in ORDERS]
        for order, _, rest in orders:
            if script.failure is None and not script.stopped:
                ORDERS[order](script, rest)
        if not orders:
            script.said.append(text)
            if agent == self._hint_for:
                script.said.append(HINT.format(agent=agent))


def _say(script: Script, text: str) -> None:
    script.said.append(text)


def _sleep(script: Script, seconds: str) -> None:
    try:
        script.stopped = script.stop.wait(float(seconds))
    except (ValueError, OverflowError):
        _bad(script, f"!sleep takes seconds, not {seconds!r}")


def _fail(script: Script, kind: str) -> None:
    try:
        script.failure = Failure(
            kind=ErrorKind(kind or ErrorKind.RETRYABLE), error="failed as it was told to"
        )
    except ValueError:
        _bad(script, f"!fail knows {', '.join(ErrorKind)}, not {kind!r}")


def _crash(script: Script, _: str) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _usage(script: Script, numbers: str) -> None:
    try:
        tokens, cost = numbers.split()
        usage = replace(script.usage, output_tokens=int(tokens), cost=float(cost))
        if not (0 <= usage.output_tokens <= MAX_USAGE and 0 <= usage.cost <= MAX_USAGE):
            raise ValueError
        script.usage = usage
    except ValueError:
        _bad(script, f"!usage takes tokens and cost, not {numbers!r}")


def _bad(script: Script, text: str) -> None:
    script.failure = Failure(kind=ErrorKind.PERMANENT, error=text)


ORDERS: dict[str, Callable[[Script, str], None]] = {
    "!say": _say,
    "!sleep": _sleep,
    "!fail": _fail,
    "!crash": _crash,
    "!usage": _usage,
}


class Http:
    """Answers nothing: a claim that was made while the provider was changed is given back."""

    def run(self, turn: RunRequest, stop: Stop, tell: ReportProgress) -> Reply | Failure | None:
        """Leave it to somebody else."""
        return None


def make_echo(settings: Settings, launcher: Launcher) -> Echo:
    """The provider `echo`."""
    return Echo(settings.default_agent)


def make_http(settings: Settings, launcher: Launcher) -> Http:
    """The provider `http`."""
    return Http()
