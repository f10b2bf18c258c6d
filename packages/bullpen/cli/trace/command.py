"""bullpen trace: one conversation, once or until it is at rest."""

from __future__ import annotations

import sys
import time
from contextlib import ExitStack, closing, suppress

import click

from bullpen.cli import ids
from bullpen.cli.acting import acting_agent
from bullpen.cli.output import as_json, print_json
from bullpen.cli.trace.document import trace_fields
from bullpen.cli.trace.said import TraceFormatter
from bullpen.cli.trace.times import ConversationClock
from bullpen.cli.trace.twig import LineTree, StyledLine, print_tree, to_rich_tree
from bullpen.core.conversations.find import get_conversation_id
from bullpen.core.conversations.members import ConversationState
from bullpen.core.conversations.trace import Trace
from bullpen.core.conversations.trace import trace as look
from bullpen.core.errors import NotFound, OutOfReach
from bullpen.core.settings import Settings
from bullpen.core.store.base import Store
from bullpen.core.store.open import open_store
from bullpen.core.time_zone import get_zone, owner_zone_name

RETENTION_HINT = (
    "What is older than the settings `archive_days` and `attempt_days` say is not kept."
)
POLL_SECONDS = 1.0
MIN_REFRESH_SECONDS = 0.1
"""It is not drawn more often than so, whatever happens in other conversations."""


@click.command()
@click.argument("id_", metavar="ID", shell_complete=ids.conversation_ids)
@click.option("--full", is_flag=True, help="Show whole texts instead of their beginnings.")
@click.option(
    "--follow", "-f", is_flag=True, help="Show it as it goes on, until nothing moves any more."
)
@as_json
@click.pass_obj
def trace(settings: Settings, id_: str, full: bool, follow: bool, as_json: bool) -> None:
    """Show all of a conversation as a tree: each message below the one that it came of.

    ID is that of the conversation or of any message in it, archived ones included. Of each there
    is who asked whom, how long it waited and ran, every run with its cost and its error, the
    answers and where they went.

    \b
    Examples:
      bullpen trace cli_a1b2c3d4
      bullpen trace cli_a1b2c3d4 --follow
      bullpen trace internal_a1b2c3d4 --full --json
    """
    store = open_store(settings)
    with closing(store):
        conversation = _conversation(store, id_)
        if follow:
            found = _follow(store, conversation, full, quiet=as_json or not sys.stdout.isatty())
        else:
            found = _load_trace(store, conversation)
        if as_json:
            print_json(trace_fields(found))
        else:
            print_tree(_build_tree(store, found, full))


def _conversation(store: Store, id_: str) -> str:
    with store.read() as tx:
        return get_conversation_id(tx, id_)


def _load_trace(store: Store, conversation: str) -> Trace:
    try:
        with store.read() as tx:
            found = look(tx, conversation)
    except NotFound:
        raise NotFound(
            f"there is no message and no conversation {conversation[:60]!r}", hint=RETENTION_HINT
        ) from None
    agent = acting_agent()
    if agent is not None and agent not in found.agents:
        raise OutOfReach(
            f"@{agent} has no part in {conversation}", hint="Ask a person to look at it."
        )
    return found


def _build_tree(store: Store, found: Trace, full: bool) -> LineTree:
    moments = [step.message.created_at for step in found.steps]
    moments += [each.enqueued_at for each in found.attempts]
    moments += [each.created_at for each in found.responses]
    here = get_zone(owner_zone_name(store.settings))
    teller = TraceFormatter(ConversationClock(here, min(moments), store.clock.now()), full)
    root = teller.twig(found)
    end = LineTree((StyledLine(teller.totals(found), "bold"),))
    return LineTree(root.lines, (*root.children, end))


def _follow(store: Store, conversation: str, full: bool, *, quiet: bool) -> Trace:
    """Look again whenever something happens, until Ctrl-C; gives how it is at the end."""
    found = _load_trace(store, conversation)
    with suppress(KeyboardInterrupt), closing(store.listen()) as listener, ExitStack() as stack:
        live = None
        if not quiet:
            from rich.live import Live  # only here: the command line begins without

            live = stack.enter_context(Live(transient=True, auto_refresh=False))
        while found.stand is ConversationState.UNDER_WAY:
            if live is not None:
                live.update(to_rich_tree(_build_tree(store, found, full)), refresh=True)
            listener.wait(POLL_SECONDS)
            time.sleep(MIN_REFRESH_SECONDS)
            found = _load_trace(store, conversation)
    return found
