"""What one key does with others: nothing that it may not do itself."""

from __future__ import annotations

import pytest

from bullpen.core.access.keys import (
    OWNER_KEY,
    Key,
    Scope,
    add_key,
    add_key_as,
    find_key,
    list_keys_as,
    revoke_key_as,
)
from bullpen.core.access.login import create_login_link, redeem_login_link
from bullpen.core.clock import DAY
from bullpen.core.errors import BadKey, OutOfReach, ScopeTooSmall, UnknownKey
from bullpen.core.store.base import Store
from bullpen.core.store.transaction import Transaction

READ = (Scope.READ,)


def key(
    tx: Transaction,
    *scopes: Scope,
    agents: tuple[str, ...] | None = None,
    expires_at: int | None = None,
) -> Key:
    """A key that asks."""
    return add_key(tx, "asks", scopes, agents, expires_at)[0]


def test_no_key_makes_one_with_a_scope_that_it_has_not(store: Store) -> None:
    with store.write() as tx:
        for scopes in ((Scope.CLAIM,), (Scope.READ, Scope.ADMIN)):
            with pytest.raises(ScopeTooSmall):
                add_key_as(tx, key(tx, Scope.READ), "more", scopes)
        made, secret = add_key_as(tx, key(tx, Scope.READ), "as much", READ)
        assert made.scopes == {Scope.READ}
        assert find_key(tx, secret) is not None
        add_key_as(tx, key(tx, Scope.ADMIN), "all", tuple(Scope))


def test_no_key_makes_one_for_an_agent_that_it_does_not_reach(store: Store) -> None:
    with store.write() as tx:
        mine = key(tx, Scope.ADMIN, agents=("a", "b"))
        for agents in (None, ("c",), ("a", "c")):
            with pytest.raises(OutOfReach):
                add_key_as(tx, mine, "more", READ, agents)
        assert add_key_as(tx, mine, "less", READ, ("a",))[0].agents == frozenset("a")
        assert add_key_as(tx, OWNER_KEY, "all", READ)[0].agents is None


def test_no_key_makes_one_that_lasts_longer_but_a_browsers_end_is_not_its_owners(
    store: Store,
) -> None:
    with store.write() as tx:
        end = tx.now + DAY
        short = key(tx, Scope.ADMIN, expires_at=end)
        for expires_at in (None, end + 1):
            with pytest.raises(BadKey):
                add_key_as(tx, short, "longer", READ, None, expires_at)
        add_key_as(tx, short, "as long", READ, None, end)
        found = redeem_login_link(tx, create_login_link(tx)[0], "firefox")
        assert found is not None
        assert add_key_as(tx, found[0], "for ever", READ)[0].expires_at is None


def test_a_key_knows_and_closes_those_within_its_reach(store: Store) -> None:
    with store.write() as tx:
        mine = key(tx, Scope.ADMIN, agents=("a", "b"))
        inside, _ = add_key(tx, "inside", READ, ("a",))
        over, secret = add_key(tx, "over", READ, ("a", "c"))
        everywhere, _ = add_key(tx, "everywhere", READ)
        assert {each.id for each in list_keys_as(tx, mine)} == {mine.id, inside.id}
        assert {each.id for each in list_keys_as(tx, OWNER_KEY)} == {
            mine.id,
            inside.id,
            over.id,
            everywhere.id,
        }
        for other in (over.id, everywhere.id, "nothing", "\0", "\ud800"):
            with pytest.raises(UnknownKey):
                revoke_key_as(tx, mine, other)
        revoke_key_as(tx, mine, inside.id)
        assert find_key(tx, secret) is not None
        revoke_key_as(tx, OWNER_KEY, over.id)
        assert find_key(tx, secret) is None
