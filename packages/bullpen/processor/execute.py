"""Executes one claim: runs its agent, and stores the result in one transaction."""

from __future__ import annotations

import logging
from collections.abc import Callable

from bullpen.core.access.outgoing import outgoing_mask
from bullpen.core.answers.complete import complete, fail
from bullpen.core.errors import BullpenError, NotFound, StaleToken, StoreError
from bullpen.core.events.append import append_event
from bullpen.core.events.conversation import SessionLost
from bullpen.core.message import Claim, ErrorKind, Failure, RunOutput
from bullpen.core.queue.claim import record_start
from bullpen.core.queue.fail import release
from bullpen.core.queue.manage import confirm_run_ended
from bullpen.core.roster.agents import allowed_roots
from bullpen.core.roster.providers import CustomProvider
from bullpen.core.roster.sessions import save_session
from bullpen.core.store.base import Store
from bullpen.core.store.transaction import Transaction
from bullpen.core.text import sanitise_text
from bullpen.processor.children.child import Stop
from bullpen.processor.context import AgentContext, load_context, message_texts
from bullpen.processor.plugins import Plugins
from bullpen.processor.progress import ProgressBoard
from bullpen.processor.providers.base import Provider, Reply

log = logging.getLogger(__name__)

STORE_RETRY_SECONDS = 1.0
MAX_ERROR_CHARS = 500

FindProvider = Callable[[str, CustomProvider | None], Provider]
"""Returns the provider of this name; a custom provider is passed with it."""


class RunExecutor:
    """Executes claims with the providers and plugins of this process."""

    def __init__(self, store: Store, find: FindProvider, plugins: Plugins) -> None:
        self._store = store
        self._find = find
        self._plugins = plugins
        self.progress = ProgressBoard(store)

    def __call__(self, claim: Claim, stop: Stop) -> None:
        """Run the claim and store its result; if `stop` is set first, release it."""
        names = ", ".join(each.message_id for each in claim.messages)
        log.info("@%s begins %s (%s)", claim.agent, names, claim.primary.channel)
        try:
            context, result = self._run_agent(claim, stop)
            self._store_result(claim, context, result, stop)
            _log_result(claim.agent, names, result)
        except StaleToken:
            self._claim_lost(claim)
        except BullpenError as error:
            log.error(
                "the run of %s could not be finished: %s (%s)", claim.agent, error, error.hint
            )

    def _run_agent(
        self, claim: Claim, stop: Stop
    ) -> tuple[AgentContext | None, Reply | Failure | None]:
        """Run the agent; an error becomes a `Failure`. The result is None if `stop` was set."""
        context = None
        try:
            with self._store.read() as tx:
                context = load_context(tx, claim)
            provider = self._find(context.agent.provider, context.custom)
            return context, self._call_provider(claim, context, provider, stop)
        except NotFound as error:
            return context, Failure(kind=ErrorKind.SETUP, error=str(error))
        except StoreError:
            raise
        except Exception as error:
            log.exception("the run of %s failed", claim.agent)
            text = sanitise_text(f"{type(error).__name__}: {error}")
            return context, Failure(kind=ErrorKind.RETRYABLE, error=text)

    def _call_provider(
        self, claim: Claim, context: AgentContext, provider: Provider, stop: Stop
    ) -> Reply | Failure | None:
        texts = [
            self._plugins.incoming(message, text)
            for message, text in zip(claim.messages, message_texts(claim), strict=True)
        ]
        request = context.request(claim, self._store.settings, texts)
        with self._store.write(durable=False) as tx:
            record_start(tx, claim, context.agent.provider)
        progress = self.progress.open(claim.primary)
        try:
            return provider.run(request, stop, progress)
        finally:
            self.progress.close(progress)

    def _store_result(
        self, claim: Claim, context: AgentContext | None, result: Reply | Failure | None, stop: Stop
    ) -> None:
        try:
            self._store_with_retry(claim, context, result, stop)
        except (StaleToken, StoreError):
            raise
        except Exception as error:
            log.exception("the outcome of %s cannot be stored", claim.agent)
            text = ascii(str(error))[:MAX_ERROR_CHARS]
            failure = Failure(kind=ErrorKind.RETRYABLE, error=f"it cannot be stored: {text}")
            self._store_with_retry(claim, context, failure, stop)

    def _store_with_retry(
        self, claim: Claim, context: AgentContext | None, result: Reply | Failure | None, stop: Stop
    ) -> None:
        """Store the result; if the database is unavailable, try again until the run is stopped."""
        output = self._output(claim, result) if isinstance(result, Reply) else None
        while True:
            try:
                with self._store.write() as tx:
                    if result is None:
                        release(tx, claim.token, "the processor stops")
                    elif isinstance(result, Failure):
                        fail(tx, claim.token, result)
                    elif context is not None and output is not None:
                        self._complete(tx, claim, context, result, output)
            except StoreError as error:
                if stop.is_set():
                    raise
                log.warning("cannot finish yet: %s (%s)", error, error.hint)
                stop.wait(STORE_RETRY_SECONDS)
            else:
                return

    def _complete(
        self, tx: Transaction, claim: Claim, context: AgentContext, reply: Reply, output: RunOutput
    ) -> None:
        complete(tx, claim, output, allowed_roots(self._store.settings, context.agent))
        if context.key is not None:
            save_session(tx, context.agent, context.key, reply.session)
        if reply.session_lost is not None:
            reason = outgoing_mask(tx)(sanitise_text(reply.session_lost))[:MAX_ERROR_CHARS]
            append_event(tx, SessionLost(claim.primary, reason=reason))

    def _output(self, claim: Claim, reply: Reply) -> RunOutput:
        text, metadata = self._plugins.outgoing(claim.primary, sanitise_text(reply.text))
        return RunOutput(text=text, metadata=metadata, usage=reply.usage)

    def _claim_lost(self, claim: Claim) -> None:
        """Record that the run of a claim that was taken away has ended."""
        log.warning("the claim %s was lost; what its run said is dropped", claim.token)
        with self._store.write(durable=False) as tx:
            confirm_run_ended(tx, claim)


def _log_result(agent: str, names: str, result: Reply | Failure | None) -> None:
    """Log how a run ended; what was said, and an error's text, stay out of the log."""
    match result:
        case Reply():
            # The reference's clients show a line with this sign as a success.
            log.info("\u2713 @%s answered %s (%s characters)", agent, names, len(result.text))
        case Failure():
            log.warning("@%s failed %s: %s", agent, names, result.kind)
        case None:
            log.info("@%s gave %s back: the processor stops", agent, names)
