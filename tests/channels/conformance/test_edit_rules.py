"""A person changes a message that was taken in: nothing is lost, and no rule is passed by."""

from __future__ import annotations

import json

import pytest

from bullpen.core.channels.senders import Tier
from bullpen.core.queue.claim import claim
from bullpen.core.queue.manage import hold
from tests.channels.conformance.conftest import Account
from tests.channels.conformance.test_files import PNG
from tests.channels.served import AGENT
from tests.conformance.verbs import hire
from tests.processor.working import eventually


@pytest.fixture
def editing(served: Account) -> Account:
    """A connected account whose people can edit, with a second agent."""
    if not served.kind.edits:
        pytest.skip("the platform has no edits")
    hire(served.store, "writer")
    return served


def edit(account: Account, message: str, text: str, number: int = 1) -> None:
    """A person edits a message in their direct chat."""
    account.platform.edit(account.direct(number), message, text)


def waiting(account: Account) -> list[tuple[str, str]]:
    """The agents and texts of the messages that are not cancelled."""
    return [
        (each["agent"], each["message"])
        for each in account.messages()
        if each["status"] != "cancelled"
    ]


def becomes(account: Account, *expected: tuple[str, str]) -> None:
    """Wait until these agents have these texts."""
    eventually(lambda: waiting(account) == list(expected), f"{expected}: {account.messages()}")


def test_an_edit_of_a_message_that_waits_changes_its_text(editing: Account) -> None:
    message = editing.say("old text")
    editing.stored("old text")
    edit(editing, message, "new text")
    becomes(editing, (AGENT, "new text"))


def test_cve_2026_28392_the_edit_of_a_guest_addresses_no_other_agent(editing: Account) -> None:
    editing.pair(2, Tier.GUEST)
    message = editing.say("old text", 2)
    editing.stored("old text")
    edit(editing, message, "@writer new text", 2)
    becomes(editing, (AGENT, "@writer new text"))


def test_the_edit_of_a_blocked_person_changes_nothing(editing: Account) -> None:
    message = editing.say("old text", 2)
    editing.stored("old text")
    editing.pair(2, Tier.BLOCKED)
    edit(editing, message, "new text", 2)
    editing.say("next")
    editing.stored("old text", "next")


@pytest.mark.parametrize("text", ["new text", "@writer new text"])
def test_an_edit_keeps_the_files_of_its_message(editing: Account, text: str) -> None:
    message = editing.say("old text", files=[("photo.png", PNG)])
    eventually(lambda: any(each["files"] for each in editing.messages()), "the file is there")
    eventually(lambda: all(each["ready"] for each in editing.messages()), "no message waits")
    if not any(each["message"] == "old text" and each["files"] for each in editing.messages()):
        pytest.skip("the file is a message of its own")
    edit(editing, message, text)
    becomes(editing, ("writer" if text.startswith("@") else AGENT, "new text"))
    (left,) = (each for each in editing.messages() if each["status"] != "cancelled")
    assert len(json.loads(left["files"])) == 1


def test_a_held_message_stays_held_when_it_is_addressed_to_another_agent(editing: Account) -> None:
    message = editing.say("old text")
    editing.stored("old text")
    with editing.store.write() as tx:
        hold(tx, editing.messages()[0]["message_id"], "it is old")
    edit(editing, message, "@writer new text")
    becomes(editing, ("writer", "new text"))
    (left,) = (each for each in editing.messages() if each["status"] != "cancelled")
    assert left["status"] == "held"


def test_an_edit_that_names_no_agent_is_answered(editing: Account) -> None:
    message = editing.say("old text")
    editing.stored("old text")
    edit(editing, message, "@nobody new text")
    eventually(lambda: any("not accepted" in each for each in editing.posts()), "the answer")
    assert editing.texts() == ["old text"]


def test_the_offer_to_run_an_edit_of_a_guest_keeps_to_its_agent(editing: Account) -> None:
    editing.pair(2, Tier.GUEST)
    message = editing.say("old text", 2)
    editing.stored("old text")
    with editing.store.write() as tx:
        assert claim(tx, "worker-1") is not None
    edit(editing, message, "@writer new text", 2)
    eventually(lambda: any("already working" in e for e in editing.posts(editing.direct(2))), "")
    (offer,) = (each["message_id"] for each in editing.responses())
    editing.say(f"/rerun {offer}", 1)
    eventually(lambda: any("no edit of yours" in each for each in editing.posts()), "refused")
    editing.say(f"/rerun {offer}", 2)
    becomes(editing, (AGENT, "old text"), (AGENT, "@writer new text"))
