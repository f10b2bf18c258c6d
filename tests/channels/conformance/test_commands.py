"""Commands end to end: what the owner can do from a chat, and whose work a command ends."""

from __future__ import annotations

import time

import pytest

from bullpen.channels import progress
from bullpen.channels.platform import Progress
from bullpen.core.answers.complete import complete
from bullpen.core.channels.chats import Verbosity
from bullpen.core.channels.senders import Tier
from bullpen.core.company import change_agent
from bullpen.core.events.append import append_event
from bullpen.core.events.base import MessageRef
from bullpen.core.events.conversation import AgentProgress
from bullpen.core.message import RunOutput
from bullpen.core.models import CHATS, LANES, SENDERS
from bullpen.core.queue.claim import claim
from bullpen.core.queue.manage import hold
from bullpen.core.roster.agents import Context
from bullpen.ops.services.supervisor import Supervisor
from tests.channels.conformance.conftest import Account
from tests.channels.conformance.test_access import STRANGER, code_of
from tests.channels.served import AGENT
from tests.conformance.verbs import rows
from tests.processor.working import eventually

OWNER = 3


@pytest.fixture(params=["settings", "tier"])
def owned(request: pytest.FixtureRequest, stopped: Account) -> Account:
    """A connected account whose owner is the third person, by the settings or by their tier."""
    if request.param == "tier":
        stopped.pair(OWNER, Tier.OWNER)
    else:
        settings = stopped.store.settings
        object.__setattr__(settings, "owner_channel", stopped.channel)
        object.__setattr__(settings, "owner_id", stopped.person(OWNER))
    stopped.start()
    stopped.up()
    return stopped


def order(account: Account, text: str, answer: str) -> None:
    """The owner writes a command, and gets this answer."""
    account.say(text, OWNER)
    chat = account.direct(OWNER)
    eventually(
        lambda: any(answer in each for each in account.posts(chat)),
        f"{answer}: {account.posts(chat)}",
    )


def lane_state(account: Account) -> str:
    return str(rows(account.store, LANES)[0]["state"])


def test_the_owner_runs_the_team_from_a_chat(owned: Account) -> None:
    owned.say("hello", STRANGER)
    order(owned, f"/approve {code_of(owned)} guest", "Approved")
    (let_in,) = (
        each for each in rows(owned.store, SENDERS) if each["sender_id"] == owned.person(STRANGER)
    )
    assert let_in["tier"] == "guest"
    order(owned, f"/pause {AGENT}", f"Paused @{AGENT}")
    assert lane_state(owned) == "paused"
    order(owned, f"/resume {AGENT}", f"Resumed @{AGENT}")
    assert lane_state(owned) == "active"
    owned.say("hello")
    owned.stored("hello")
    id_ = owned.messages()[0]["message_id"]
    with owned.store.write() as tx:
        hold(tx, id_, "it is old")
    for command, state in (("approve", "pending"), ("cancel", "cancelled")):
        owned.say(f"/{command} {id_}", OWNER)
        eventually(lambda state=state: owned.messages()[0]["status"] == state, state)  # type: ignore[misc]


def test_the_owner_allows_a_group_from_inside(owned: Account) -> None:
    if not owned.kind.groups:
        pytest.skip("the platform has no groups")
    group = owned.platform.chat(False)
    owned.say("/allow everyone", OWNER, chat=group)
    eventually(
        lambda: any(each["access"] == "everyone" for each in rows(owned.store, CHATS)), "allowed"
    )


def test_a_restart_reports_its_end(served: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    served.pair(OWNER, Tier.OWNER)
    order(served, "/restart", "Restarting the processor")
    order(served, "/whoami", "owner")  # nothing waits for it
    # No supervisor runs here.
    order(served, "/restart", "The restart of the processor failed")
    monkeypatch.setattr(Supervisor, "restart", lambda *given: None)
    order(served, "/restart", "Restarted the processor")


def test_nanobot_4777_stop_ends_ones_own_run_and_no_other(served: Account) -> None:
    if not served.kind.groups:
        pytest.skip("the platform has no groups")
    group = served.platform.chat(False)
    served.allow(group)
    served.say("mine", 1, chat=group)
    served.stored("mine")
    served.say("yours", 2, chat=group)
    served.stored("mine", "yours")
    served.say("elsewhere", 1)
    served.stored("mine", "yours", "elsewhere")
    with served.store.write() as tx:
        assert claim(tx, "worker-1") is not None
    served.say("/stop", 1, chat=group)
    eventually(lambda: any("Cancelled 1 message" in e for e in served.posts(group)), "stopped")
    states = {each["message"]: each["status"] for each in served.messages()}
    assert states["mine"] == "cancelled"
    assert states["yours"] in ("pending", "processing")
    assert states["elsewhere"] == "pending"
    served.say("/stop", 5, chat=group)
    eventually(lambda: any("no pending" in each for each in served.posts(group)), "nothing")
    assert {each["message"]: each["status"] for each in served.messages()} == states


def test_stop_ends_what_was_written_before_and_waits_for_no_run(served: Account) -> None:
    for text in ("first", "second"):
        served.say(text)
    served.stored("first", "second")
    with served.store.write() as tx:
        assert claim(tx, "worker-1", limit=1) is not None
    served.say("/stop")
    served.say("after")
    eventually(lambda: len(served.messages()) == 3, "the next message")
    states = [each["status"] for each in served.messages()]
    assert states == ["cancelled", "cancelled", "pending"]
    eventually(lambda: any("Cancelled 2 messages" in e for e in served.posts()), "the answer")


def test_a_member_cannot_reset_a_session_that_others_share(served: Account) -> None:
    served.say("/reset")
    eventually(lambda: any("share the session" in each for each in served.posts()), "refused")
    with served.store.write() as tx:
        change_agent(tx, AGENT, context=Context.CHAT)
    served.say("/new")
    eventually(lambda: any("here starts a new session" in each for each in served.posts()), "new")


def test_a_chat_chooses_how_much_progress_it_shows(
    served: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "VERBOSE_MS", 100)
    monkeypatch.setattr(progress, "POLL_SECONDS", 0.1)
    shown: list[Progress] = []
    right = progress.ProgressDisplay._show

    async def show(self: progress.ProgressDisplay, each: Progress) -> None:
        shown.append(each)
        await right(self, each)

    monkeypatch.setattr(progress.ProgressDisplay, "_show", show)
    if served.client_platform().progress_seconds is None:
        pytest.skip("the platform shows no progress")
    served.say("/progress quiet")
    eventually(lambda: any("quiet now" in each for each in served.posts()), "the answer")
    (chat,) = (each for each in rows(served.store, CHATS) if each["verbosity"])
    assert chat["verbosity"] == Verbosity.QUIET
    served.say("hello")
    served.stored("hello")
    with served.store.write() as tx:
        claimed = claim(tx, "worker-1")
    assert claimed is not None
    time.sleep(0.5)  # some looks at the state
    with served.store.write() as tx:
        complete(tx, claimed, RunOutput(text="hello back"), ())
    eventually(lambda: any("hello back" in each for each in served.posts()), "the answer")
    assert shown == []
    served.say("/progress verbose")
    eventually(lambda: any("verbose now" in each for each in served.posts()), "the answer")
    served.say("again")
    eventually(lambda: len(served.messages()) == 2, "the second message")
    with served.store.write() as tx:
        claimed = claim(tx, "worker-1")
        assert claimed is not None
        message = claimed.messages[0]
        about = MessageRef(message.agent, message.conversation_id, message.message_id)
        append_event(tx, AgentProgress(about, text="reads\nthe files"))
    eventually(lambda: any(each.text == "reads the files" for each in shown), f"{shown}")
