"""Two accounts of one platform side by side: each with its own people, agent and answers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from bullpen.core.channels.senders import Tier
from bullpen.core.models import CHANNEL_HEALTH, SENDERS
from bullpen.core.settings.accounts import AccountValues
from tests.channels.conformance.conftest import Account
from tests.channels.conformance.kinds import KINDS, Kind
from tests.channels.served import AGENT
from tests.conformance.verbs import hire, rows
from tests.processor.working import eventually
from tests.stores import Stores

OTHER_AGENT = "writer"


@contextmanager
def two_accounts(stores: Stores, kind: Kind) -> Iterator[tuple[Account, Account]]:
    """Two connected accounts with a database in common, each of another bot."""
    sage = f"{kind.channel}-sage"
    with kind.make() as platform, kind.make() as other:
        values = {f"{kind.channel}.{name}": each for name, each in platform.settings().items()}
        values |= {f"{sage}.{name}": each for name, each in other.settings().items()}
        values[f"{sage}.default_agent"] = OTHER_AGENT
        settings = replace(
            stores.settings("sqlite"), accounts=AccountValues(values), default_agent=AGENT
        )
        with stores.opened(settings) as store:
            hire(store, AGENT)
            hire(store, OTHER_AGENT)
            first, second = Account(store, kind, platform), Account(store, kind, other)
            second.channel = sage
            try:
                for each in (first, second):
                    each.pair(1)
                    each.start()
                eventually(
                    lambda: [e["state"] for e in rows(store, CHANNEL_HEALTH)] == ["up", "up"],
                    "both are up",
                )
                yield first, second
            finally:
                first.stop()
                second.stop()


@pytest.mark.parametrize("name", KINDS)
def test_oc_56051_the_account_that_was_asked_answers_with_its_own_agent(
    stores: Stores, name: str
) -> None:
    with two_accounts(stores, KINDS[name]) as (first, second):
        first.say("to the first")
        first.stored("to the first")
        second.say("to the second")
        first.stored("to the first", "to the second")
        found = [(each["channel"], each["agent"]) for each in first.messages()]
        assert found == [(first.channel, AGENT), (second.channel, OTHER_AGENT)]
        for _ in found:
            answer_next(first)
        first.seen("re to the first")
        second.seen("re to the second")


def answer_next(account: Account) -> None:
    """Answer the message that is due with its own text."""
    from bullpen.core.answers.complete import complete
    from bullpen.core.message import RunOutput
    from bullpen.core.queue.claim import claim

    with account.store.write() as tx:
        claimed = claim(tx, "worker-1")
    assert claimed is not None
    with account.store.write() as tx:
        complete(tx, claimed, RunOutput(text=f"re {claimed.messages[0].message}"), ())


@pytest.mark.parametrize("name", KINDS)
def test_oc_28479_a_tier_and_a_failure_of_one_account_are_not_those_of_the_other(
    stores: Stores, name: str
) -> None:
    with two_accounts(stores, KINDS[name]) as (first, second):
        second.pair(1, Tier.BLOCKED)
        second.say("refused")
        second.say("from a stranger", 2)
        chat = second.direct(2)
        eventually(lambda: bool(second.posts(chat)), "the reply with the code")
        first.say("accepted")
        first.stored("accepted")
        tiers = {(each["channel"], each["sender_id"]): each["tier"] for each in senders(first)}
        assert tiers[first.channel, first.person(1)] == "member"
        assert tiers[second.channel, second.person(1)] == "blocked"
        assert (first.channel, first.person(2)) not in tiers
        second.platform.fail_next("revoked")
        second.respond("never", 2)
        eventually(lambda: states(first)[second.channel] == "down", "the second is down")
        first.ends(first.respond("still here"), "acked")
        assert states(first)[first.channel] == "up"


def senders(account: Account) -> list[dict[str, str]]:
    """All people, of both accounts."""
    return [dict(each) for each in rows(account.store, SENDERS)]


def states(account: Account) -> dict[str, str]:
    """The states of both accounts."""
    return {each["channel"]: each["state"] for each in rows(account.store, CHANNEL_HEALTH)}
