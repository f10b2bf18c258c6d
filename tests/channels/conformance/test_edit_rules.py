"""A person changes a message that was taken in: nothing is lost, and no rule is passed by."""

from __future__ import annotations

import json

import pytest

from bullpen.core.channels.senders import Tier
from bullpen.core.models import CHAT_MESSAGES
from bullpen.core.queue.claim import claim
from bullpen.core.queue.manage import hold
from bullpen.core.roster.teams import Team, add_team
from tests.channels.conformance.conftest import Account
from tests.channels.conformance.test_files import PNG
from tests.channels.served import AGENT
from tests.conformance.verbs import hire, rows
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


def test_an_edit_changes_a_message_for_several_agents_at_each_of_them(editing: Account) -> None:
    message = editing.say("[@coder: old] [@writer: old]")
    editing.stored("old", "old")
    edit(editing, message, "[@coder: new] [@writer: newer]")
    becomes(editing, (AGENT, "new"), ("writer", "newer"))
    hire(editing.store, "tester")
    edit(editing, message, "[@tester,writer: to others]")
    becomes(editing, ("writer", "to others"), ("tester", "to others"))
    edit(editing, message, "to nobody in particular")
    becomes(editing, *((each, "to nobody in particular") for each in ("writer", "tester")))


def test_of_a_message_for_several_agents_only_what_a_run_is_at_work_on_is_offered(
    editing: Account,
) -> None:
    message = editing.say("[@coder,writer: old]")
    editing.stored("old", "old")
    with editing.store.write() as tx:
        claimed = claim(tx, "worker-1")
    assert claimed is not None
    busy, idle = claimed.agent, "writer" if claimed.agent == AGENT else AGENT
    edit(editing, message, "[@coder,writer: new]")
    eventually(lambda: any("already working" in each for each in editing.posts()), "the offer")
    assert f"@{busy} is already working" in editing.posts()[0]
    assert sorted(waiting(editing)) == sorted([(busy, "old"), (idle, "new")])
    (offer,) = (each["message_id"] for each in editing.responses())
    for _ in range(2):
        editing.say(f"/rerun {offer}")
    editing.say("after")
    expected = sorted([(busy, "old"), (idle, "new"), (busy, "new"), (AGENT, "after")])
    eventually(lambda: sorted(waiting(editing)) == expected, f"{expected}: {editing.messages()}")


def test_an_edit_of_a_post_in_a_room_changes_the_post_and_each_members_copy(
    editing: Account,
) -> None:
    with editing.store.write() as tx:
        add_team(tx, Team(id="dev", name="Dev", leader=AGENT, members=(AGENT, "writer")))
    message = editing.say("[#dev: old]")
    editing.stored("old", "old")
    edit(editing, message, "[#dev: new]")
    becomes(editing, (AGENT, "new"), ("writer", "new"))
    assert [each["message"] for each in rows(editing.store, CHAT_MESSAGES)] == ["new"]


def test_a_deleted_message_is_cancelled_at_each_of_its_agents(editing: Account) -> None:
    if editing.kind.channel == "telegram":
        pytest.skip("the platform tells bots of no deletions")
    message = editing.say("[@coder,writer: old]")
    editing.stored("old", "old")
    editing.platform.delete(editing.direct(), message)
    becomes(editing)


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
    before, left = sorted(editing.messages(), key=lambda each: each["status"])
    assert (before["status"], left["status"]) == ("cancelled", "held")
    assert left["conversation_id"] == before["message_id"]
    assert left["conversation_at"] == before["created_at"] < left["created_at"]


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
