"""Messages that are dead, as many as a test needs."""

from __future__ import annotations

from typing import Any

from bullpen.core.message import ErrorKind
from bullpen.core.models import MESSAGES
from bullpen.core.store.base import Store
from tests.conformance.verbs import failed, message, send, take


def die(
    store: Store,
    agent: str = "coder",
    error: str = "it broke",
    kind: ErrorKind = ErrorKind.PERMANENT,
    **more: Any,  # noqa: ANN401
) -> str:
    """One message that is dead, or whatever this kind of error makes of it."""
    sent = send(store, agent=agent, **more)
    failed(store, take(store, agent).token, kind, error)
    return sent


def many_dead(store: Store, count: int, agent: str = "coder") -> list[str]:
    """So many that are dead of the same, the first of them as messages die and the others alike."""
    first = message(store, die(store, agent))
    made = [f"api_{number:08}" for number in range(1, count)]
    copies = [
        {**first, "id": first["id"] + at, "message_id": name, "conversation_id": name}
        for at, name in enumerate(made, 1)
    ]
    with store.engine.begin() as connection:
        connection.execute(MESSAGES.insert(), copies)
    return [str(first["message_id"]), *made]
