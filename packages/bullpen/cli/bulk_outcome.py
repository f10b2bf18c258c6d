"""What came of work on many things, told to a person or a program."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import click

from bullpen.cli.output import print_result
from bullpen.cli.visible import one_line
from bullpen.core.queue.bulk import CHANGED_MEANWHILE, BulkFailure, BulkResult

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
