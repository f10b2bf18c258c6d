"""echo: repeats what it was told. Needs no account; for a first try, demonstrations and tests.

Lines that begin with `!` are orders: `!say TEXT` answers exactly TEXT, `!sleep SECONDS` takes its
time, `!fail [KIND]` fails so, `!crash` kills the processor, `!usage TOKENS COST` reports it.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace

from bullpen.core.message import Claim, ErrorKind
from bullpen.core.outcome import Answer, Failure, Outcome, Usage

MOST = 1_000_000_000
"""More tokens, or dollars, than any run takes; NaN is not less than it either."""


@dataclass(slots=True)
class Script:
    """What the orders so far amount to."""

    stop: threading.Event
    said: list[str]
    usage: Usage
    failure: Failure | None = None
    stopped: bool = False


class Echo:
    """The built-in provider."""

    def run(self, claim: Claim, stop: threading.Event) -> Outcome | Failure | None:
        """Follow the orders in the claim's messages and repeat the rest."""
        script = Script(stop, [], Usage(provider="echo", model="echo"))
        for message in claim.messages:
            for line in message.message.splitlines():
                order, _, rest = line.partition(" ")
                if order in ORDERS and script.failure is None and not script.stopped:
                    ORDERS[order](script, rest)
            if not any(line.partition(" ")[0] in ORDERS for line in message.message.splitlines()):
                script.said.append(message.message)
        if script.stopped:
            return None
        if script.failure is not None:
            return replace(script.failure, usage=script.usage)
        text = "\n\n".join(script.said)
        return Outcome(answers=(Answer(message=text or "(nothing to say)"),), usage=script.usage)


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
        if not (0 <= usage.output_tokens <= MOST and 0 <= usage.cost <= MOST):
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
