"""Tests a provider with one real run that answers one word, without access to a person's files.

`python -m bullpen.processor.probe --provider claude` prints one JSON document: `provider`, `model`,
`ok`, `answer`, `seconds`, and `error` with its `kind` where it failed. It writes to no database,
and works in a directory of its own that is gone afterwards.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from bullpen.core.errors import BullpenError, UnknownProvider
from bullpen.core.logs import LogFormatter
from bullpen.core.message import ErrorKind, Failure
from bullpen.core.roster.agents import HTTP, Agent, Permission
from bullpen.core.roster.providers import (
    CUSTOM_PREFIX,
    PROVIDER_ALIASES,
    CustomProvider,
    get_custom_provider,
)
from bullpen.core.settings import Settings
from bullpen.core.store.open import database_file, open_store
from bullpen.ops.services.launch import terminate_with_parent
from bullpen.processor.children.child import Launcher, Stop
from bullpen.processor.providers.base import Reply, RunRequest
from bullpen.processor.providers.registry import Providers

PROMPT = "Answer with the word pong, and nothing else."
SYSTEM = "This is a connection test. Use no tools."
SECONDS = 60
MAX_TEXT_CHARS = 500
"""Longer answers and errors are cut."""


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """The result of a probe."""

    provider: str
    model: str
    ok: bool
    answer: str
    seconds: float
    error: str
    kind: str
    """The kind of failure, as in runs; empty if the test passed."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Test a provider and print the result; returns 0 if it answered."""
    parser = argparse.ArgumentParser(prog="bullpen.processor.probe", description=__doc__)
    parser.add_argument("--provider", required=True)
    parser.add_argument("--model", default="")
    parser.add_argument("--seconds", type=int, default=SECONDS)
    options = parser.parse_args(arguments)
    provider = PROVIDER_ALIASES.get(options.provider, options.provider)
    began = time.monotonic()
    terminate_with_parent(os.getppid())
    stop = Stop()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    try:
        settings = Settings.load(os.environ)
        custom = _custom(settings, provider)
        secrets = (*settings.secrets(), *((custom.api_key,) if custom else ()))
        result = _ask(settings, provider, options.model, custom, max(1, options.seconds), stop)
    except (BullpenError, OSError) as error:
        secrets = ()
        result = Failure(kind=ErrorKind.SETUP, error=str(error))
    probed = _probed(
        provider, options.model, result, time.monotonic() - began, LogFormatter(secrets)
    )
    print(json.dumps(asdict(probed)))  # the output of this program
    return 0 if probed.ok else 1


def _custom(settings: Settings, provider: str) -> CustomProvider | None:
    if not provider.startswith(CUSTOM_PREFIX):
        return None
    file = database_file(settings)
    if file is not None and not file.exists():  # opening it would create it
        raise UnknownProvider(f"provider {provider!r} does not exist: there is no database yet")
    with closing(open_store(settings)) as store, store.read() as tx:
        return get_custom_provider(tx, provider.removeprefix(CUSTOM_PREFIX))


def _ask(
    settings: Settings,
    provider: str,
    model: str,
    custom: CustomProvider | None,
    seconds: int,
    stop: Stop,
) -> Reply | Failure:
    if provider == HTTP:
        return Failure(
            kind=ErrorKind.SETUP,
            error="external workers answer for this provider; there is nothing to run",
        )
    with tempfile.TemporaryDirectory(prefix="bullpen-probe-") as name:
        home, directory = Path(name, "home"), Path(name, "workspace", "probe")
        for each in (home, directory):
            each.mkdir(mode=0o700, parents=True)
        # Commands of Bullpen that the run starts find an empty home.
        os.environ["BULLPEN_WORKSPACE"] = str(directory.parent)
        own = replace(
            settings,
            home=home,
            workspace=directory.parent,
            database_url="",
            idle_seconds=seconds,
            run_seconds=seconds,
        )
        launcher = Launcher()
        try:
            request = _request(provider, model, custom, directory)
            found = Providers(own, launcher).get(provider, custom)
            result = found.run(request, stop, lambda _: None)
        finally:
            launcher.stop()
    return result or Failure(kind=ErrorKind.RETRYABLE, error="the test was stopped before it ended")


def _request(
    provider: str, model: str, custom: CustomProvider | None, directory: Path
) -> RunRequest:
    return RunRequest(
        agent=Agent(id="probe", provider=provider, model=model, permission=Permission.READ),
        texts=(PROMPT,),
        prompt=PROMPT,
        system=SYSTEM,
        home=directory,
        directory=directory,
        custom=custom,
    )


def _probed(
    provider: str, model: str, result: Reply | Failure, seconds: float, line: LogFormatter
) -> ProbeResult:
    failed = isinstance(result, Failure)
    text = line.redact(result.error if isinstance(result, Failure) else result.text)[
        :MAX_TEXT_CHARS
    ]
    return ProbeResult(
        provider=provider,
        model=result.usage.model or model,
        ok=not failed,
        answer="" if failed else text,
        seconds=round(seconds, 2),
        error=text if failed else "",
        kind=result.kind.value if isinstance(result, Failure) else "",
    )


if __name__ == "__main__":
    sys.exit(main())
