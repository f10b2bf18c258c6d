"""The runs of this process: started for a claim, kept alive by renewals, finished or released."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from bullpen.core.errors import BullpenError, StaleToken, StoreError
from bullpen.core.message import Claim, ErrorKind
from bullpen.core.outcome import Failure, Outcome
from bullpen.core.queue.extend import extend
from bullpen.core.queue.fail import fail
from bullpen.core.queue.finish import finish
from bullpen.core.queue.release import release
from bullpen.core.store.base import Store
from bullpen.processor.providers.provider import Provider

log = logging.getLogger(__name__)

STORE_RETRY_SECONDS = 1.0
ERROR_LENGTH = 500
RELEASE_SECONDS = 10.0
"""How long a run that was told to stop has for giving back its claim."""


class Runs:
    """At most so many runs at once, each in a thread of its own."""

    def __init__(
        self, store: Store, provider: Provider, most: int, done: Callable[[], None]
    ) -> None:
        self._store = store
        self._provider = provider
        self._most = most
        self._done = done
        self._lock = threading.Lock()
        self._running: dict[str, tuple[threading.Thread, threading.Event]] = {}
        self._closing = threading.Event()

    @property
    def free(self) -> int:
        """How many more may be started."""
        return self._most - len(self._running)

    def start(self, claim: Claim) -> None:
        """Run this claim."""
        stop = threading.Event()
        thread = threading.Thread(
            target=self._run, args=(claim, stop), name=f"run {claim.agent}", daemon=True
        )
        with self._lock:
            self._running[claim.token] = (thread, stop)
        thread.start()

    def renew(self) -> None:
        """Extend the lease of every run; one that lost it is stopped and its output dropped."""
        with self._lock:
            tokens = list(self._running)
        for token in tokens:
            try:
                with self._store.write(durable=False) as tx:
                    extend(tx, token)
            except StaleToken:
                with self._lock:
                    run = self._running.get(token)
                if run is not None:
                    log.warning("the claim %s was lost; its run is stopped", token)
                    run[1].set()

    def stop(self, grace: float) -> None:
        """Give the runs this long to end, then stop and release them."""
        with self._lock:
            runs = list(self._running.values())
        deadline = time.monotonic() + grace
        for thread, _ in runs:
            thread.join(max(0.0, deadline - time.monotonic()))
        self._closing.set()
        for _, stop in runs:
            stop.set()
        for thread, _ in runs:
            thread.join(RELEASE_SECONDS)

    def _run(self, claim: Claim, stop: threading.Event) -> None:
        try:
            try:
                result = self._provider.run(claim, stop)
            except Exception as error:
                log.exception("the run of %s failed", claim.agent)
                result = Failure(kind=ErrorKind.RETRYABLE, error=f"{type(error).__name__}: {error}")
            self._settle(claim, result)
        except StaleToken as error:
            log.warning("output dropped: %s", error)
        except BullpenError as error:
            log.error(
                "the run of %s could not be finished: %s (%s)", claim.agent, error, error.hint
            )
        finally:
            with self._lock:
                del self._running[claim.token]
            self._done()

    def _settle(self, claim: Claim, result: Outcome | Failure | None) -> None:
        try:
            self._patiently(claim, result)
        except (StaleToken, StoreError):
            raise
        except Exception as error:
            log.exception("the outcome of %s cannot be stored", claim.agent)
            text = ascii(str(error))[:ERROR_LENGTH]
            self._patiently(
                claim, Failure(kind=ErrorKind.RETRYABLE, error=f"it cannot be stored: {text}")
            )

    def _patiently(self, claim: Claim, result: Outcome | Failure | None) -> None:
        """An answer is worth waiting for the database, as long as the claim is ours."""
        while True:
            try:
                with self._store.write() as tx:
                    match result:
                        case None:
                            release(tx, claim.token, "the processor stops")
                        case Outcome():
                            finish(tx, claim, result)
                        case Failure():
                            fail(tx, claim.token, result)
            except StoreError as error:
                if self._closing.is_set():
                    raise
                log.warning("cannot finish yet: %s (%s)", error, error.hint)
                self._closing.wait(STORE_RETRY_SECONDS)
            else:
                return
