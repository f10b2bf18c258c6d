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
    bullpen.ok("agent", "add", "coder", "--provider", "echo")
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
    assert "key 'key_nonsense' does not exist" in result.err


def test_a_key_is_revoked_by_its_name(bullpen: Bullpen) -> None:
    made = bullpen.ok("key", "add", "laptop", "--scope", "read")
    assert bullpen("key", "revoke", "laptpo").status == 1
    assert "Did you mean 'laptop'?" in bullpen("key", "revoke", "laptpo").err
    bullpen.ok("key", "rm", "laptop")
    assert not opens(bullpen, made.out.strip())


def test_a_name_of_several_keys_is_refused_and_lists_their_ids(bullpen: Bullpen) -> None:
    for _ in range(2):
        bullpen.ok("key", "add", "laptop", "--scope", "read")
    ids = [each["id"] for each in bullpen.ok("key", "list", "--json").json]
    refused = bullpen("key", "revoke", "laptop")
    assert refused.status == 2
    assert "2 keys are named 'laptop'" in refused.err
    assert all(each in refused.err for each in ids)
    bullpen.ok("key", "revoke", ids[0])
    bullpen.ok("key", "revoke", "laptop")  # only one is left that is valid
    assert not any(each["valid"] for each in bullpen.ok("key", "list", "--json").json)


def test_a_key_for_an_agent_that_does_not_exist_is_refused(bullpen: Bullpen) -> None:
    refused = bullpen("key", "add", "worker", "--scope", "claim", "--agent", "nobody")
    assert (refused.status, refused.out) == (1, "")
    assert "nobody" in refused.err
    assert bullpen.ok("key", "list", "--json").json == []
