"""kill -9 at every statement of every verb's transaction, one by one, on both stores."""

from __future__ import annotations

import itertools
import signal

import pytest

from bullpen.core.settings import Settings
from tests.crash.account import check_integrity, dump, wait_for_backends
from tests.crash.children import Children
from tests.crash.transactions import CUTS, die_at_statement
from tests.crash.work import open_lanes
from tests.stores import START, FakeClock, Stores

NEVER = 1_000_000
LEAST = {"enqueue": 10, "claim": 4, "finish": 25, "death": 12, "reap": 10}
"""So many statements there are at least: or else the cutting would have cut nothing."""


@pytest.mark.parametrize("name", CUTS)
def test_kill_9_at_any_statement_changes_nothing_and_the_same_again_does_it(
    stores: Stores, settings: Settings, children: Children, name: str
) -> None:
    with stores.opened(settings, FakeClock()) as store:
        argument = CUTS[name].prepare(store)
        before = dump(store)
        for statement in itertools.count(1):
            code = children.run(die_at_statement, settings, START, name, argument, statement, False)
            if code == 0:
                break
            assert code == -signal.SIGKILL
            # A server that has not noticed the death keeps the locks, and claims skip them.
            wait_for_backends(store)
            assert dump(store) == before, f"the death before statement {statement} left something"
        assert dump(store) != before
        assert statement > LEAST.get(name, 2)
        check_integrity(store)


@pytest.mark.postgres
@pytest.mark.parametrize("kind", ["postgresql"])
@pytest.mark.parametrize("name", CUTS)
def test_kill_9_while_the_commit_is_on_its_way_leaves_all_or_nothing(
    stores: Stores, settings: Settings, children: Children, name: str
) -> None:
    with stores.opened(settings, FakeClock()) as store:
        argument = CUTS[name].prepare(store)
        before = dump(store)
        code = children.run(die_at_statement, settings, START, name, argument, NEVER, True)
        assert code == -signal.SIGKILL
        wait_for_backends(store)
        after = dump(store)
    if after == before:
        assert children.run(die_at_statement, settings, START, name, argument, NEVER, False) == 0
        return
    # What was done is done whole: the same transaction, not cut, changes just the same tables.
    whole = {table for table in after if after[table] != before[table]}
    fresh = stores.settings("postgresql")
    with stores.opened(fresh, FakeClock()) as other:
        open_lanes(other)
        argument = CUTS[name].prepare(other)
        before = dump(other)
        children.run(die_at_statement, fresh, START, name, argument, NEVER, False)
        after = dump(other)
    assert {table for table in after if after[table] != before[table]} == whole
