"""Wait for a conversation: progress at the terminal, the answers, and Ctrl-C."""

from __future__ import annotations

import signal
import sys
import time
from contextlib import closing, suppress
from dataclasses import dataclass, field
from enum import StrEnum
from shlex import quote

from bullpen.cli.interrupts import END_SIGNALS, Interrupts
from bullpen.cli.output import echo
from bullpen.cli.screen import Screen
from bullpen.core.clock import SECOND
from bullpen.core.errors import BullpenError, IllegalMove
from bullpen.core.inspect.follow import (
    NO_PROCESSOR,
    PROCESSOR,
    ConversationFollower,
    ConversationStatus,
    FollowedAnswer,
    Obstacle,
    UnfinishedMessage,
    get_conversation_status,
)
from bullpen.core.inspect.responses import list_responses_to
from bullpen.core.inspect.trace import trace
from bullpen.core.models.base import decode_texts
from bullpen.core.outbox.manage import ack_response
from bullpen.core.queue.conversations import cancel_conversation
from bullpen.core.settings import Settings
from bullpen.core.states import UNANSWERED_STATES, MessageState
from bullpen.core.wake.listener import Listener

POLL_SECONDS = 1.0
"""The longest time between two looks, without any wake-up."""
SETTLE_SECONDS = 0.01
"""The time between two looks while a transaction that may concern it is uncommitted."""
EXIT_UNFINISHED = 75


def is_interactive() -> bool:
    """Whether a question can be asked at the terminal."""
    return sys.stdin.isatty() and sys.stderr.isatty()


class WaitEnd(StrEnum):
    """Why the wait ended."""

    AT_REST = "at_rest"
    OBSTACLE = "obstacle"
    TIME = "time"
    LEFT = "left"
    STOPPED = "stopped"


@dataclass(slots=True)
class WaitResult:
    """The answers, and why the wait ended."""

    end: WaitEnd
    status: ConversationStatus
    answers: list[FollowedAnswer]
    obstacles: tuple[Obstacle, ...] = ()
    beside: str | None = None
    """The message that was answered in the same run."""


@dataclass(slots=True)
class Wait:
    """The wait of one command for a conversation."""

    follower: ConversationFollower
    screen: Screen
    deadline: float
    """By the monotonic clock; infinity means no limit."""
    asks: bool = True
    """Whether Ctrl-C asks what to do; otherwise it ends the wait."""
    answers: list[FollowedAnswer] = field(default_factory=list)
    _status: ConversationStatus | None = None
    _looked_at: float = -POLL_SECONDS
    _noted: bool = False

    def wait(self) -> WaitResult:
        """Show progress and answers until the conversation is finished or the wait ends."""
        listener = self.follower.store.listen()
        guard = Interrupts(END_SIGNALS, wake=listener.interrupt)
        with closing(listener), guard.active() as interrupts:
            try:
                return self._wait(listener, interrupts)
            except KeyboardInterrupt:  # the second one
                return self._over(WaitEnd.LEFT)
            finally:
                self.screen.clear()

    def _wait(self, listener: Listener, interrupts: Interrupts) -> WaitResult:
        hint: frozenset[str] = frozenset()
        while True:
            found = self._look(hint)
            if found.at_rest:
                return self._at_rest()
            obstacles = self._obstacles(found)
            if obstacles:
                return self._over(WaitEnd.OBSTACLE, obstacles)
            if (end := self._interrupted(interrupts)) is not None:
                return self._over(end)
            left = self.deadline - time.monotonic()
            if left <= 0:
                return self._over(WaitEnd.TIME)
            self.screen.update_status(tuple(each.agent for each in found.active))
            pause = SETTLE_SECONDS if self.follower.tail.has_uncommitted else POLL_SECONDS
            hint = listener.wait(min(left, pause))

    def _look(self, hint: frozenset[str] = frozenset()) -> ConversationStatus:
        """Show new events and answers; the status is read only after a change."""
        news = self.follower.new_events()
        answers: list[FollowedAnswer] = []
        now = time.monotonic()
        notified = f"responses:{self.follower.channel}" in hint
        if self._status is None or news or notified or now - self._looked_at >= POLL_SECONDS:
            self._looked_at = now
            with self.follower.store.read() as tx:
                self._status = get_conversation_status(tx, self.follower.conversation_id)
                answers = self.follower.new_answers(tx)
            if not self._status.active:  # its last events were written since they were read
                news += self.follower.new_events()
        self.screen.expect(answers)
        paused = {each.agent for each in self._status.unfinished if each.paused is not None}
        for each in news:
            self.screen.show_event(each, paused)
        self._show_answers(answers)
        return self._status

    def _show_answers(self, answers: list[FollowedAnswer]) -> None:
        for each in answers:
            self.answers.append(each)
            self.screen.answer(each)
        if answers:
            with self.follower.store.write() as tx:
                for each in answers:
                    with suppress(IllegalMove):  # `response read` was quicker
                        ack_response(tx, each.id)

    def _obstacles(self, found: ConversationStatus) -> tuple[Obstacle, ...]:
        """The causes that block the whole conversation; none while a processor is starting."""
        left = max(0.0, self.deadline - time.monotonic())
        obstacles = found.obstacles(found.now + left * SECOND)
        if NO_PROCESSOR not in obstacles:
            return obstacles
        if _processor_is_starting(self.follower.store.settings):
            return ()
        if not is_interactive():
            return obstacles
        if not self._noted:
            self._noted = True
            self.screen.note(
                f"The processor is not running. In another terminal: {NO_PROCESSOR.command}",
                "Waiting for it. Ctrl-C ends the wait; the message stays queued.",
            )
        return ()

    def _interrupted(self, interrupts: Interrupts) -> WaitEnd | None:
        """Ask what to do after Ctrl-C; None is to keep waiting."""
        if interrupts.received is None:
            return None
        if not self.asks or interrupts.received is not signal.SIGINT or not is_interactive():
            return WaitEnd.LEFT
        self.screen.note("")
        choice = _ask(
            "Stop it, leave it running, or keep waiting? [stop/leave/wait]",
            ("stop", "leave", "wait"),
            default="leave",
        )
        if choice == "leave":
            return WaitEnd.LEFT
        interrupts.received = None
        if choice == "wait":
            return None
        with self.follower.store.write() as tx:
            cancel_conversation(tx, self.follower.conversation_id, "stopped by its sender")
        return WaitEnd.STOPPED

    def _at_rest(self) -> WaitResult:
        result = self._over(WaitEnd.AT_REST)
        if self.answers or result.status.unfinished:
            return result
        conversation = self.follower.conversation_id
        with self.follower.store.read() as tx:
            beside = [step.answered_with for step in trace(tx, conversation).steps]
            batches = [each for each in beside if each is not None]
            rows = list_responses_to(tx, batches)
        for row in rows:
            files = tuple(decode_texts(row.files))
            self.answers.append(FollowedAnswer(row.id, row.agent, row.message, files))
            self.screen.answer(self.answers[-1])
        result.beside = batches[0] if batches else None
        return result

    def _over(self, end: WaitEnd, obstacles: tuple[Obstacle, ...] = ()) -> WaitResult:
        found = self._status
        if end is not WaitEnd.AT_REST or found is None:
            self._looked_at = -POLL_SECONDS
            found = self._look()
        return WaitResult(end, found, self.answers, obstacles)


def _ask(question: str, answers: tuple[str, ...], default: str) -> str:
    """Ask at the terminal; Ctrl-C and the end of input give the default."""
    try:
        while True:
            echo(f"{question} ", err=True, nl=False)
            line = sys.stdin.readline()
            typed = line.strip().lower()
            matches = [each for each in answers if typed and each.startswith(typed)]
            if len(matches) == 1:
                return matches[0]
            if not line:
                return default
    except KeyboardInterrupt:
        echo(err=True)
        return default


def _processor_is_starting(settings: Settings) -> bool:
    """Whether the supervisor has started a processor that is not registered yet."""
    from bullpen.ops.services.supervisor import DOWN_STATES, Supervisor

    supervisor = Supervisor(settings)
    try:
        return supervisor.alive() and any(
            each["name"].startswith(PROCESSOR) and each["state"] not in DOWN_STATES
            for each in supervisor.services()
        )
    except BullpenError:  # the supervisor is stopping
        return False


def exit_status(result: WaitResult) -> int:
    """0 if everything was answered, 1 if something failed, 75 if it is not finished."""
    if result.end is WaitEnd.STOPPED:
        return 1
    if result.end is not WaitEnd.AT_REST or result.status.in_states(MessageState.HELD):
        return EXIT_UNFINISHED
    return 1 if result.status.in_states(*UNANSWERED_STATES) else 0


def wait_fields(conversation: str, result: WaitResult, cost: float) -> dict[str, object]:
    """The JSON document of a result."""
    return {
        "message_id": conversation,
        "state": _state(result),
        "answers": [
            {"agent": each.agent, "message": each.message, "files": each.files}
            for each in result.answers
        ],
        "messages": result.status.counts.by_state,
        "cost": cost,
        "answered_with": result.beside,
        "waits_for": [each.text for each in result.obstacles],
        "unfinished": [
            {
                "message_id": each.message_id,
                "agent": each.agent,
                "state": each.state,
                "why": each.error,
            }
            for each in result.status.unfinished
        ],
    }


def _state(result: WaitResult) -> str:
    if result.end is WaitEnd.STOPPED:
        return "stopped"
    if result.end is WaitEnd.OBSTACLE:
        return "waiting"
    if result.end is not WaitEnd.AT_REST:
        return "under_way"
    if result.status.in_states(MessageState.HELD):
        return "held"
    return "failed" if result.status.in_states(*UNANSWERED_STATES) else "answered"


def print_wait_result(conversation: str, result: WaitResult, screen: Screen) -> None:
    """Print why the wait ended, and after a failure what to do next."""
    match result.end:
        case WaitEnd.AT_REST:
            for unfinished in result.status.unfinished:
                screen.note(*_describe_unfinished(unfinished, result.answers))
            if result.beside is not None:
                screen.line(f"Answered together with {result.beside}.")
            elif not result.answers and not result.status.unfinished:
                screen.note(f"{conversation} finished without a reply.")
        case WaitEnd.OBSTACLE:
            for obstacle in result.obstacles:
                screen.note(*_describe_obstacle(conversation, obstacle, result.answers))
        case WaitEnd.TIME | WaitEnd.LEFT:
            screen.note(
                f"{_so_far(result.answers)}: {conversation} continues in the background.",
                "  Read its answers later: bullpen response read",
                f"  Cancel it: bullpen queue cancel --conversation {quote(conversation)}",
            )
        case WaitEnd.STOPPED:
            screen.note(f"Cancelled {conversation}.")
    if not screen.quiet and (exit_status(result) or not result.answers):
        screen.note(f"  Details: bullpen trace {quote(conversation)}")


def _so_far(answers: list[FollowedAnswer]) -> str:
    return "Not finished" if answers else "No answer yet"


def _describe_obstacle(
    conversation: str, obstacle: Obstacle, answers: list[FollowedAnswer]
) -> tuple[str, ...]:
    """The reason why a conversation does not continue, unless an answer already has it."""
    if obstacle.agent and any(
        each.message.startswith(f"@{obstacle.agent} is paused") for each in answers
    ):
        return ()
    return (
        f"{_so_far(answers)}: {conversation} stays queued because {obstacle.text}.",
        f"  Next: {obstacle.command}",
    )


def _describe_unfinished(each: UnfinishedMessage, answers: list[FollowedAnswer]) -> tuple[str, ...]:
    """The state of a message and the reason, unless an answer names both, and the next command."""
    verb = "resume" if each.state is MessageState.HELD else "retry"
    step = f"  Next: bullpen queue {verb} {quote(each.message_id)}"
    if any(each.message_id in answer.message for answer in answers):
        return (step,)
    reason = f": {each.error}" if each.error else ""
    return f"{each.message_id} for @{each.agent} is {each.state}{reason}", step
