"""What came of a wait for a conversation: as a document, in words, and as an exit status."""

from __future__ import annotations

from bullpen.cli.following import End, Waited
from bullpen.cli.screen import Screen
from bullpen.core.conversations.standing import BAD_ENDS, Unfinished
from bullpen.core.states import MessageState

AGAIN = 75


def status(waited: Waited) -> int:
    """0 when all of it was answered, 1 when something failed, 75 when more is to come."""
    if waited.end is End.STOPPED:
        return 1
    if waited.end is not End.AT_REST or waited.standing.of(MessageState.HELD):
        return AGAIN
    return 1 if waited.standing.of(*BAD_ENDS) else 0


def document(conversation: str, waited: Waited, cost: float) -> dict[str, object]:
    """All of it, for programs."""
    return {
        "message_id": conversation,
        "state": _state(waited),
        "answers": [
            {"agent": each.agent, "message": each.message, "files": each.files}
            for each in waited.answers
        ],
        "messages": waited.standing.counts.by_state,
        "cost": cost,
        "answered_with": waited.beside,
        "waits_for": [each.text for each in waited.obstacles],
        "unfinished": [
            {
                "message_id": each.message_id,
                "agent": each.agent,
                "state": each.state,
                "why": each.why,
            }
            for each in waited.standing.unfinished
        ],
    }


def _state(waited: Waited) -> str:
    if waited.end is End.STOPPED:
        return "stopped"
    if waited.end is End.OBSTACLE:
        return "waiting"
    if waited.end is not End.AT_REST:
        return "under_way"
    if waited.standing.of(MessageState.HELD):
        return "held"
    return "failed" if waited.standing.of(*BAD_ENDS) else "answered"


def tell(conversation: str, waited: Waited, screen: Screen) -> None:
    """Say why it is over, and what can be done next."""
    match waited.end:
        case End.AT_REST:
            for each in waited.standing.unfinished:
                screen.note(*_why(each))
            if waited.beside is not None:
                screen.line(f"It was answered together with {waited.beside}.")
            elif not waited.answers and not waited.standing.unfinished:
                screen.note(f"{conversation} is through, and nobody had an answer for you.")
        case End.OBSTACLE:
            screen.note(f"{_so_far(waited)} to {conversation}; it stays in the queue.")
            for obstacle in waited.obstacles:
                screen.note(f"  {obstacle.text}. Next: {obstacle.helps}")
        case End.TIME | End.LEFT:
            screen.note(
                f"{_so_far(waited)} to {conversation}; it stays in the queue.",
                "  What comes of it: bullpen response read",
                f"  To stop it: bullpen queue cancel --conversation {conversation}",
            )
        case End.STOPPED:
            screen.note(f"{conversation} is stopped.")
    screen.line(f"Its whole life: bullpen trace {conversation}")


def _so_far(waited: Waited) -> str:
    return "There may be more to come" if waited.answers else "No answer yet"


def _why(each: Unfinished) -> tuple[str, ...]:
    why = f": {each.why}" if each.why else ""
    helps = "let-go" if each.state is MessageState.HELD else "retry"
    return (
        f"{each.message_id} for @{each.agent} is {each.state}{why}",
        f"  Next: bullpen queue {helps} {each.message_id}",
    )
