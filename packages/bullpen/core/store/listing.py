"""A growing table as it is looked through: by what its rows have in common, page by page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from functools import cache

from sqlalchemy import ColumnElement, Table, bindparam, select

from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction
from bullpen.core.text import check_text

MAX_ROW_ID = 1 << 62
"""No row has so high a number."""


class TablePager:
    """The rows of a table, in the columns of these names; of some tables only some rows."""

    def __init__(
        self,
        table: Table,
        names: Sequence[str],
        always: Callable[[], ColumnElement[bool]] | None = None,
    ) -> None:
        self._table = table
        self._always = always
        self._names = names
        self._statement = cache(self._made)

    def page(
        self,
        tx: Transaction,
        alike: Mapping[str, object],
        since: int | None,
        limit: int,
        upto: int = MAX_ROW_ID,
    ) -> list[tuple[object, ...]]:
        """The next rows after this number and up to another; without one the newest first.

        `alike` is what they have in common, by the names of columns; None is anything. Of several
        writers the lower number may come later: `settled` tells up to where that is over.
        """
        given = {
            name: value.value if isinstance(value, Enum) else value
            for name, value in alike.items()
            if value is not None
        }
        for value in given.values():
            check_text(str(value), tx.settings.message_bytes, "what is looked for")
        values: dict[str, object] = {**given, "limit": limit}
        if since is not None:
            values.update(since=since, upto=upto)
        return tx.all(self._statement(frozenset(given), since is not None), values)

    def _made(self, names: frozenset[str], forward: bool) -> Statement[tuple[object, ...]]:
        number = self._table.c.id
        alike = (self._table.c[name] == bindparam(name) for name in sorted(names))
        which = [*([] if self._always is None else [self._always()]), *alike]
        order = number.desc()
        if forward:
            which += [number > bindparam("since"), number <= bindparam("upto")]
            order = number.asc()
        return Statement(
            lambda: (
                select(*(self._table.c[name] for name in self._names))
                .where(*which)
                .order_by(order)
                .limit(bindparam("limit"))
            )
        )
