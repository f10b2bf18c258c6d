"""bullpen send: a message to an agent, and its answer."""

from __future__ import annotations

import json
import sys
import time

import click
from sqlalchemy import bindparam, select

from bullpen.core.errors import BadText
from bullpen.core.message import NewMessage
from bullpen.core.models import RESPONSES
from bullpen.core.outbox.person import mark_read
from bullpen.core.queue.enqueue import enqueue
from bullpen.core.settings import Settings
from bullpen.core.store.base import Store
from bullpen.core.store.open import open_store
from bullpen.core.store.statement import Statement

DEFAULT_AGENT = "assistant"

R = RESPONSES.c

ANSWERS: Statement[tuple[int, str, str]] = Statement(
    select(R.id, R.agent, R.message).where(R.message_id == bindparam("message_id")).order_by(R.id)
)


@click.command()
@click.argument("text", required=False)
@click.option("--agent", default=DEFAULT_AGENT, show_default=True, help="Who is to answer.")
@click.option("--no-wait", is_flag=True, help="Print the message's id and do not wait.")
@click.option("--timeout", type=float, default=60.0, show_default=True, help="Seconds to wait.")
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
    """Send TEXT, or what comes on standard input, and wait for the answer.

    \b
    Examples:
      bullpen send "hello"
      echo "hello" | bullpen send --agent assistant
    """
    message = text if text is not None else _stdin()
    store = open_store(settings)
    try:
        with store.write() as tx:
            sent = enqueue(
                tx, NewMessage(agent=agent, message=message, channel="cli", sender="owner")
            )
        if no_wait:
            click.echo(json.dumps({"message_id": sent.message_id}) if as_json else sent.message_id)
            return
        _show(sent.message_id, _answers(store, sent.message_id, timeout), as_json)
    finally:
        store.close()


def _stdin() -> str:
    try:
        return sys.stdin.buffer.read().decode()
    except UnicodeDecodeError as error:
        raise BadText(f"standard input is not UTF-8 at byte {error.start}") from None


def _answers(store: Store, message_id: str, timeout: float) -> list[tuple[int, str, str]]:
    listener = store.listen()
    deadline = time.monotonic() + timeout
    try:
        while True:
            with store.read() as tx:
                found = tx.all(ANSWERS, {"message_id": message_id})
            left = deadline - time.monotonic()
            if found or left <= 0:
                break
            # Not in the register of workers, so it is the slow look that finds the answer.
            listener.wait(min(left, 0.05))
    finally:
        listener.close()
    if found:
        with store.write() as tx:
            for id_, _, _ in found:
                mark_read(tx, id_)
    return found


def _show(message_id: str, answers: list[tuple[int, str, str]], as_json: bool) -> None:
    if as_json:
        said = [{"agent": agent, "message": text} for _, agent, text in answers]
        click.echo(json.dumps({"message_id": message_id, "answers": said}))
    elif answers:
        for _, agent, text in answers:
            click.echo(f"@{agent}: {text}")
    if not answers:
        click.echo(
            f"No answer yet to {message_id}; it stays in the queue.\n"
            "  Look with `bullpen status` whether the processor runs.",
            err=True,
        )
        sys.exit(75)
