"""The messages that a command is about: named one by one, or chosen by filters."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

import click

from bullpen.cli.bulk import Job, Words, run, show_job
from bullpen.cli.output import reading
from bullpen.cli.queue.filters import selection, up_to_now
from bullpen.cli.queue.lines import dead_rows, rows
from bullpen.core.queue.browse import Seen, look_up, of_numbers
from bullpen.core.queue.bulk import each_of
from bullpen.core.queue.walk import Found, Walk, ways_to
from bullpen.core.settings import Settings
from bullpen.core.states import MessageState
from bullpen.core.store.transaction import Transaction

FILTERS = ("agent", "error", "kind", "conversation", "channel", "sender", "since", "before")


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """What a person has said of which messages are meant, and of how."""

    message_ids: tuple[str, ...]
    filters: dict[str, Any]
    everything: bool
    state: str | None
    limit: int | None
    sure: bool
    dry_run: bool
    as_json: bool

    @classmethod
    def parse(cls, given: dict[str, Any]) -> Chosen:
        """The options of a command; nothing is meant by accident."""
        chosen = cls(
            message_ids=given["message_id"],
            filters={name: given[name] for name in FILTERS if name in given},
            everything=given["everything"],
            state=given["state"],
            limit=given["limit"],
            sure=given["yes"],
            dry_run=given["dry_run"],
            as_json=given["as_json"],
        )
        chosen._check()
        return chosen

    @property
    def narrow(self) -> bool:
        """Whether a filter was given."""
        return any(value is not None for value in self.filters.values())

    @property
    def whole_conversation(self) -> str | None:
        """The conversation, if nothing else narrows what is meant."""
        given = [name for name, value in self.filters.items() if value is not None]
        alone = given == ["conversation"] and not (self.state or self.limit)
        return self.filters["conversation"] if alone else None

    def _check(self) -> None:
        if self.message_ids and (self.narrow or self.everything or self.state or self.limit):
            raise click.UsageError("Name messages, or choose them by filters, not both.")
        if not (self.message_ids or self.narrow or self.everything):
            name = click.get_current_context().info_name
            raise click.UsageError(
                "Say which messages: their ids, filters as --agent or --since, or --all.\n"
                f"To look first: bullpen queue {name} --all --dry-run"
            )


def by_filters(
    settings: Settings,
    words: Words,
    states: Sequence[MessageState],
    verb: Callable[[Transaction, str], None],
    chosen: Chosen,
) -> None:
    """Do it to all that the filters choose, of those that are in these states now."""

    def pieces(tx: Transaction) -> Walk:
        wanted = up_to_now(tx.now, selection(tx.now, chosen.filters))
        return Walk(ways_to(tx, states, wanted), wanted)

    job = Job(
        words=words,
        pieces=pieces,
        do=lambda tx, found: each_of(tx, verb, found),
        rows=_table,
        limit=chosen.limit,
    )
    run(settings, job, sure=chosen.sure, dry_run=chosen.dry_run, as_json=chosen.as_json)


def show_named(
    settings: Settings, words: Words, allowed: Collection[MessageState], chosen: Chosen
) -> None:
    """Show the named ones, and to how many of them it could be done."""
    with reading(settings) as tx:
        found = [look_up(tx, each) for each in dict.fromkeys(chosen.message_ids)]
        listed = rows(found, tx.now)
    could = sum(each.status in allowed for each in found)
    show_job(words, could, listed, chosen.as_json)


def _table(tx: Transaction, found: Sequence[Found]) -> Sequence[Sequence[str]]:
    seen: list[Seen] = of_numbers(tx, [each.id for each in found])
    if all(each.status == MessageState.DEAD for each in seen):
        return dead_rows(seen, tx.now)
    return rows(seen, tx.now)
