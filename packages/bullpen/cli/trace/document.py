"""A traced conversation as one JSON document, as the API gives it."""

from __future__ import annotations

import json
from dataclasses import asdict

from bullpen.core.conversations.members import MOVING
from bullpen.core.conversations.trace import Step, Trace
from bullpen.core.outbox.browse import SeenResponse


def document(found: Trace) -> dict[str, object]:
    """All of it; the times are milliseconds since 1970."""
    return {
        "conversation_id": found.conversation_id,
        "state": found.stand,
        "totals": asdict(found.totals),
        "under_way": [
            step.message.message_id for step in found.steps if step.message.status in MOVING
        ],
        "messages": [_message(step) for step in found.steps],
        "attempts": [asdict(each) for each in found.attempts],
        "responses": [_response(each) for each in found.responses],
    }


def _message(step: Step) -> dict[str, object]:
    times = asdict(step)
    message: dict[str, object] = times.pop("message")
    message["files"] = json.loads(step.message.files or "[]")
    return {**message, **times}


def _response(seen: SeenResponse) -> dict[str, object]:
    return {
        **asdict(seen),
        "files": json.loads(seen.files or "[]"),
        "metadata": json.loads(seen.metadata or "null"),
    }
