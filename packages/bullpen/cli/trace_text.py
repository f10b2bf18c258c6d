"""A conversation as a tree of text."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from shlex import quote
from typing import TYPE_CHECKING, TextIO, assert_never
from zoneinfo import ZoneInfo

from bullpen.cli.output import format_count, format_duration, one_line, state_style
from bullpen.core.clock import SECOND
from bullpen.core.inspect.conversations import ConversationState
from bullpen.core.inspect.messages import MessageRecord
from bullpen.core.inspect.responses import ResponseRecord
from bullpen.core.inspect.trace import MAX_ROWS, Node, Step, Trace, build_tree
from bullpen.core.message import PULL_CHANNELS, ROOM
from bullpen.core.models.base import decode_texts
from bullpen.core.queue.attempts import Attempt, AttemptOutcome
from bullpen.core.states import MessageState, ResponseState
from bullpen.core.text import visible, visible_line

if TYPE_CHECKING:
    from rich.tree import Tree

ARROW = "→"
GUIDES = ("├── ", "└── ", "│   ", "    ")
ASCII = ("+-- ", "`-- ", "|   ", "    ")
PREVIEW_CHARS = 160
STATUS_LABELS = {
    ConversationState.UNDER_WAY: "in progress",
    ConversationState.HELD: "held",
    ConversationState.AT_REST: "finished",
}


@dataclass(frozen=True, slots=True)
class ConversationClock:
    """Formats times in the owner's zone; with the date if it is not that of the start."""

    zone: ZoneInfo
    began: int
    now: int

    def at(self, moment: int) -> str:
        """The time of day; with the date if it differs from that of the start."""
        local = self._local(moment)
        today = local.date() == self._local(self.began).date()
        return local.strftime("%H:%M:%S" if today else "%Y-%m-%d %H:%M:%S")

    def day(self) -> str:
        """The start, with date and zone."""
        return self._local(self.began).strftime("%Y-%m-%d %H:%M:%S %Z")

    def _local(self, moment: int) -> datetime:
        return datetime.fromtimestamp(moment / SECOND, UTC).astimezone(self.zone)


def format_elapsed(milliseconds: int) -> str:
    """A duration such as `3 h`; below 10 s with tenths of a second."""
    if milliseconds < 10 * SECOND:
        return f"{max(0, milliseconds) / SECOND:.1f} s"
    return format_duration(milliseconds)


@dataclass(frozen=True, slots=True)
class StyledLine:
    """A line with its style for a terminal."""

    text: str
    style: str = ""


@dataclass(frozen=True, slots=True)
class LineTree:
    """A node of a tree: its lines, and its child nodes."""

    lines: tuple[StyledLine, ...]
    children: tuple[LineTree, ...] = ()


def to_rich_tree(root: LineTree) -> Tree:
    """The tree for rich."""
    from rich.text import Text  # imported here: it is slow to load
    from rich.tree import Tree

    def label(node: LineTree) -> Text:
        return Text("\n").join(Text(visible(each.text), each.style) for each in node.lines)

    top = Tree(label(root), guide_style="dim")
    waiting = [(top, root)]
    while waiting:
        branch, node = waiting.pop()
        waiting += [(branch.add(label(each)), each) for each in node.children]
    return top


def tree_lines(root: LineTree, guides: tuple[str, str, str, str] = GUIDES) -> Iterator[str]:
    """The tree as lines of text."""
    middle, last, beside, beneath = guides
    waiting = [(root, "", "")]
    while waiting:
        node, first, rest = waiting.pop()
        below = beside if node.children else ""
        for number, line in enumerate(_split(node)):
            yield (first + line if number == 0 else rest + below + line).rstrip()
        for each in reversed(node.children):
            end = each is node.children[-1]
            waiting.append(
                (each, rest + (last if end else middle), rest + (beneath if end else beside))
            )


def guides_for(out: TextIO) -> tuple[str, str, str, str]:
    """The guides that the encoding of this stream has."""
    try:
        "".join(GUIDES).encode(out.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return ASCII
    return GUIDES


def print_tree(root: LineTree) -> None:
    """Print the tree; characters that the stream cannot encode are escaped."""
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")
    if sys.stdout.isatty():
        from rich.console import Console  # imported here: it is slow to load

        Console(highlight=False).print(to_rich_tree(root))
    else:
        guides = guides_for(sys.stdout)
        for each in tree_lines(root, guides):
            # Control characters are already replaced; click would change the stream's encoding.
            print(each if guides is GUIDES else each.replace(ARROW, "->"))


def _split(node: LineTree) -> Iterator[str]:
    for each in node.lines:
        yield from visible(each.text).split("\n")


@dataclass(frozen=True, slots=True)
class TraceFormatter:
    """Formats a conversation as a tree."""

    times: ConversationClock
    full: bool
    """Texts in full instead of previews."""

    def tree(self, found: Trace) -> LineTree:
        """The tree of a conversation."""
        tree = build_tree(found)
        children = [self._node(each) for each in tree.nodes]
        children += [
            LineTree((self._run(number, each),)) for number, each in _numbered(tree.attempts)
        ]
        children += [LineTree(tuple(self._answer(each))) for each in tree.responses]
        return LineTree((self._heading(found),), tuple(children))

    def totals(self, found: Trace) -> str:
        """The totals, and whether messages are left out."""
        totals = found.totals
        work = sum(each.finished_at - each.started_at for each in found.attempts)
        ends = [each.finished_at for each in found.attempts]
        parts = [
            format_count(totals.messages, "message"),
            format_count(totals.attempts, "run"),
            f"{format_elapsed(work)} of work",
            *_usage(totals.cost, totals.input_tokens, totals.output_tokens),
        ]
        if ends and found.stand is ConversationState.AT_REST:
            parts.append(f"finished after {format_elapsed(max(ends) - self.times.began)}")
        text = ", ".join(parts)
        if totals.messages > len(found.steps):
            text += f"; showing only the first {format_count(MAX_ROWS, 'message')}"
        return text

    def _heading(self, found: Trace) -> StyledLine:
        stand = STATUS_LABELS[found.stand]
        return StyledLine(f"{found.conversation_id}: {stand}, started {self.times.day()}", "bold")

    def _node(self, node: Node) -> LineTree:
        # A loop instead of recursion, because a chain of handoffs may be very long.
        done: dict[int, LineTree] = {}
        waiting = [node]
        while waiting:
            each = waiting[-1]
            missing = [child for child in each.children if id(child) not in done]
            if missing:
                waiting += missing
                continue
            below = tuple(done[id(child)] for child in each.children)
            done[id(each)] = LineTree(tuple(self._lines(each)), below)
            waiting.pop()
        return done[id(node)]

    def _lines(self, node: Node) -> Iterator[StyledLine]:
        message = node.step.message
        state = MessageState(message.status)
        yield StyledLine(f"{_route(message)}: {state}", state_style(state) or "")
        yield StyledLine(self._text(message.message))
        yield StyledLine(f"{message.message_id}  {self._when(node.step)}", "dim")
        for number, each in _numbered(node.attempts):
            yield self._run(number, each)
        if node.step.answered_with is not None:
            yield StyledLine(f"answered together with {node.step.answered_with}")
        if (line := self._waits_for(node.step)) is not None:
            yield line
        for response in node.responses:
            yield from self._answer(response)

    def _when(self, step: Step) -> str:
        message = step.message
        text = f"sent {self.times.at(message.created_at)}"
        if step.claimed_at is not None:
            text += f", waited {format_elapsed(step.claimed_at - message.created_at)}"
        if step.started_at is not None and step.finished_at is not None:
            text += f", ran {format_elapsed(step.finished_at - step.started_at)}"
        return f"{text}, archived" if step.archived else text

    def _run(self, number: int, run: Attempt) -> StyledLine:
        took = format_elapsed(run.finished_at - run.started_at)
        by = f" by {_model(run)}" if run.provider else ""
        text = f"run {number} at {self.times.at(run.started_at)}{by}: {run.outcome} after {took}"
        if run.messages > 1:
            text += f", {format_count(run.messages, 'message')} together"
        if usage := _usage(run.cost, run.input_tokens, run.output_tokens):
            text += f", {', '.join(usage)}"
        if run.error:
            text += f": {self._text(run.error, quoted=False)}"
        if run.error_kind:
            text += f" ({run.error_kind})"
        good = run.outcome == AttemptOutcome.COMPLETED
        return StyledLine(text, "dim" if good else "red" if run.error else "")

    def _waits_for(self, step: Step) -> StyledLine | None:
        """Why the message has not been answered, and the next command."""
        message = step.message
        why = self._text(message.last_error or "", quoted=False)
        match MessageState(message.status):
            case MessageState.PROCESSING:
                since = step.claimed_at or message.updated_at
                who = f" by {message.claimed_by}" if message.claimed_by else ""
                return StyledLine(
                    f"processing for {format_elapsed(self.times.now - since)}{who}",
                    state_style(message.status) or "",
                )
            case MessageState.PENDING:
                left = message.available_at - self.times.now
                if left > 0:
                    return StyledLine(f"due in {format_elapsed(left)}{_because(why)}")
                waits = format_elapsed(self.times.now - message.available_at)
                return StyledLine(f"pending for {waits}")
            case MessageState.HELD:
                next_step = f"bullpen queue resume {quote(message.message_id)}"
                return StyledLine(f"held{_because(why)}. Next: {next_step}", "yellow")
            case MessageState.DEAD:
                next_step = f"bullpen queue retry {quote(message.message_id)}"
                return StyledLine(f"dead{_because(why)}. Next: {next_step}", "red")
            case MessageState.CANCELLED | MessageState.EXPIRED:
                return StyledLine(why) if why else None
            case MessageState.COMPLETED:
                return None
            case never:
                assert_never(never)

    def _answer(self, response: ResponseRecord) -> Iterator[StyledLine]:
        author = f"@{response.agent}" if response.agent else "Bullpen"
        to = f"{visible_line(response.sender)} on {response.channel}"
        state = self._delivery(response)
        yield StyledLine(f"{author} {ARROW} {to}: {state}", state_style(response.status) or "")
        if response.message:
            yield StyledLine(self._text(response.message))
        for file in decode_texts(response.files):
            yield StyledLine(f"[file: {file}]")

    def _delivery(self, response: ResponseRecord) -> str:
        attempts = format_count(response.delivery_attempts, "attempt")
        why = _because(self._text(response.last_error or "", quoted=False))
        match ResponseState(response.status):
            case ResponseState.ACKED:
                what = "read" if response.channel in PULL_CHANNELS else "delivered"
                at = response.acked_at
                return what if at is None else f"{what} {self.times.at(at)}"
            case ResponseState.PENDING if response.channel in PULL_CHANNELS:
                return "not read yet"
            case ResponseState.PENDING:
                return f"pending{f' after {attempts}{why}' if response.delivery_attempts else ''}"
            case ResponseState.UNKNOWN:
                return f"unknown, delivery not confirmed{why}"
            case ResponseState.DEAD:
                return f"dead after {attempts}{why}. Next: bullpen response retry {response.id}"
            case never:
                assert_never(never)

    def _text(self, text: str, *, quoted: bool = True) -> str:
        if self.full:
            return text
        line = one_line(text, PREVIEW_CHARS)
        return f'"{line}"' if quoted else line


def _route(message: MessageRecord) -> str:
    author = f"@{message.from_agent}" if message.from_agent else visible_line(message.sender)
    if message.channel == ROOM:
        return f"{author} {ARROW} #{message.team_id} {ARROW} @{message.agent}"
    place = "" if message.from_agent else f" ({message.channel})"
    team = f" of {message.team_id}" if message.team_id else ""
    return f"{author}{place} {ARROW} @{message.agent}{team}"


def _numbered(runs: tuple[Attempt, ...]) -> Iterator[tuple[int, Attempt]]:
    return enumerate(runs, 1)


def _model(run: Attempt) -> str:
    provider = run.provider or ""
    return f"{provider} with {run.model}" if run.model not in (None, "", provider) else provider


def _usage(cost: float, tokens_in: int, tokens_out: int) -> list[str]:
    parts = [f"${cost:.4f}"] if cost else []
    if tokens_in or tokens_out:
        parts.append(f"{tokens_in} tokens in, {tokens_out} out")
    return parts


def _because(why: str) -> str:
    return f": {why}" if why else ""
