"""Edits, deletions and buttons, also while a run is at work on the message."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from bullpen.core.message import Claim
from bullpen.core.models import MESSAGES
from bullpen.core.queue.claim import claim
from tests.channels.conformance import driving
from tests.channels.conformance.conftest import Account, account
from tests.channels.conformance.kinds import KINDS, Kind
from tests.conformance.verbs import done, rows
from tests.processor.working import eventually
from tests.stores import Stores

EDITING = [name for name, kind in KINDS.items() if kind.edits]
OFFER = "is already working on the text before your edit"


@pytest.fixture
def editing(served: Account) -> Account:
    """A connected account of a platform that has edits."""
    if not served.kind.edits:
        pytest.skip("the platform has no edits")
    return served


@contextmanager
def policy(stores: Stores, kind: Kind, edits: str) -> Iterator[Account]:
    """A connected account with this policy for edits."""
    with account(stores, stores.settings("sqlite"), kind, edits=edits) as made:
        made.start()
        made.up()
        yield made


def at_work(served: Account, chat: str = "") -> tuple[str, Claim]:
    """A message of the first person on which a run is at work."""
    id_ = served.say("helo", chat=chat)
    served.stored("helo")
    with served.store.write() as tx:
        claimed = claim(tx, "worker-1")
    assert claimed is not None
    return id_, claimed


def edit(served: Account, chat: str, message: str, text: str) -> None:
    """The author changes a message."""
    served.platform.edit(chat, message, text)


def offered(served: Account, chat: str) -> str:
    """The command below the offer to run the new text."""
    eventually(lambda: any(OFFER in each for each in served.posts(chat)), "the offer")
    return next(
        f"/rerun {each['message_id']}" for each in served.responses() if OFFER in each["message"]
    )


def test_an_edit_of_a_running_message_is_offered_and_run_once_by_its_command(
    editing: Account,
) -> None:
    id_, claimed = at_work(editing)
    edit(editing, editing.direct(), id_, "hello")
    command = offered(editing, editing.direct())
    assert editing.texts() == ["helo"]
    editing.say(command)
    editing.stored("helo", "hello")
    editing.say(command)
    editing.say("after")
    editing.stored("helo", "hello", "after")
    done(editing.store, claimed.token)


def test_the_button_of_an_offer_runs_the_new_text(editing: Account) -> None:
    id_, _ = at_work(editing)
    edit(editing, editing.direct(), id_, "hello")
    driving.press(editing, editing.direct(), 1, offered(editing, editing.direct()))
    editing.stored("helo", "hello")


def test_buttons_and_commands_of_an_offer_are_refused_to_other_people(editing: Account) -> None:
    group = editing.platform.chat(False)
    editing.allow(group)
    id_, _ = at_work(editing, group)
    edit(editing, group, id_, "hello")
    command = offered(editing, group)
    driving.press(editing, group, 2, command)
    eventually(
        lambda: any("no edit of yours" in each for each in editing.posts(group)), "the refusal"
    )
    editing.say(command, 2, chat=group)
    editing.say(command, 2)
    eventually(lambda: any("no edit" in each for each in editing.posts(editing.direct(2))), "too")
    driving.press(editing, group, 9, command)  # a stranger
    editing.say("after", 2)
    editing.stored("helo", "after")


@pytest.mark.parametrize("name", EDITING)
def test_with_rerun_the_new_text_is_run_after_the_old_one(stores: Stores, name: str) -> None:
    with policy(stores, KINDS[name], "rerun") as served:
        id_, _ = at_work(served)
        edit(served, served.direct(), id_, "hello")
        served.stored("helo", "hello")
        assert not served.posts()


@pytest.mark.parametrize("name", EDITING)
def test_with_ignore_the_edit_of_a_running_message_changes_nothing(
    stores: Stores, name: str
) -> None:
    with policy(stores, KINDS[name], "ignore") as served:
        id_, _ = at_work(served)
        edit(served, served.direct(), id_, "hello")
        served.say("after")
        served.stored("helo", "after")
        assert not served.responses()


def test_a_message_that_comes_again_after_its_edit_is_the_same_message(editing: Account) -> None:
    id_, _ = at_work(editing)
    edit(editing, editing.direct(), id_, "hello")
    offered(editing, editing.direct())
    editing.platform.redeliver(id_)
    editing.say("after")
    editing.stored("helo", "after")
    assert len([each for each in editing.responses() if OFFER in each["message"]]) == 1


def test_an_edit_of_an_answered_message_changes_nothing(editing: Account) -> None:
    id_, claimed = at_work(editing)
    done(editing.store, claimed.token)
    edit(editing, editing.direct(), id_, "hello")
    editing.say("after")
    eventually(lambda: editing.texts()[-1] == "after", "the next message")
    assert "hello" not in editing.texts()


def test_a_deleted_message_that_waits_is_cancelled_and_a_run_continues(editing: Account) -> None:
    if editing.kind.channel == "telegram":
        pytest.skip("the platform tells bots of no deletions")
    running, _ = at_work(editing)
    waits = editing.say("second")
    editing.stored("helo", "second")
    for each in (running, waits):
        editing.platform.delete(editing.direct(), each)
    editing.say("after")
    editing.stored("helo", "second", "after")
    states = [each["status"] for each in rows(editing.store, MESSAGES)]
    assert states == ["processing", "cancelled", "pending"]
