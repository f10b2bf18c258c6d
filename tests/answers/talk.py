"""People who write, agents who answer, and what comes of it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from bullpen.core.answers.complete import complete
from bullpen.core.intake import submit
from bullpen.core.message import Accepted, Claim, NewMessage, ReplyTo, RunOutput
from bullpen.core.models import AGENT_MESSAGES, CHAT_MESSAGES, GATHERED, MESSAGES
from bullpen.core.roster.teams import Team, add_team
from bullpen.core.store.base import Store
from bullpen.core.workspace.safe_files import Root
from tests.conformance.verbs import Row, do, hire, responses, rows, take, try_claim

ADA: dict[str, Any] = {
    "channel": "slack",
    "sender": "Ada",
    "sender_id": "U1",
    "reply_to": ReplyTo("C1", "T1", "M1"),
}


def team(store: Store, *members: str, id: str = "dev", **more: Any) -> None:  # noqa: ANN401
    """Hire these agents and make them a team; the first one leads."""
    for agent in members:
        hire(store, agent)
    do(store, add_team, Team(id=id, leader=members[0], members=members, **more))


def write(store: Store, text: str, **more: Any) -> str:  # noqa: ANN401
    """Ada writes; gives the id of the conversation."""
    return written(store, text, **more)[0].message_id


def written(store: Store, text: str, **more: Any) -> tuple[Accepted, ...]:  # noqa: ANN401
    """The same; gives what became of each part."""
    new = NewMessage(**{"agent": "", "message": text, **ADA, **more})
    with store.write() as tx:
        return submit(tx, new)


def said(
    store: Store,
    claim: Claim,
    text: str,
    roots: Sequence[Root] = (),
    **more: Any,  # noqa: ANN401
) -> None:
    """The run of this claim said this."""
    with store.write() as tx:
        complete(tx, claim, RunOutput(text=text, **more), roots)


def answer(store: Store, agent: str, text: str, **more: Any) -> Claim:  # noqa: ANN401
    """The agent takes what waits for it, and says this."""
    claim = take(store, agent)
    said(store, claim, text, **more)
    return claim


def talk(store: Store, text: str, most: int) -> int:
    """Let everybody who has something to answer say this; gives how many runs it took."""
    for run in range(most):
        found = try_claim(store)
        if found is None:
            return run
        said(store, found, text)
    raise AssertionError(f"it went on for {most} runs")


def told(store: Store) -> list[tuple[str, str]]:
    """What people were told: by whom, and what."""
    return [(row["agent"], row["message"]) for row in responses(store)]


def files_of(row: Row) -> list[str]:
    """The files that go with a row."""
    return list(json.loads(row["files"] or "[]"))


def children(store: Store, conversation: str) -> list[Row]:
    """The messages of a conversation that others than its person wrote."""
    return [
        row
        for row in rows(store, MESSAGES)
        if row["conversation_id"] == conversation and row["from_agent"] is not None
    ]


def heard(store: Store, agent: str) -> list[tuple[str, str]]:
    """An agent's history: whose word, and what."""
    return [
        (row["role"], row["content"])
        for row in rows(store, AGENT_MESSAGES)
        if row["agent_id"] == agent
    ]


def notes(store: Store, agent: str) -> list[str]:
    """What the agent is to be told of its answers."""
    return [content for role, content in heard(store, agent) if role == "note"]


def posts(store: Store) -> list[tuple[str, str, str]]:
    """What stands in the rooms."""
    return [
        (row["team_id"], row["from_agent"], row["message"]) for row in rows(store, CHAT_MESSAGES)
    ]


def kept(store: Store) -> list[str]:
    """The parts of answers that are still to be sent."""
    return [row["message"] for row in rows(store, GATHERED)]
