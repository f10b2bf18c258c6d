"""The current activity of each agent, and the cost of its runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never

from sqlalchemy import bindparam, select

from bullpen.core.background import count_live_workers
from bullpen.core.clock import MINUTE
from bullpen.core.inspect.lanes import LaneRecord, list_lanes
from bullpen.core.inspect.messages import MessageRecord, list_messages_by_number
from bullpen.core.inspect.queue import QueueStatus, queue_status
from bullpen.core.models import ATTEMPTS
from bullpen.core.models.base import const, decode_numbers
from bullpen.core.queue.attempts import RunTotals, run_totals_columns
from bullpen.core.queue.conversations import SUM_CONVERSATION
from bullpen.core.roster.agents import Agent, list_agents
from bullpen.core.roster.teams import Team, get_team
from bullpen.core.states import LaneState
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction

A = ATTEMPTS.c

# Starts at the newest row, so that only rows since that moment are read.
SELECT_LAST_RUN_BEFORE: Statement[tuple[int]] = Statement(
    lambda: (
        select(A.id)
        .where(A.finished_at < bindparam("before"))
        .order_by(A.id.desc())
        .limit(const(1))
    )
)

SUM_SINCE: Statement[tuple[str, RunTotals]] = Statement(
    lambda: (
        select(A.agent, *run_totals_columns())
        .where(A.id > bindparam("after"), A.finished_at >= bindparam("since"))
        .group_by(A.agent)
    ),
    lambda agent, runs, cost, *tokens: (agent, RunTotals(runs, float(cost), *tokens)),
)


def last_run_before(tx: Transaction, moment: int) -> int:
    """The id of the last run that ended more than a minute before a moment; 0 if there is none."""
    # Ids are taken before their transactions commit, so their order may differ from that of the
    # times by up to this margin.
    row = tx.one(SELECT_LAST_RUN_BEFORE, {"before": moment - MINUTE})
    return 0 if row is None else row[0]


def run_totals_since(tx: Transaction, moment: int, after: int) -> dict[str, RunTotals]:
    """The totals of each agent's runs since a moment; `after` is from `last_run_before`."""
    return dict(tx.all(SUM_SINCE, {"since": moment, "after": after}))


class AgentActivity(StrEnum):
    """The activity of an agent, as live views show it."""

    IDLE = "idle"
    PROCESSING = "processing"
    LOST = "lost"
    """The lease of its run has expired: its worker is lost, and its messages are retried soon."""
    PENDING = "pending"
    """It has pending messages, none of which is claimed."""
    RATE_LIMITED = "rate-limited"
    """Its provider asked to wait."""
    PAUSED = "paused"
    DRAINING = "draining"


@dataclass(frozen=True, slots=True)
class ActiveRun:
    """A run in progress."""

    message: MessageRecord
    """Its primary message."""
    messages: int
    """The number of messages that it answers."""
    since: int
    worker: str
    conversation: RunTotals
    """The totals of the finished runs of its conversation."""


@dataclass(frozen=True, slots=True)
class AgentStatus:
    """One agent and its activity."""

    agent: Agent
    activity: AgentActivity
    why: str | None
    """The reason why its lane is not active."""
    until: int | None
    """The end of the rate limit."""
    waiting: int
    run: ActiveRun | None


@dataclass(frozen=True, slots=True)
class CompanyStatus:
    """All agents, or the members of a team in its order, and the whole queue."""

    at: int
    team: Team | None
    agents: tuple[AgentStatus, ...]
    queue: QueueStatus
    processes: dict[str, int]
    """The number of live processes of each kind."""


def get_company_status(tx: Transaction, team_id: str | None = None) -> CompanyStatus:
    """The current activity of all agents, or of a team's members."""
    team = None if team_id is None else get_team(tx, team_id)
    agents = {each.id: each for each in list_agents(tx)}
    wanted = list(agents) if team is None else [each for each in team.members if each in agents]
    lanes = {each.agent: each for each in list_lanes(tx)}
    runs = _active_runs(tx, [lanes[each] for each in wanted])
    return CompanyStatus(
        at=tx.now,
        team=team,
        agents=tuple(_agent_status(agents[each], lanes[each], runs, tx.now) for each in wanted),
        queue=queue_status(tx),
        processes=count_live_workers(tx),
    )


def _active_runs(tx: Transaction, lanes: Sequence[LaneRecord]) -> dict[str, ActiveRun]:
    """The runs in progress of these lanes, by agent."""
    busy = [each for each in lanes if each.processing]
    numbers = [next(iter(decode_numbers(each.batch)), 0) for each in busy]
    found = {each.id: each for each in list_messages_by_number(tx, numbers)}
    totals = tx.one_each(
        SUM_CONVERSATION, [{"conversation": each.conversation_id} for each in found.values()]
    )
    spent = dict(zip(found, totals, strict=True))
    return {
        lane.agent: ActiveRun(
            message=found[number],
            messages=lane.processing,
            since=lane.claimed_at,
            worker=lane.claimed_by or "",
            conversation=spent[number] or RunTotals(),
        )
        for lane, number in zip(busy, numbers, strict=True)
        if number in found
    }


def _agent_status(
    agent: Agent, lane: LaneRecord, runs: Mapping[str, ActiveRun], now: int
) -> AgentStatus:
    run = runs.get(agent.id)
    return AgentStatus(
        agent=agent,
        activity=_agent_activity(lane, run, now),
        why=lane.reason,
        until=lane.not_before if lane.not_before is not None and lane.not_before > now else None,
        waiting=lane.pending,
        run=run,
    )


def _agent_activity(lane: LaneRecord, run: ActiveRun | None, now: int) -> AgentActivity:
    if run is not None:
        overdue = lane.lease_expires_at is not None and lane.lease_expires_at <= now
        return AgentActivity.LOST if overdue else AgentActivity.PROCESSING
    state = LaneState(lane.state)
    match state:
        case LaneState.PAUSED | LaneState.ARCHIVED:
            return AgentActivity.PAUSED
        case LaneState.DRAINING:
            return AgentActivity.DRAINING
        case LaneState.ACTIVE:
            if lane.not_before is not None and lane.not_before > now:
                return AgentActivity.RATE_LIMITED
            return AgentActivity.PENDING if lane.pending else AgentActivity.IDLE
        case _:
            assert_never(state)
