"""bullpen send: a message to an agent, and its answer."""

from __future__ import annotations

import json
import sys
import time
from contextlib import suppress

import click
from sqlalchemy import bindparam, select, union_all

from bullpen.cli.response import CLI
from bullpen.core.errors import BadText, IllegalMove
from bullpen.core.message import NewMessage
from bullpen.core.models import LANES, MESSAGES, RESPONSES
from bullpen.core.models.base import const
from bullpen.core.outbox.person import mark_read
from bullpen.core.queue.receive import receive
from bullpen.core.settings import Settings
from bullpen.core.states import LaneState, MessageState
from bullpen.core.store.base import Store
from bullpen.core.store.open import open_store
from bullpen.core.store.statement import Statement

L, M, R = LANES.c, MESSAGES.c, RESPONSES.c

_OF_IT = union_all(
    select(M.message_id).where(M.message_id == bindparam("conversation")),
    select(M.message_id).where(
        M.conversation_id == bindparam("conversation"), M.conversation_id != M.message_id
    ),
)

ANSWERS: Statement[tuple[int, str, str]] = Statement(
    select(R.id, R.agent, R.message)
    .where(R.message_id.in_(_OF_IT), R.channel == const(CLI))
    .order_by(R.id)
)

UNDER_WAY: Statement[tuple[str, str, str, str | None]] = Statement(
    select(M.status, L.agent, L.state, L.reason)
    .join(LANES, L.agent == M.agent)
    .where(
        M.message_id.in_(_OF_IT),
        M.status.in_([const(MessageState.PENDING.value), const(MessageState.PROCESSING.value)]),
    )
)


@click.command()
@click.argument("text", required=False)
@click.option("--agent", default="", help="Who is to answer; else the setting default_agent.")
@click.option("--no-wait", is_flag=True, help="Print the message's id and do not wait.")
@click.option("--timeout", type=float, default=300.0, show_default=True, help="Seconds to wait.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_obj
def send(
    settings: Settings,
    text: str | None,
    agent: str,
    no_wait: bool,
    timeout: float,
    as_json: bool,
) -> None:
    """Send TEXT, or what comes on standard input, and wait for the answers.

    It goes to the default agent, or to whom it addresses: @coder, @team, [@coder: ...], [#dev: ...]

    \b
    Examples:
      bullpen send "hello"
      bullpen send "@coder fix the login"
      echo "hello" | bullpen send --agent assistant
    """
    message = text if text is not None else _stdin()
    store = open_store(settings)
    try:
        with store.write() as tx:
            sent = receive(
                tx, NewMessage(agent=agent, message=message, channel=CLI, sender="owner")
            )
        conversation = sent[0].message_id
        if no_wait:
            click.echo(json.dumps({"message_id": conversation}) if as_json else conversation)
            return
        _wait(store, conversation, timeout, as_json)
    finally:
        store.close()


def _stdin() -> str:
    try:
        return sys.stdin.buffer.read().decode()
    except UnicodeDecodeError as error:
        raise BadText(f"standard input is not UTF-8 at byte {error.start}") from None


def _wait(store: Store, conversation: str, timeout: float, as_json: bool) -> None:
    """Print the answers as they come, until nothing of the conversation is under way."""
    listener = store.listen()
    deadline = time.monotonic() + timeout
    said: list[tuple[str, str]] = []
    seen: set[int] = set()  # on PostgreSQL a lower id may be committed after a higher one
    moving = True
    paused = ""
    try:
        while moving and not paused and time.monotonic() < deadline:
            with store.read() as tx:
                open_ = tx.all(UNDER_WAY, {"conversation": conversation})
                answers = tx.all(ANSWERS, {"conversation": conversation})
            found = [row for row in answers if row[0] not in seen]
            moving, paused = bool(open_), _paused(open_)
            for id_, agent, text in found:
                seen.add(id_)
                said.append((agent, text))
                if not as_json:
                    click.echo(f"@{agent}: {text}")
            if found:
                with store.write() as tx:
                    for id_, _, _ in found:
                        with suppress(IllegalMove):  # `response read` was quicker
                            mark_read(tx, id_)
            if moving and not paused:
                # Not in the register of workers, so it is the slow look that finds the answer.
                listener.wait(min(max(0.0, deadline - time.monotonic()), 0.05))
    finally:
        listener.close()
    if as_json:
        texts = [{"agent": agent, "message": text} for agent, text in said]
        click.echo(json.dumps({"message_id": conversation, "answers": texts}))
    if moving:
        _say_that_it_waits(conversation, bool(said), paused)
        sys.exit(75)
    if not said and not as_json:
        click.echo(f"{conversation} is through, and nobody had an answer for you.", err=True)


def _paused(open_: list[tuple[str, str, str, str | None]]) -> str:
    """Who is paused and why, if nothing of the conversation goes on before somebody helps."""
    waits = [
        (agent, reason)
        for status, agent, state, reason in open_
        if status == MessageState.PENDING and state == LaneState.PAUSED
    ]
    if len(waits) < len(open_):
        return ""
    return "; ".join(f"@{agent} is paused ({reason})" for agent, reason in dict.fromkeys(waits))


def _say_that_it_waits(conversation: str, said: bool, paused: str) -> None:
    what = "There may be more to come" if said else "No answer yet"
    why = f"  {paused}." if paused else "  Look with `bullpen status` whether the processor runs."
    click.echo(f"{what} to {conversation}; it stays in the queue.\n{why}", err=True)
