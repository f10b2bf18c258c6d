"""A traced conversation as one JSON document, as the API gives it."""

from __future__ import annotations

import json
from dataclasses import asdict

from bullpen.core.conversations.members import ACTIVE_STATES
from bullpen.core.conversations.trace import Step, Trace
from bullpen.core.outbox.browse import ResponseRecord


def trace_fields(found: Trace) -> dict[str, object]:
    """All of it; the times are milliseconds since 1970."""
    return {
        "conversation_id": found.conversation_id,
        "state": found.stand,
        "totals": asdict(found.totals),
        "under_way": [
            step.message.message_id for step in found.steps if step.message.status in ACTIVE_STATES
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


def _response(seen: ResponseRecord) -> dict[str, object]:
    return {
        **asdict(seen),
        "files": json.loads(seen.files or "[]"),
        "metadata": json.loads(seen.metadata or "null"),
    }
