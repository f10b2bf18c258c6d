"""The skill `schedule`: agents in their runs make schedules, with their own rights."""

from __future__ import annotations

import shlex
import time

import pytest

from bullpen.core.clock import HOUR, MINUTE
from bullpen.core.intake import submit
from bullpen.core.message import NewMessage, ReplyTo
from bullpen.core.roster.agents import Scheduling
from bullpen.core.roster.teams import Team, add_team
from bullpen.core.schedules.fire import run_schedule_now
from bullpen.core.schedules.model import Schedule, list_schedules
from bullpen.core.settings import Settings
from bullpen.core.store.base import Store
from tests.company.office import processors, wait_until_over, write
from tests.conformance.verbs import do, hire, responses


def ask(store: Store, text: str) -> None:
    """Ann writes from a chat of hers, and what she set off comes to its end."""
    new = NewMessage(
        agent="",
        message=text,
        channel="telegram",
        sender="Ann",
        sender_id="4711",
        reply_to=ReplyTo("-100", "7", "m1"),
    )
    with store.write() as tx:
        submit(tx, new)
    wait_until_over(store)


def schedules(store: Store) -> list[Schedule]:
    with store.read() as tx:
        return list_schedules(tx)


@pytest.mark.one_store
def test_an_agent_schedules_itself_and_its_answer_goes_to_who_asked(
    settings: Settings, store: Store
) -> None:
    hire(store, provider="claude")
    with processors(settings):
        start = time.time_ns() // 1_000_000
        later = shlex.quote("!say the build is green")
        ask(store, f"@coder !run bullpen schedule add {later} --in 1h --label build")
        (made,) = schedules(store)
        assert (made.agent, made.made_by, made.label) == ("coder", "agent:coder", "build")
        assert (made.message, made.sender) == ("!say the build is green", "Ann")
        assert (made.place.channel, made.place.sender_id) == ("telegram", "4711")
        assert made.place.reply_to == ReplyTo("-100", "7", "m1")
        assert made.due_at is not None
        assert start + HOUR <= made.due_at < start + HOUR + 5 * MINUTE
        with store.write() as tx:
            run_schedule_now(tx, made.id)
        wait_until_over(store)
        told = responses(store)[-1]
        assert (told["message"], told["channel"]) == ("the build is green", "telegram")
        assert (told["sender"], told["sender_id"]) == ("Ann", "4711")
        assert told["reply_to"] == str(ReplyTo("-100", "7", "m1"))
        ask(store, "@coder !run bullpen schedule list && bullpen schedule pause build")
        assert "build" in responses(store)[-1]["message"]
        assert schedules(store)[0].state == "paused"
        ask(store, "@coder !run bullpen schedule remove build")
        assert schedules(store) == []


@pytest.mark.one_store
def test_an_agent_cannot_do_what_another_may(settings: Settings, store: Store) -> None:
    hire(store, provider="claude")
    hire(store, "tester", provider="claude", scheduling=Scheduling.TEAM)
    hire(store, "lazy", provider="claude", scheduling=Scheduling.NONE)
    members = ("coder", "tester")
    do(store, add_team, Team(id="dev", leader="coder", members=members))
    with processors(settings):
        for agent, mate in (("coder", "tester"), ("tester", "coder"), ("lazy", "lazy")):
            write(store, f"@{agent} !run bullpen schedule add look --agent {mate} --in 1h")
        wait_until_over(store)
        said = {row["agent"]: row["message"] for row in responses(store)}
        assert "1: Error: @coder may create schedules only for itself" in said["coder"]
        assert "1: Error: @lazy may not create schedules" in said["lazy"]
        (made,) = schedules(store)
        assert (made.agent, made.made_by) == ("coder", "agent:tester")
        write(store, f"@coder !run bullpen schedule remove {made.id}")
        write(store, "@coder !run bullpen heartbeat on coder")
        wait_until_over(store)
        said_last = [row["message"] for row in responses(store)][-2:]
        assert "was not created by @coder" in " ".join(said_last)
        assert "@coder may not change heartbeats" in " ".join(said_last)
    assert schedules(store) == [made]
