"""bullpen key: keys are made, listed and revoked; a secret is printed once."""

from __future__ import annotations

import pytest

from bullpen.core.access.keys import Scope, find_key
from bullpen.core.clock import DAY
from bullpen.core.settings import Settings
from bullpen.core.store.open import open_store
from tests.cli.command import Bullpen


def opens(bullpen: Bullpen, secret: str) -> bool:
    """Whether the API would let this secret in."""
    store = open_store(Settings.load(bullpen.environment()))
    with store.read() as tx:
        found = find_key(tx, secret)
    store.close()
    return found is not None


def test_a_key_is_printed_once_and_opens_until_it_is_revoked(on_both: Bullpen) -> None:
    made = on_both.ok("key", "add", "dashboard", "--scope", "read")
    secret = made.out.strip()
    assert made.out == f"{secret}\n"
    assert opens(on_both, secret)
    listed = on_both.ok("key", "list")
    assert "dashboard" in listed.out
    assert secret not in listed.out + made.err + on_both.ok("key", "list", "--json").out
    (key,) = on_both.ok("key", "list", "--json").json
    assert key["id"] in made.err
    on_both.ok("key", "revoke", key["id"])
    assert not opens(on_both, secret)
    assert "revoked" in on_both.ok("key", "list").out
    assert on_both.ok("key", "list", "--json").json[0]["valid"] is False


def test_scopes_agents_and_an_end_are_kept(bullpen: Bullpen) -> None:
    args = ("--scope", "claim", "--scope", "read", "--agent", "coder", "--days", "2", "--json")
    made = bullpen.ok("key", "add", "worker", *args).json
    assert made["scopes"] == [Scope.CLAIM, Scope.READ]
    assert made["agents"] == ["coder"]
    assert made["expires_at"] - made["created_at"] == 2 * DAY
    assert made["key"].startswith("bp_")
    (listed,) = bullpen.ok("key", "list", "--json").json
    assert listed == {name: value for name, value in made.items() if name != "key"}
    line = bullpen.ok("key", "list").out.splitlines()[1]
    assert "claim,read" in line
    assert "coder" in line
    assert "until" in line


@pytest.mark.parametrize(
    "args",
    [
        ("add", "x"),
        ("add", "x", "--scope", "everything"),
        ("add", "", "--scope", "read"),
        ("add", "x", "--scope", "read", "--agent", "Not A Name"),
        ("add", "x", "--scope", "read", "--days", "0"),
    ],
    ids=" ".join,
)
def test_what_is_no_key_is_a_mistake_of_usage(bullpen: Bullpen, args: tuple[str, ...]) -> None:
    result = bullpen("key", *args)
    assert result.status == 2
    assert result.out == ""
    assert bullpen.ok("key", "list", "--json").json == []


def test_a_key_that_does_not_exist_cannot_be_revoked(bullpen: Bullpen) -> None:
    result = bullpen("key", "revoke", "key_nonsense")
    assert result.status == 1
    assert "no key" in result.err
