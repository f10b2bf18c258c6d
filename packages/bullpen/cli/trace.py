"""bullpen trace: a conversation with its runs, times and cost."""

from __future__ import annotations

import json
import sys
import time
from contextlib import ExitStack, closing, suppress
from dataclasses import asdict

import click

from bullpen.cli import completion
from bullpen.cli.command import Result, command, json_requested
from bullpen.cli.trace_text import (
    ConversationClock,
    LineTree,
    StyledLine,
    TraceFormatter,
    print_tree,
    to_rich_tree,
)
from bullpen.core.clock import get_zone, owner_zone_name
from bullpen.core.errors import NotFound
from bullpen.core.inspect.conversations import ConversationState, get_conversation_id
from bullpen.core.inspect.responses import ResponseRecord
from bullpen.core.inspect.trace import Step, Trace
from bullpen.core.inspect.trace import trace as load_trace
from bullpen.core.models.base import decode_texts
from bullpen.core.settings import Settings
from bullpen.core.states import ACTIVE_STATES
from bullpen.core.store.base import Store
from bullpen.core.store.open import open_store

RETENTION_HINT = (
    "Old conversations are deleted after the settings `archive_days` and `attempt_days`."
)
POLL_SECONDS = 1.0
MIN_REFRESH_SECONDS = 0.1
"""The shortest time between two redraws, so that other conversations do not cause many."""


@command()
@click.argument("id_", metavar="ID", shell_complete=completion.conversation_ids)
@click.option("--full", is_flag=True, help="Show texts in full.")
@click.option("--follow", "-f", is_flag=True, help="Refresh until the conversation is finished.")
def trace(settings: Settings, id_: str, full: bool, follow: bool) -> Result:
    """Show a conversation as a tree with runs and answers.

    ID is the id of the conversation or of any message in it, archived or not. Each message is below
    the one that caused it, with sender and recipient, waiting time, runs with cost and errors, and
    answers with their delivery state.

    \b
    Examples:
      bullpen trace cli_a1b2c3d4
      bullpen trace cli_a1b2c3d4 --follow
      bullpen trace internal_a1b2c3d4 --full --json
    """
    with closing(open_store(settings)) as store:
        with store.read() as tx:
            conversation = get_conversation_id(tx, id_)
        if follow:
            quiet = json_requested() or not sys.stdout.isatty()
            found = _follow(store, conversation, full, quiet=quiet)
        else:
            found = _load_trace(store, conversation)
        return Result(
            _trace_fields(found), show=lambda: print_tree(_build_tree(store, found, full))
        )


def _load_trace(store: Store, conversation: str) -> Trace:
    try:
        with store.read() as tx:
            found = load_trace(tx, conversation)
    except NotFound:
        raise NotFound(
            f"message or conversation {conversation[:60]!r} does not exist", hint=RETENTION_HINT
        ) from None
    return found


def _build_tree(store: Store, found: Trace, full: bool) -> LineTree:
    moments = [step.message.created_at for step in found.steps]
    moments += [each.enqueued_at for each in found.attempts]
    moments += [each.created_at for each in found.responses]
    zone = get_zone(owner_zone_name(store.settings))
    formatter = TraceFormatter(ConversationClock(zone, min(moments), store.clock.now()), full)
    root = formatter.tree(found)
    end = LineTree((StyledLine(formatter.totals(found), "bold"),))
    return LineTree(root.lines, (*root.children, end))


def _follow(store: Store, conversation: str, full: bool, *, quiet: bool) -> Trace:
    """Reload after each event, until Ctrl-C or the end; returns the last trace."""
    found = _load_trace(store, conversation)
    with suppress(KeyboardInterrupt), closing(store.listen()) as listener, ExitStack() as stack:
        live = None
        if not quiet:
            from rich.live import Live  # imported here: it is slow to load

            live = stack.enter_context(Live(transient=True, auto_refresh=False))
        while found.stand is ConversationState.UNDER_WAY:
            if live is not None:
                live.update(to_rich_tree(_build_tree(store, found, full)), refresh=True)
            listener.wait(POLL_SECONDS)
            time.sleep(MIN_REFRESH_SECONDS)
            found = _load_trace(store, conversation)
    return found


def _trace_fields(found: Trace) -> dict[str, object]:
    """The trace for a JSON document; times are milliseconds since 1970."""
    return {
        "conversation_id": found.conversation_id,
        "state": found.stand,
        "totals": asdict(found.totals),
        "under_way": [
            step.message.message_id for step in found.steps if step.message.status in ACTIVE_STATES
        ],
        "messages": [_message_fields(step) for step in found.steps],
        "attempts": [asdict(each) for each in found.attempts],
        "responses": [_response_fields(each) for each in found.responses],
    }


def _message_fields(step: Step) -> dict[str, object]:
    times = asdict(step)
    message: dict[str, object] = times.pop("message")
    message["files"] = decode_texts(step.message.files)
    return {**message, **times}


def _response_fields(response: ResponseRecord) -> dict[str, object]:
    return {
        **asdict(response),
        "files": decode_texts(response.files),
        "metadata": json.loads(response.metadata or "null"),
    }
