"""bulk: one verb for many responses; what has moved meanwhile keeps no other."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bullpen.core.queue.bulk import CHANGED_MEANWHILE, BulkFailure, BulkResult
from bullpen.core.queue.walk import RowRef
from bullpen.core.store.transaction import Transaction


def apply_to_responses(
    tx: Transaction, verb: Callable[[Transaction, int], None], found: Sequence[RowRef]
) -> BulkResult:
    """Do it to each of these responses, by their numbers: so no two wait for each other."""
    refused = []
    for number in sorted(each.id for each in found):
        try:
            verb(tx, number)
        except CHANGED_MEANWHILE as error:
            refused.append(BulkFailure(str(number), error))
    return BulkResult(len(found) - len(refused), tuple(refused))
