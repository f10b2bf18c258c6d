"""A home in which there is something of everything, made once and copied for each command."""

from __future__ import annotations

import shlex
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from bullpen.core.access.keys import Scope, add_key
from bullpen.core.access.owner import ensure_token
from bullpen.core.answers.complete import fail
from bullpen.core.channels.chats import Access, ChatSeen, allow_group, touch_chat
from bullpen.core.channels.pairing import request_pairing
from bullpen.core.channels.senders import Tier, set_tier
from bullpen.core.clock import DAY, HOUR
from bullpen.core.company import add_agent
from bullpen.core.heartbeats.manage import change_heartbeat
from bullpen.core.heartbeats.run import send_due_heartbeats
from bullpen.core.inspect.responses import ResponseFilter, list_responses
from bullpen.core.intake import post_in_room, submit
from bullpen.core.maintenance.dead_letters import watch_dead_letters
from bullpen.core.message import Answer, ErrorKind, Failure, NewMessage, Outcome, ReplyTo, Usage
from bullpen.core.outbox.addresses import NOWHERE
from bullpen.core.outbox.delivery import mark_undeliverable
from bullpen.core.outbox.leases import lease_responses
from bullpen.core.outbox.write import send_to_owner
from bullpen.core.queue.claim import claim
from bullpen.core.queue.finish import finish
from bullpen.core.queue.manage import cancel
from bullpen.core.roster.agents import Agent
from bullpen.core.roster.providers import CustomProvider, Harness, add_custom_provider
from bullpen.core.roster.teams import Team, add_team
from bullpen.core.schedules.fire import run_schedule_now
from bullpen.core.schedules.manage import add_schedule
from bullpen.core.schedules.model import NewSchedule
from bullpen.core.schedules.timing import cron_timing, every_timing
from bullpen.core.states import ResponseState
from bullpen.core.store.transaction import Transaction
from bullpen.reports.report import load_report
from tests.cli.command import Bullpen
from tests.cli.open_store import direct
from tests.reports.written import PEOPLE, write_reports

DONE = Outcome(
    answers=(Answer(message="the login works again"),),
    usage=Usage(provider="echo", model="echo", input_tokens=10, output_tokens=5, cost=0.25),
)
BROKEN = Failure(kind=ErrorKind.PERMANENT, error="the model does not exist")


@dataclass(frozen=True, slots=True)
class Names:
    """Ids that cannot be chosen; a command's arguments name them as `{key}`."""

    key: str
    schedule: str
    dead_response: str
    response: str
    backup: str
    code: str

    def fill(self, arguments: str, home: Path) -> list[str]:
        """The arguments, with the ids of this home, of which `home` is a copy."""
        return shlex.split(arguments.format(**asdict(self), home=home))


def furnish(bullpen: Bullpen) -> Names:
    """Put something of everything into an empty, migrated database."""
    (bullpen.home / "settings.toml").write_text("# mine\nmax_hops = 5\n")
    (bullpen.home / "settings.toml.bak").write_text("# mine\n")
    (bullpen.home / "logs").mkdir()
    (bullpen.home / "logs" / "processor.log").write_text("2026-01-01T00:00:00.000Z INFO begun\n")
    with direct(bullpen) as store:
        ensure_token(store.settings)
        with store.write() as tx:
            _company(tx)
            key, _ = add_key(tx, "dashboard", [Scope.READ], ["coder"], tx.now + DAY)
        for messages in (_said_and_done, _dead, _open):
            with store.write() as tx:
                messages(tx)
        with store.write() as tx:
            code = _people(tx)
        with store.write() as tx:
            schedule = _schedules(tx)
            change_heartbeat(tx, "coder", on=True, every=HOUR)
            send_to_owner(tx, "something to read")
        write_reports(store.settings.reports, {load_report("people").tables[0]: PEOPLE})
        home = bullpen.home / "workspace" / "coder"
        home.mkdir(parents=True)
        (home / "heartbeat.md").write_text("Look after the build.\n")
    with direct(bullpen, time.time_ns() // 1_000_000 + 2 * HOUR) as store:
        send_due_heartbeats(store)
        watch_dead_letters(store)
    with direct(bullpen) as store, store.write() as tx:
        (delivery,) = lease_responses(tx, "telegram", "sender", 1)
        mark_undeliverable(tx, str(delivery.claim_token), "the chat is gone")
    with direct(bullpen) as store, store.read() as tx:
        (dead,) = list_responses(tx, ResponseFilter(status=ResponseState.DEAD), None, 10)
        (waiting, *_) = list_responses(tx, ResponseFilter(channel="cli"), None, 10)
    return Names(
        key=key.id,
        schedule=schedule,
        dead_response=str(dead.id),
        response=str(waiting.id),
        code=code,
        backup=str(bullpen.ok("db", "backup", "--json").json["path"]),
    )


def _people(tx: Transaction) -> str:
    """People and a group on a channel; the code of one who waits."""
    set_tier(tx, "telegram", "4711", Tier.MEMBER, "owner", "Ann")
    touch_chat(tx, "telegram", ChatSeen(chat="-100", direct=False, name="The office"))
    allow_group(tx, "telegram", "-100", Access.MEMBERS, "owner")
    code = request_pairing(tx, "telegram", "4712", "Bob")
    assert code is not None
    return code


def _company(tx: Transaction) -> None:
    for name in ("coder", "tester", "stranger"):
        add_agent(tx, Agent(id=name, name=f"The {name}"))
    add_team(tx, Team(id="dev", leader="coder", members=("coder", "tester")))
    service = CustomProvider(
        id="local", harness=Harness.CLAUDE, base_url="http://127.0.0.1:9", api_key="a-secret"
    )
    add_custom_provider(tx, service)
    add_agent(tx, Agent(id="outsider", provider="custom:local", model="large"))


def _said_and_done(tx: Transaction) -> None:
    """A conversation from a person to an agent and back, and a post in a room."""
    chat = ReplyTo(chat="4711", thread="")
    person = {"channel": "telegram", "sender": "Ann", "sender_id": "4711", "reply_to": chat}
    submit(tx, NewMessage(agent="coder", message="fix it", message_id="telegram_done", **person))  # type: ignore[arg-type]
    _answer(tx, "coder")
    submit(tx, _mine("mine too", "coder", "cli_done"))
    _answer(tx, "coder")
    post_in_room(tx, "dev", "stand-up in ten minutes", "owner")
    _answer(tx, "coder")
    _answer(tx, "tester")


def _dead(tx: Transaction) -> None:
    for name in ("cli_dead", "cli_dead2"):
        submit(tx, _mine("break it", "tester", name))
        claimed = claim(tx, "worker-1", agent="tester")
        assert claimed is not None
        fail(tx, claimed.token, BROKEN)


def _open(tx: Transaction) -> None:
    """One that runs, one that waits, one that is held, one that was cancelled."""
    submit(tx, _mine("at work", "coder", "cli_running"))
    assert claim(tx, "worker-1", agent="coder") is not None
    submit(tx, _mine("later", "coder", "cli_waiting"))
    submit(tx, _mine("may I?", "tester", "cli_held", hold_reason="it asks for a person"))
    submit(tx, _mine("never mind", "stranger", "cli_cancelled"))
    cancel(tx, "cli_cancelled")


def _schedules(tx: Transaction) -> str:
    times = cron_timing("0 9 * * 1-5", "Europe/Berlin", tx.now)
    daily = NewSchedule(
        message="Stand-up!", timing=times, team_id="dev", label="stand-up", place=NOWHERE
    )
    made = add_schedule(tx, daily, "owner")
    run_schedule_now(tx, made.id)
    paused = NewSchedule(
        message="Is it up?",
        timing=every_timing(HOUR, "UTC", tx.now),
        agent="stranger",
        label="paused",
        place=NOWHERE,
        paused=True,
    )
    add_schedule(tx, paused, "owner")
    return made.id


def _mine(text: str, agent: str, message_id: str, hold_reason: str | None = None) -> NewMessage:
    return NewMessage(
        agent=agent,
        message=text,
        message_id=message_id,
        channel="cli",
        sender="owner",
        hold_reason=hold_reason,
    )


def _answer(tx: Transaction, agent: str) -> None:
    claimed = claim(tx, "worker-1", agent=agent)
    assert claimed is not None
    finish(tx, claimed, DONE)
