"""A traced conversation as a tree: each message below the one of whose run it came."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

from bullpen.core.conversations.trace import Step, Trace
from bullpen.core.outbox.browse import ResponseRecord
from bullpen.core.queue.attempts import Attempt

Row = TypeVar("Row", Attempt, ResponseRecord)


@dataclass(frozen=True, slots=True)
class Node:
    """A message with its runs, its answers, and the messages that came of it."""

    step: Step
    attempts: tuple[Attempt, ...]
    responses: tuple[ResponseRecord, ...]
    children: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Tree:
    """All of it."""

    nodes: tuple[Node, ...]
    attempts: tuple[Attempt, ...]
    """Runs of messages that are kept no longer."""
    responses: tuple[ResponseRecord, ...]
    """What people were told that answers none of the messages."""


def build_tree(trace: Trace) -> Tree:
    """The tree of this conversation; nothing of it is left out."""
    attempts = _by_message(trace.attempts)
    responses = _by_message(trace.responses)
    children: dict[str | None, list[Node]] = defaultdict(list)
    earlier = {step.message.message_id: step.message.id for step in trace.steps}
    # From the last on: what came of a message has a higher number than the message itself.
    for step in reversed(trace.steps):
        message = step.message
        node = Node(
            step=step,
            attempts=tuple(attempts.get(message.message_id, ())),
            responses=tuple(responses.get(message.message_id, ())),
            children=tuple(reversed(children.pop(message.message_id, ()))),
        )
        above = earlier.get(message.parent_id or "")
        known = above is not None and above < message.id
        # Of a parent that is kept no longer it is not known whose it was.
        children[message.parent_id if known else None].append(node)
    return Tree(
        nodes=tuple(reversed(children[None])),
        attempts=tuple(each for each in trace.attempts if each.message_id not in earlier),
        responses=tuple(each for each in trace.responses if each.message_id not in earlier),
    )


def _by_message(rows: Iterable[Row]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = defaultdict(list)
    for each in rows:
        found[each.message_id].append(each)
    return found
