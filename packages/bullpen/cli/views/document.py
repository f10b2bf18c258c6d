"""The company at a moment as one document, for scripts."""

from __future__ import annotations

from collections.abc import Mapping

from bullpen.core.company.spent import RunTotals
from bullpen.core.company.work import ActiveRun, AgentStatus, CompanyStatus

Document = dict[str, object]


def company_fields(company: CompanyStatus, spent: Mapping[str, RunTotals]) -> Document:
    """How everything stands, what it took today included."""
    queue = company.queue
    return {
        "at": company.at,
        "team": None if company.team is None else company.team.id,
        "leader": None if company.team is None else company.team.leader,
        "queue": {
            "pending": queue.pending,
            "processing": queue.processing,
            "held": queue.held,
            "dead": queue.dead,
            "outgoing": queue.outgoing,
        },
        "processes": company.processes,
        "agents": [_agent(each, spent.get(each.agent.id, RunTotals())) for each in company.agents],
    }


def _agent(work: AgentStatus, today: RunTotals) -> Document:
    return {
        "id": work.agent.id,
        "name": work.agent.name,
        "provider": work.agent.provider,
        "model": work.agent.model,
        "state": work.activity.value,
        "reason": work.why,
        "until": work.until,
        "waiting": work.waiting,
        "run": None if work.run is None else _run(work.run),
        "today": _spent(today),
    }


def _run(run: ActiveRun) -> Document:
    return {
        "message_id": run.message.message_id,
        "conversation_id": run.message.conversation_id,
        "message": run.message.message,
        "messages": run.messages,
        "since": run.since,
        "worker": run.worker,
        "conversation": _spent(run.conversation),
    }


def _spent(spent: RunTotals) -> Document:
    return {
        "runs": spent.runs,
        "cost": spent.cost,
        "input_tokens": spent.input_tokens,
        "output_tokens": spent.output_tokens,
    }
