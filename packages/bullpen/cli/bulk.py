"""One verb for many messages or responses: selection, confirmation, progress and result."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Protocol, TypeVar

import click

from bullpen.cli.command import Result, read_transaction, write_transaction
from bullpen.cli.errors import UsageError
from bullpen.cli.filters import StateType, parse_filters
from bullpen.cli.interrupts import Interrupts
from bullpen.cli.options import Count, Function, combine_options, dry_run, yes
from bullpen.cli.output import confirm, echo, one_line
from bullpen.core.bulk import CHANGED_MEANWHILE, BulkFailure, BulkResult
from bullpen.core.errors import BullpenError
from bullpen.core.settings import Settings
from bullpen.core.states import MessageState, ResponseState
from bullpen.core.store.base import Store
from bullpen.core.store.open import open_store
from bullpen.core.store.scan import BatchCursor, BoundScan, RowRef, Selection
from bullpen.core.store.transaction import Transaction
from bullpen.core.text import format_count, visible

BATCH_SIZE = 100
MAX_ROWS_SHOWN = 20
"""The rows shown of a plan, and the errors shown of a result."""
REASON_CHARS = 160

State = TypeVar("State", MessageState, ResponseState)
Table = Sequence[Sequence[str]]
"""Rows of cells; the first is the heading."""


class HasStatus(Protocol):
    """A message or a response."""

    @property
    def status(self) -> str:
        """The name of its state."""
        ...


Record = TypeVar("Record", bound=HasStatus)


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkText:
    """The words of a verb."""

    noun: str
    verb: str
    """As in `Retry 3 messages?`."""
    done: str
    """As in `Retried 3 messages`."""
    none: str
    """Printed if nothing is selected, with the next step."""
    warning: str = ""
    """Printed before the question."""
    note: str = ""
    """Printed after what was done."""

    def of(self, count: int) -> str:
        """The count with its noun."""
        return format_count(count, self.noun)

    def done_text(self, count: int) -> str:
        """What was done, without a full stop."""
        return f"{self.done} {self.of(count)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkNoun(Generic[State, Record]):
    """Messages or responses: found by filters or by id, and shown."""

    scans: Callable[[Transaction, Sequence[State], Selection], Sequence[BoundScan]]
    get: Callable[[Transaction, str], Record]
    rows: Callable[[Sequence[Record], int], Table]
    batch_rows: Callable[[Transaction, Sequence[RowRef]], Table]


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkVerb(Generic[State, Record]):
    """A verb that a command applies to messages or responses."""

    text: BulkText
    noun: BulkNoun[State, Record]
    states: tuple[State, ...]
    """The states in which it is allowed, in processing order."""
    default_states: tuple[State, ...]
    """The states that filters select from without --state."""
    apply: Callable[[Transaction, str], None]
    apply_batch: Callable[[Transaction, Sequence[RowRef]], BulkResult]
    confirms_ids: bool = False
    """Whether it asks for confirmation if it is given ids."""

    def selected_states(self, selection: BulkSelection) -> tuple[State, ...]:
        """The states given by --state, or the default."""
        return (
            tuple(each for each in self.states if each in selection.states) or self.default_states
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkSelection:
    """The options of a bulk command: ids or filters, and the mode."""

    ids: tuple[str, ...]
    filters: dict[str, Any]
    everything: bool
    states: tuple[str, ...]
    limit: int | None
    sure: bool
    dry_run: bool

    @property
    def has_filters(self) -> bool:
        """Whether a filter was given."""
        return any(value is not None for value in self.filters.values())


@dataclass(slots=True)
class BulkOutcome:
    """The progress of a bulk command."""

    matched: int
    done: int = 0
    looked_at: int = 0
    moved: int = 0
    """Rows that another process changed first."""
    failed: int = 0
    stopped: bool = False
    refused: list[BulkFailure] = field(default_factory=list)

    def add(self, batch: BulkResult, size: int, *, named: bool = False) -> None:
        """Count a batch; a row that was given by id counts as failed if its state has changed."""
        self.looked_at += size
        self.done += batch.done
        for each in batch.refused:
            if isinstance(each.error, CHANGED_MEANWHILE) and not named:
                self.moved += 1
                continue
            self.failed += 1
            if len(self.refused) < MAX_ROWS_SHOWN:
                self.refused.append(each)

    @property
    def gone(self) -> int:
        """Rows of the first count that no longer exist or have changed their state."""
        unmet = 0 if self.stopped else self.matched - self.looked_at
        return unmet + self.moved


BULK_OPTIONS = ("named", "everything", "states", "limit", "yes", "dry_run")


def bulk_options(
    states: Sequence[State], about: str, *, default: str
) -> Callable[[Function], Function]:
    """The options of every bulk command; `about` and `default` are in the help of --state."""
    return combine_options(
        click.option(
            "--state",
            "states",
            type=StateType(states),
            multiple=True,
            show_default=default,
            help=about,
        ),
        click.option(
            "--all",
            "everything",
            is_flag=True,
            help="Select everything; otherwise give a filter.",
        ),
        click.option(
            "-n",
            "--limit",
            type=Count(1),
            help="Process at most N, oldest first.",
        ),
        dry_run,
        yes,
    )


def parse_selection(options: dict[str, Any], noun: str) -> BulkSelection:
    """Parse the options of a bulk command; ids and filters exclude each other."""
    selection = BulkSelection(
        ids=tuple(dict.fromkeys(options["named"])),
        filters={name: value for name, value in options.items() if name not in BULK_OPTIONS},
        everything=options["everything"],
        states=tuple(dict.fromkeys(options["states"])),
        limit=options["limit"],
        sure=options["yes"],
        dry_run=options["dry_run"],
    )
    by_filters = selection.has_filters or selection.everything
    if selection.ids and (by_filters or selection.states or selection.limit):
        raise UsageError(
            "give ids or filters, not both", f"Filters select the {noun}s; ids name them."
        )
    if not (selection.ids or by_filters):
        raise UsageError(
            f"give ids of {noun}s, filters such as --agent or --since, or --all",
            f"Preview: {click.get_current_context().command_path} --all --dry-run",
        )
    return selection


def run_bulk(settings: Settings, verb: BulkVerb[State, Record], selection: BulkSelection) -> Result:
    """Apply the verb to what is selected by ids or by filters, or show it with --dry-run."""
    if not selection.ids:
        return run_by_filters(settings, verb, selection)
    if selection.dry_run:
        return plan_by_ids(settings, verb, selection.ids)
    if verb.confirms_ids:
        confirm(f"{verb.text.verb} {verb.text.of(len(selection.ids))}", selection.sure)
    return run_by_ids(settings, verb, selection.ids)


def run_by_filters(
    settings: Settings, verb: BulkVerb[State, Record], selection: BulkSelection
) -> Result:
    """Apply the verb to all rows that the filters select, in batches, after confirmation."""
    text = verb.text
    with closing(open_store(settings)) as store:
        with store.read() as tx:
            cursor = _cursor(tx, verb, selection)
            matched = cursor.count(tx)
            if selection.limit is not None:
                matched = min(matched, selection.limit)
            if selection.dry_run:
                first = cursor.next(tx, min(MAX_ROWS_SHOWN, matched)) if matched else []
                return plan_result(text, matched, verb.noun.batch_rows(tx, first))
        if matched:
            confirm(f"{text.warning}{text.verb} {text.of(matched)}", selection.sure, many=True)
        outcome = BulkOutcome(matched)
        try:
            _process_batches(store, verb, cursor, outcome)
        except (BullpenError, KeyboardInterrupt):
            echo(f"{text.done_text(outcome.done)}, then stopped.", err=True)
            raise
    return _result(text, outcome, f"{text.done_text(outcome.done)}.{text.note}")


def run_by_ids(settings: Settings, verb: BulkVerb[State, Record], ids: Sequence[str]) -> Result:
    """Apply the verb to each id in its own transaction; the error of a single id is raised."""
    text = verb.text
    outcome = BulkOutcome(len(ids))
    for each in ids:
        try:
            with write_transaction(settings) as tx:
                verb.apply(tx, each)
        except BullpenError as error:
            if len(ids) == 1:
                raise
            outcome.add(BulkResult(0, (BulkFailure(each, error),)), 1, named=True)
        else:
            outcome.add(BulkResult(1, ()), 1)
    done = f"{text.done} {ids[0]}" if len(ids) == 1 else text.done_text(outcome.done)
    return _result(text, outcome, f"{done}.{text.note}")


def plan_by_ids(settings: Settings, verb: BulkVerb[State, Record], ids: Sequence[str]) -> Result:
    """Show these rows, and how many of them the verb applies to."""
    with read_transaction(settings) as tx:
        records = [verb.noun.get(tx, each) for each in ids]
        rows = verb.noun.rows(records, tx.now)
    return plan_result(verb.text, sum(each.status in verb.states for each in records), rows)


def plan_result(text: BulkText, count: int, rows: Table) -> Result:
    """The output of --dry-run: the count, and the first rows."""
    heading, *listed = rows
    names = [name.lower() for name in heading]
    hints = []
    if count > len(listed):
        hints.append(f"… and {count - len(listed)} more")
    if count:
        hints.append(f"Dry run, nothing was done. Without --dry-run: {text.verb} {text.of(count)}.")
    document = {
        "dry_run": True,
        "matched": count,
        "first": [dict(zip(names, map(visible, row), strict=True)) for row in listed],
    }
    return Result(document, rows=rows, empty=text.none, hints=hints)


def _cursor(
    tx: Transaction, verb: BulkVerb[State, Record], selection: BulkSelection
) -> BatchCursor:
    wanted = parse_filters(tx, selection.filters)
    if wanted.before is None:  # messages that arrive during the work are not affected
        wanted = replace(wanted, before=tx.now)
    return BatchCursor(verb.noun.scans(tx, verb.selected_states(selection), wanted), wanted)


def _process_batches(
    store: Store, verb: BulkVerb[State, Record], cursor: BatchCursor, outcome: BulkOutcome
) -> None:
    """Process the batches, each in its own transaction; Ctrl-C stops after the current one."""
    with Interrupts().active() as interrupts, _bar(outcome.matched, verb.text.verb) as forward:
        while (left := outcome.matched - outcome.looked_at) > 0:
            if interrupts.received is not None:
                outcome.stopped = True
                return
            with store.read() as tx:
                rows = cursor.next(tx, min(BATCH_SIZE, left))
            if not rows:
                return
            with store.write() as tx:
                batch = verb.apply_batch(tx, rows)
            outcome.add(batch, len(rows))
            forward(len(rows))


@contextmanager
def _bar(length: int, label: str) -> Iterator[Callable[[int], object]]:
    """A progress bar on standard error, for more than one batch at a terminal."""
    if length <= BATCH_SIZE or not sys.stderr.isatty():
        yield lambda _: None
        return
    with click.progressbar(
        length=length, label=visible(label), file=sys.stderr, show_pos=True
    ) as bar:
        yield bar.update


def _result(text: BulkText, outcome: BulkOutcome, done: str) -> Result:
    document = {
        "dry_run": False,
        "matched": outcome.matched,
        "done": outcome.done,
        "moved": outcome.gone,
        "failed": outcome.failed,
        "interrupted": outcome.stopped,
        "refused": [_failure_fields(each) for each in outcome.refused],
    }
    return Result(
        document,
        done if outcome.matched else text.none,
        notes=_notes(text, outcome),
        status=1 if outcome.stopped or outcome.failed else 0,
    )


def _notes(text: BulkText, outcome: BulkOutcome) -> Iterator[str]:
    if outcome.gone:
        yield f"Skipped {text.of(outcome.gone)} whose state changed meanwhile."
    for each in outcome.refused:
        yield f"{each.id}: {one_line(str(each.error), REASON_CHARS)}"
    if outcome.failed > len(outcome.refused):
        yield f"… and {outcome.failed - len(outcome.refused)} more"
    yield from dict.fromkeys(each.error.hint for each in outcome.refused)
    if outcome.stopped:
        left = text.of(outcome.matched - outcome.looked_at)
        yield f"Interrupted: {left} unchanged. Run the same command to continue."


def _failure_fields(failure: BulkFailure) -> dict[str, str]:
    error = failure.error
    return {"id": failure.id, "code": error.code, "message": str(error), "hint": error.hint}
