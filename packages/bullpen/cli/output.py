"""What commands print: one JSON document, or lines for a person."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, is_dataclass
from typing import Any, TypeVar

import click

from bullpen.core.settings import Settings
from bullpen.core.store.open import open_store
from bullpen.core.store.transaction import Transaction

Function = TypeVar("Function", bound=Callable[..., Any])

as_json: Callable[[Function], Function] = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON document."
)

MOST = 1000
"""So many of anything are shown at once."""


def how_many(default: int = 20) -> Callable[[Function], Function]:
    """The option that says how many are shown at the most."""
    return click.option(
        "--limit",
        type=click.IntRange(1, MOST),
        default=default,
        show_default=True,
        help="How many.",
    )


@contextmanager
def writing(settings: Settings) -> Iterator[Transaction]:
    """A transaction on the store of these settings."""
    store = open_store(settings)
    try:
        with store.write() as tx:
            yield tx
    finally:
        store.close()


@contextmanager
def reading(settings: Settings) -> Iterator[Transaction]:
    """A transaction that only reads."""
    store = open_store(settings)
    try:
        with store.read() as tx:
            yield tx
    finally:
        store.close()


def show_json(found: object) -> None:
    """Print it as JSON; dataclasses as objects."""
    click.echo(json.dumps(_plain(found)))


def show_table(rows: Sequence[Sequence[str]], empty: str) -> None:
    """Print columns, the first row as the heading, or what to do if there is nothing."""
    if len(rows) < 2:
        click.echo(empty)
        return
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    for row in rows:
        click.echo(
            "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
        )


def _plain(found: object) -> object:
    if is_dataclass(found) and not isinstance(found, type):
        return asdict(found)
    if isinstance(found, list):
        return [_plain(each) for each in found]
    return found
