"""What came of a wait for a conversation: as a document, in words, and as an exit status."""

from __future__ import annotations

from bullpen.cli.following import WaitEnd, WaitResult
from bullpen.cli.screen import Screen
from bullpen.core.conversations.standing import UNANSWERED_STATES, UnfinishedMessage
from bullpen.core.states import MessageState

EXIT_UNFINISHED = 75


def exit_status(waited: WaitResult) -> int:
    """0 when all of it was answered, 1 when something failed, 75 when more is to come."""
    if waited.end is WaitEnd.STOPPED:
        return 1
    if waited.end is not WaitEnd.AT_REST or waited.standing.of(MessageState.HELD):
        return EXIT_UNFINISHED
    return 1 if waited.standing.of(*UNANSWERED_STATES) else 0


def wait_fields(conversation: str, waited: WaitResult, cost: float) -> dict[str, object]:
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


def _state(waited: WaitResult) -> str:
    if waited.end is WaitEnd.STOPPED:
        return "stopped"
    if waited.end is WaitEnd.OBSTACLE:
        return "waiting"
    if waited.end is not WaitEnd.AT_REST:
        return "under_way"
    if waited.standing.of(MessageState.HELD):
        return "held"
    return "failed" if waited.standing.of(*UNANSWERED_STATES) else "answered"


def print_wait_result(conversation: str, waited: WaitResult, screen: Screen) -> None:
    """Say why it is over, and what can be done next."""
    match waited.end:
        case WaitEnd.AT_REST:
            for each in waited.standing.unfinished:
                screen.note(*_why(each))
            if waited.beside is not None:
                screen.line(f"It was answered together with {waited.beside}.")
            elif not waited.answers and not waited.standing.unfinished:
                screen.note(f"{conversation} is through, and nobody had an answer for you.")
        case WaitEnd.OBSTACLE:
            screen.note(f"{_so_far(waited)} to {conversation}; it stays in the queue.")
            for obstacle in waited.obstacles:
                screen.note(f"  {obstacle.text}. Next: {obstacle.helps}")
        case WaitEnd.TIME | WaitEnd.LEFT:
            screen.note(
                f"{_so_far(waited)} to {conversation}; it stays in the queue.",
                "  What comes of it: bullpen response read",
                f"  To stop it: bullpen queue cancel --conversation {conversation}",
            )
        case WaitEnd.STOPPED:
            screen.note(f"{conversation} is stopped.")
    screen.line(f"Its whole life: bullpen trace {conversation}")


def _so_far(waited: WaitResult) -> str:
    return "There may be more to come" if waited.answers else "No answer yet"


def _why(each: UnfinishedMessage) -> tuple[str, ...]:
    why = f": {each.why}" if each.why else ""
    helps = "let-go" if each.state is MessageState.HELD else "retry"
    return (
        f"{each.message_id} for @{each.agent} is {each.state}{why}",
        f"  Next: bullpen queue {helps} {each.message_id}",
    )
