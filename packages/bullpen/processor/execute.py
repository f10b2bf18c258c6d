"""Executes one claim: runs its agent, and stores the result in one transaction."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import replace

from bullpen.core.access.outgoing import outgoing_mask
from bullpen.core.answers.complete import complete, fail
from bullpen.core.errors import BullpenError, NotFound, StaleToken, StoreError
from bullpen.core.events.append import append_event
from bullpen.core.events.conversation import SessionLost
from bullpen.core.message import Claim, ErrorKind, Failure, RunOutput
from bullpen.core.queue.claim import record_start
from bullpen.core.queue.fail import release
from bullpen.core.queue.manage import confirm_run_ended
from bullpen.core.roster.agents import Agent, allowed_roots
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

RunResult = Reply | Failure | None
"""How a run ended; None if it was stopped before it ended."""

FindProvider = Callable[[str, CustomProvider | None], Provider]
"""Returns the provider with this name; a custom provider is passed as well."""


class RunExecutor:
    """Executes claims with the providers and plugins of this process."""

    def __init__(self, store: Store, find: FindProvider, plugins: Plugins) -> None:
        self._store = store
        self._find = find
        self._plugins = plugins
        self.progress = ProgressBoard(store)

    def __call__(self, claim: Claim, stop: Stop) -> None:
        """Run the claim and store its result; if `stop` is set first, release it."""
        began = time.monotonic()
        log.info("@%s begins %s (%s)", claim.agent, _names(claim), claim.primary.channel)
        try:
            context, result = self._run_agent(claim, stop)
            self._store_result(claim, context, result, stop)
            _log_result(claim, context, result, time.monotonic() - began)
        except StaleToken:
            self._claim_lost(claim)
        except BullpenError as error:
            log.error("cannot store the result of @%s: %s (%s)", claim.agent, error, error.hint)

    def _run_agent(self, claim: Claim, stop: Stop) -> tuple[AgentContext | None, RunResult]:
        """Run the agent; an error becomes a `Failure`. The result is None if `stop` was set."""
        context = None
        try:
            with self._store.read() as tx:
                context = load_context(tx, claim)
            provider = self._find(context.agent.provider, context.custom)
            result = self._call_provider(claim, context, provider, stop)
            return context, _with_provider(result, context.agent)
        except NotFound as error:
            failure = Failure(kind=ErrorKind.SETUP, error=str(error))
        except StoreError:
            raise
        except Exception as error:
            log.exception("the run of @%s failed", claim.agent)
            text = sanitise_text(f"{type(error).__name__}: {error}")
            failure = Failure(kind=ErrorKind.RETRYABLE, error=text)
        return context, failure if context is None else _with_provider(failure, context.agent)

    def _call_provider(
        self, claim: Claim, context: AgentContext, provider: Provider, stop: Stop
    ) -> RunResult:
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
        self, claim: Claim, context: AgentContext | None, result: RunResult, stop: Stop
    ) -> None:
        try:
            self._store_with_retry(claim, context, result, stop)
        except (StaleToken, StoreError):
            raise
        except Exception as error:
            log.exception("cannot store the result of @%s", claim.agent)
            text = ascii(str(error))[:MAX_ERROR_CHARS]
            failure = Failure(kind=ErrorKind.RETRYABLE, error=f"cannot store the result: {text}")
            self._store_with_retry(claim, context, failure, stop)

    def _store_with_retry(
        self, claim: Claim, context: AgentContext | None, result: RunResult, stop: Stop
    ) -> None:
        """Store the result; if the database is unavailable, try again until the run is stopped."""
        output = self._output(claim, result) if isinstance(result, Reply) else None
        while True:
            try:
                with self._store.write() as tx:
                    if result is None:
                        release(tx, claim.token, "the processor stopped")
                    elif isinstance(result, Failure):
                        fail(tx, claim.token, result)
                    elif context is not None and output is not None:
                        self._complete(tx, claim, context, result, output)
            except StoreError as error:
                if stop.is_set():
                    raise
                log.warning("cannot store a result yet: %s (%s)", error, error.hint)
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
        """Record the end of a run whose claim is no longer valid."""
        log.warning("the claim of %s is no longer valid; its output is dropped", _names(claim))
        with self._store.write(durable=False) as tx:
            confirm_run_ended(tx, claim)


def _names(claim: Claim) -> str:
    return ", ".join(each.message_id for each in claim.messages)


def _with_provider(result: RunResult, agent: Agent) -> RunResult:
    """The result; a failure without usage, as of a missing program, names the provider."""
    if not isinstance(result, Failure) or result.usage.provider is not None:
        return result
    usage = replace(result.usage, provider=agent.provider, model=agent.model or None)
    return replace(result, usage=usage)


def _log_result(
    claim: Claim, context: AgentContext | None, result: RunResult, seconds: float
) -> None:
    """Log how a run ended. Answers and the texts of errors stay out of the log."""
    agent, names = claim.agent, _names(claim)
    fields: dict[str, object] = {
        "provider": "unknown" if context is None else context.agent.provider,
        "seconds": round(seconds, 2),
    }
    if result is not None:
        fields["tokens"] = result.usage.input_tokens + result.usage.output_tokens
        fields["cost"] = round(result.usage.cost, 4)
    match result:
        case Reply():
            # TinyAGI's clients show a line with this sign as a success.
            log.info(
                "\u2713 @%s answered %s (%s characters)",
                *(agent, names, len(result.text)),
                extra={"fields": fields},
            )
        case Failure():
            fields["error"] = result.kind.value
            log.warning("@%s failed %s", agent, names, extra={"fields": fields})
        case None:
            log.info("@%s released %s", agent, names, extra={"fields": fields})
