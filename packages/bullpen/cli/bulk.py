"""One verb for many messages or responses: selection, question, progress and result."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

import click

from bullpen.cli.command import write_transaction
from bullpen.cli.interrupts import Interrupts
from bullpen.cli.output import confirm, one_line, print_json, print_result, print_table
from bullpen.core.bulk import CHANGED_MEANWHILE, BulkFailure, BulkResult
from bullpen.core.errors import BullpenError
from bullpen.core.settings import Settings
from bullpen.core.store.base import Store
from bullpen.core.store.open import open_store
from bullpen.core.store.transaction import Transaction

MAX_REFUSED_SHOWN = 20
"""So many are shown of what would be done, and of what was not."""
REASON_CHARS = 160


@dataclass(slots=True)
class BulkOutcome:
    """How far it came."""

    matched: int
    done: int = 0
    looked_at: int = 0
    moved: int = 0
    """With so many somebody else was quicker."""
    failed: int = 0
    """To so many it may not be done."""
    stopped: bool = False
    refused: list[BulkFailure] = field(default_factory=list)

    def add(self, batch: BulkResult, size: int, *, named: bool = False) -> None:
        """Count what came of a batch; what was named ought to have been as it was thought."""
        self.looked_at += size
        self.done += batch.done
        for each in batch.refused:
            if isinstance(each.error, CHANGED_MEANWHILE) and not named:
                self.moved += 1
                continue
            self.failed += 1
            if len(self.refused) < MAX_REFUSED_SHOWN:
                self.refused.append(each)

    @property
    def gone(self) -> int:
        """How many of what was counted was met no more, or moved."""
        unmet = 0 if self.stopped else self.matched - self.looked_at
        return unmet + self.moved


def print_summary(
    done: str, of: Callable[[int], str], none: str, outcome: BulkOutcome, as_json: bool
) -> None:
    """Say what was done and what was not; the command fails if something was to be and was not."""
    document = {
        "dry_run": False,
        "matched": outcome.matched,
        "done": outcome.done,
        "moved": outcome.gone,
        "failed": outcome.failed,
        "interrupted": outcome.stopped,
        "refused": [_fields(each) for each in outcome.refused],
    }
    print_result(as_json, document, done if outcome.matched else none)
    if outcome.gone:
        click.echo(f"{of(outcome.gone)} had moved meanwhile", err=True)
    _say_refused(outcome)
    if outcome.stopped:
        left = of(outcome.matched - outcome.looked_at)
        click.echo(f"Stopped by hand: {left} left as before. The same command goes on.", err=True)
    if outcome.stopped or outcome.failed:
        raise click.exceptions.Exit(1)


def _say_refused(outcome: BulkOutcome) -> None:
    hints = []
    for each in outcome.refused:
        click.echo(f"{each.id}: {one_line(str(each.error), REASON_CHARS)}", err=True)
        hints.append(each.error.hint)
    if outcome.failed > len(outcome.refused):
        click.echo(f"… and {outcome.failed - len(outcome.refused)} more", err=True)
    for hint in dict.fromkeys(hints):
        click.echo(hint, err=True)


def _fields(refused: BulkFailure) -> dict[str, str]:
    error = refused.error
    return {"id": refused.id, "code": error.code, "message": str(error), "hint": error.hint}


# Work on many things at once: shown, asked for, done in batches, and summed up.
#
# Each batch is a transaction of its own. Ctrl-C ends the work after the batch that is under way.

BATCH_SIZE = 100

Item = TypeVar("Item")


class BatchSource(Protocol[Item]):
    """What is meant, a piece at a time."""

    def count(self, tx: Transaction) -> int:
        """How many there are."""
        ...

    def next(self, tx: Transaction, limit: int) -> list[Item]:
        """The next ones; none if there are no more."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkText:
    """How the work is spoken of."""

    noun: str
    verb: str
    """As in `Retry 3 messages?`."""
    done: str
    """As in `3 messages wait again`."""
    done_one: str
    """As in `1 message waits again`."""
    none: str
    """What to say, and to do next, if nothing is meant."""
    warning: str = ""
    """What must be known before it is done."""

    def of(self, count: int) -> str:
        """So many of them."""
        return f"{count} {self.noun}{'' if count == 1 else 's'}"

    def done_text(self, count: int) -> str:
        """What was done to so many."""
        return f"{self.of(count)} {self.done_one if count == 1 else self.done}"


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkJob(Generic[Item]):
    """What is to be done to what is meant by filters."""

    words: BulkText
    pieces: Callable[[Transaction], BatchSource[Item]]
    do: Callable[[Transaction, Sequence[Item]], BulkResult]
    rows: Callable[[Transaction, Sequence[Item]], Sequence[Sequence[str]]]
    """A table of some of them, with its heading."""
    limit: int | None = None


def run_bulk(
    settings: Settings, job: BulkJob[Item], *, sure: bool, dry_run: bool, as_json: bool
) -> None:
    """Do it to all that is meant, once a person has agreed."""
    words = job.words
    with closing(open_store(settings)) as store:
        with store.read() as tx:
            pieces = job.pieces(tx)
            matched = pieces.count(tx)
            if job.limit is not None:
                matched = min(matched, job.limit)
            if dry_run:
                first = pieces.next(tx, min(MAX_REFUSED_SHOWN, matched)) if matched else []
                print_plan(words, matched, job.rows(tx, first), as_json)
                return
        if matched:
            confirm(f"{words.warning}{words.verb} {words.of(matched)}", sure, many=True)
        outcome = BulkOutcome(matched)
        try:
            _process_batches(store, job, pieces, outcome)
        except (BullpenError, KeyboardInterrupt):
            click.echo(f"{words.done_text(outcome.done)} before it broke off", err=True)
            raise
    print_summary(words.done_text(outcome.done), words.of, words.none, outcome, as_json)


def run_each(
    settings: Settings,
    words: BulkText,
    ids: Sequence[str],
    verb: Callable[[Transaction, str], None],
    *,
    as_json: bool,
) -> None:
    """Do it to each of these by itself; of one alone its error is the command's."""
    named = list(dict.fromkeys(ids))
    outcome = BulkOutcome(len(named))
    for each in named:
        try:
            with write_transaction(settings) as tx:
                verb(tx, each)
        except BullpenError as error:
            if len(named) == 1:
                raise
            outcome.add(BulkResult(0, (BulkFailure(each, error),)), 1, named=True)
        else:
            outcome.add(BulkResult(1, ()), 1)
    said = f"{named[0]} {words.done_one}" if len(named) == 1 else words.done_text(outcome.done)
    print_summary(said, words.of, words.none, outcome, as_json)


def _process_batches(
    store: Store, job: BulkJob[Item], pieces: BatchSource[Item], outcome: BulkOutcome
) -> None:
    with Interrupts().active() as interrupts, _bar(outcome.matched, job.words.verb) as forward:
        while (left := outcome.matched - outcome.looked_at) > 0:
            if interrupts.received is not None:
                outcome.stopped = True
                return
            with store.read() as tx:
                items = pieces.next(tx, min(BATCH_SIZE, left))
            if not items:
                return
            with store.write() as tx:
                batch = job.do(tx, items)
            outcome.add(batch, len(items))
            forward(len(items))


def print_plan(words: BulkText, count: int, rows: Sequence[Sequence[str]], as_json: bool) -> None:
    """Show what would be done, of some of it each."""
    heading, *found = rows
    if as_json:
        names = [name.lower() for name in heading]
        listed = [dict(zip(names, row, strict=True)) for row in found]
        print_json({"dry_run": True, "matched": count, "first": listed})
        return
    print_table(rows, words.none)
    if count > len(found):
        click.echo(f"… and {count - len(found)} more", err=True)
    if count:
        click.echo(
            f"Without --dry-run: {words.verb} {words.of(count)}. Nothing was done.", err=True
        )


@contextmanager
def _bar(length: int, label: str) -> Iterator[Callable[[int], object]]:
    """A bar on standard error for work that takes long, where somebody sees it."""
    if length <= BATCH_SIZE or not sys.stderr.isatty():
        yield lambda _: None
        return
    with click.progressbar(length=length, label=label, file=sys.stderr, show_pos=True) as bar:
        yield bar.update
