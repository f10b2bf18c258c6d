"""The company at a moment as one document, for scripts."""

from __future__ import annotations

from collections.abc import Mapping

from bullpen.core.company.spent import Spent
from bullpen.core.company.work import AgentAtWork, Company, Run

Document = dict[str, object]


def document_of(company: Company, spent: Mapping[str, Spent]) -> Document:
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
        "agents": [_agent(each, spent.get(each.agent.id, Spent())) for each in company.agents],
    }


def _agent(work: AgentAtWork, today: Spent) -> Document:
    return {
        "id": work.agent.id,
        "name": work.agent.name,
        "provider": work.agent.provider,
        "model": work.agent.model,
        "state": work.doing.value,
        "reason": work.why,
        "until": work.until,
        "waiting": work.waiting,
        "run": None if work.run is None else _run(work.run),
        "today": _spent(today),
    }


def _run(run: Run) -> Document:
    return {
        "message_id": run.message.message_id,
        "conversation_id": run.message.conversation_id,
        "message": run.message.message,
        "messages": run.messages,
        "since": run.since,
        "worker": run.worker,
        "conversation": _spent(run.conversation),
    }


def _spent(spent: Spent) -> Document:
    return {
        "runs": spent.runs,
        "cost": spent.cost,
        "input_tokens": spent.input_tokens,
        "output_tokens": spent.output_tokens,
    }
