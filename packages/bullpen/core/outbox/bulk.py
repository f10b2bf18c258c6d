"""bulk: one verb for many responses; what has moved meanwhile keeps no other."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bullpen.core.queue.bulk import MOVED, Batch, Refused
from bullpen.core.queue.walk import Found
from bullpen.core.store.transaction import Transaction


def each_response(
    tx: Transaction, verb: Callable[[Transaction, int], None], found: Sequence[Found]
) -> Batch:
    """Do it to each of these responses, by their numbers: so no two wait for each other."""
    refused = []
    for number in sorted(each.id for each in found):
        try:
            verb(tx, number)
        except MOVED as error:
            refused.append(Refused(str(number), error))
    return Batch(len(found) - len(refused), tuple(refused))
