"""Work on many things at once: shown, asked for, done in batches, and summed up.

Each batch is a transaction of its own. Ctrl-C ends the work after the batch that is under way.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Generic, Protocol, TypeVar

import click

from bullpen.cli.bulk_outcome import SHOWN, Outcome, sum_up
from bullpen.cli.confirm import confirm
from bullpen.cli.output import show_json, show_table, writing
from bullpen.core.errors import BullpenError
from bullpen.core.queue.bulk import Batch, Refused
from bullpen.core.settings import Settings
from bullpen.core.store.base import Store
from bullpen.core.store.open import open_store
from bullpen.core.store.transaction import Transaction

BATCH = 100

Item = TypeVar("Item")


class Pieces(Protocol[Item]):
    """What is meant, a piece at a time."""

    def count(self, tx: Transaction) -> int:
        """How many there are."""
        ...

    def next(self, tx: Transaction, limit: int) -> list[Item]:
        """The next ones; none if there are no more."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
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

    def was_done(self, count: int) -> str:
        """What was done to so many."""
        return f"{self.of(count)} {self.done_one if count == 1 else self.done}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Job(Generic[Item]):
    """What is to be done to what is meant by filters."""

    words: Words
    pieces: Callable[[Transaction], Pieces[Item]]
    do: Callable[[Transaction, Sequence[Item]], Batch]
    rows: Callable[[Transaction, Sequence[Item]], Sequence[Sequence[str]]]
    """A table of some of them, with its heading."""
    limit: int | None = None


def run(settings: Settings, job: Job[Item], *, sure: bool, dry_run: bool, as_json: bool) -> None:
    """Do it to all that is meant, once a person has agreed."""
    words = job.words
    with closing(open_store(settings)) as store:
        with store.read() as tx:
            pieces = job.pieces(tx)
            matched = pieces.count(tx)
            if job.limit is not None:
                matched = min(matched, job.limit)
            if dry_run:
                first = pieces.next(tx, min(SHOWN, matched)) if matched else []
                show_job(words, matched, job.rows(tx, first), as_json)
                return
        if matched:
            confirm(f"{words.warning}{words.verb} {words.of(matched)}", sure, many=True)
        outcome = Outcome(matched)
        try:
            _work(store, job, pieces, outcome)
        except (BullpenError, KeyboardInterrupt):
            click.echo(f"{words.was_done(outcome.done)} before it broke off", err=True)
            raise
    sum_up(words.was_done(outcome.done), words.of, words.none, outcome, as_json)


def run_named(
    settings: Settings,
    words: Words,
    ids: Sequence[str],
    verb: Callable[[Transaction, str], None],
    *,
    as_json: bool,
) -> None:
    """Do it to each of these by itself; of one alone its error is the command's."""
    named = list(dict.fromkeys(ids))
    outcome = Outcome(len(named))
    for each in named:
        try:
            with writing(settings) as tx:
                verb(tx, each)
        except BullpenError as error:
            if len(named) == 1:
                raise
            outcome.add(Batch(0, (Refused(each, error),)), 1, named=True)
        else:
            outcome.add(Batch(1, ()), 1)
    said = f"{named[0]} {words.done_one}" if len(named) == 1 else words.was_done(outcome.done)
    sum_up(said, words.of, words.none, outcome, as_json)


def _work(store: Store, job: Job[Item], pieces: Pieces[Item], outcome: Outcome) -> None:
    with _interruptible() as stopped, _bar(outcome.matched, job.words.verb) as forward:
        while (left := outcome.matched - outcome.looked_at) > 0:
            if stopped():
                outcome.stopped = True
                return
            with store.read() as tx:
                items = pieces.next(tx, min(BATCH, left))
            if not items:
                return
            with store.write() as tx:
                batch = job.do(tx, items)
            outcome.add(batch, len(items))
            forward(len(items))


def show_job(words: Words, count: int, rows: Sequence[Sequence[str]], as_json: bool) -> None:
    """Show what would be done, of some of it each."""
    heading, *found = rows
    if as_json:
        names = [name.lower() for name in heading]
        listed = [dict(zip(names, row, strict=True)) for row in found]
        show_json({"dry_run": True, "matched": count, "first": listed})
        return
    show_table(rows, words.none)
    if count > len(found):
        click.echo(f"… and {count - len(found)} more", err=True)
    if count:
        click.echo(
            f"Without --dry-run: {words.verb} {words.of(count)}. Nothing was done.", err=True
        )


@contextmanager
def _interruptible() -> Iterator[Callable[[], bool]]:
    """Gives whether Ctrl-C was pressed; pressed once more it is as ever."""
    pressed = False

    def stop(_: int, __: FrameType | None) -> None:
        nonlocal pressed
        pressed = True
        signal.signal(signal.SIGINT, before)

    before = signal.signal(signal.SIGINT, stop)
    try:
        yield lambda: pressed
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _bar(length: int, label: str) -> Iterator[Callable[[int], object]]:
    """A bar on standard error for work that takes long, where somebody sees it."""
    if length <= BATCH or not sys.stderr.isatty():
        yield lambda _: None
        return
    with click.progressbar(length=length, label=label, file=sys.stderr, show_pos=True) as bar:
        yield bar.update
