"""Built-in providers without a program: `echo` repeats messages, `http` runs nothing.

`echo` needs no account and is meant for first trials, demonstrations and tests. Lines that begin
with `!` are commands: `!say TEXT` answers exactly TEXT, `!sleep SECONDS` waits, `!fail [KIND]`
fails, `!crash` kills the processor, and `!usage TOKENS COST` reports usage.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from dataclasses import dataclass, replace

from bullpen.core.heartbeats.model import SILENT_ANSWER
from bullpen.core.message import ErrorKind, Failure, Usage
from bullpen.core.settings import Settings
from bullpen.processor.children.child import Launcher, Stop
from bullpen.processor.providers.base import Reply, ReportProgress, RunRequest

MAX_USAGE = 1_000_000_000
"""More tokens or dollars than any run uses. A NaN fails the comparison as well."""

HINT = (
    "(This is the built-in provider echo, which repeats messages. For real answers, install claude "
    "or codex, log in, and run: bullpen agent set {agent} --provider claude)"
)


@dataclass(slots=True)
class Script:
    """The effect of the commands so far."""

    stop: Stop
    texts: list[str]
    usage: Usage
    failure: Failure | None = None
    stopped: bool = False


class Echo:
    """Repeats messages, and executes the commands in them."""

    def __init__(self, hint_for: str = "") -> None:
        self._hint_for = hint_for
        """The agent whose answers explain how to use a real provider."""

    def run(
        self, request: RunRequest, stop: Stop, report: ReportProgress
    ) -> Reply | Failure | None:
        """Execute the commands in the messages; repeat a message without commands."""
        script = Script(stop, [], Usage(provider="echo", model="echo"))
        for text in request.texts:
            self._follow(script, text, request)
        if script.stopped:
            return None
        if script.failure is not None:
            return replace(script.failure, usage=script.usage)
        text = "\n\n".join(script.texts)
        return Reply(text=text or "(empty message)", usage=script.usage)

    def _follow(self, script: Script, text: str, request: RunRequest) -> None:
        orders = [line.partition(" ") for line in text.splitlines()]
        orders = [each for each in orders if each[0] in ORDERS]
        for order, _, rest in orders:
            if script.failure is None and not script.stopped:
                ORDERS[order](script, rest)
        if orders:
            return
        # A repeated prompt is of no interest to the owner.
        script.texts.append(SILENT_ANSWER if request.heartbeat else text)
        if request.agent.id == self._hint_for and not request.heartbeat:
            script.texts.append(HINT.format(agent=request.agent.id))


def _say(script: Script, text: str) -> None:
    script.texts.append(text)


def _sleep(script: Script, seconds: str) -> None:
    try:
        script.stopped = script.stop.wait(float(seconds))
    except (ValueError, OverflowError):
        _bad(script, f"!sleep needs a number of seconds, not {seconds!r}")


def _fail(script: Script, kind: str) -> None:
    try:
        script.failure = Failure(
            kind=ErrorKind(kind or ErrorKind.RETRYABLE), error="failed because of !fail"
        )
    except ValueError:
        _bad(script, f"!fail needs one of {', '.join(ErrorKind)}, not {kind!r}")


def _crash(script: Script, _: str) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _usage(script: Script, numbers: str) -> None:
    try:
        tokens, cost = numbers.split()
        count, price = int(tokens), float(cost)
        if not (0 <= count <= MAX_USAGE and 0 <= price <= MAX_USAGE):
            raise ValueError
        script.usage = replace(script.usage, output_tokens=count, cost=price)
    except ValueError:
        _bad(script, f"!usage needs TOKENS and COST, not {numbers!r}")


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
    """Runs nothing, because external workers claim the messages over the API.

    A message that was claimed before the agent had this provider is released.
    """

    def run(
        self, request: RunRequest, stop: Stop, report: ReportProgress
    ) -> Reply | Failure | None:
        """Release the claim."""
        return None


def make_echo(settings: Settings, launcher: Launcher) -> Echo:
    """The provider `echo`."""
    return Echo(settings.default_agent)


def make_http(settings: Settings, launcher: Launcher) -> Http:
    """The provider `http`."""
    return Http()
