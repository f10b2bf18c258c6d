"""How an agent is shown, with what its lane is at."""

from __future__ import annotations

from dataclasses import asdict

from bullpen.core.queue.lane_list import LaneRecord
from bullpen.core.roster.agent import Agent
from bullpen.core.settings import Settings
from bullpen.core.states import LaneState


def agent_fields(agent: Agent, lane: LaneRecord) -> dict[str, object]:
    """All of it for a JSON document."""
    return {
        **asdict(agent),
        "lane": {
            "state": lane.state,
            "reason": lane.reason,
            "pending": lane.pending,
            "processing": lane.processing,
        },
    }


def lane_activity(lane: LaneRecord) -> str:
    """What its lane is at, in a word."""
    if lane.state != LaneState.ACTIVE:
        return lane.state
    if lane.processing:
        return "running"
    return "waiting" if lane.pending else "idle"


def agent_directory(agent: Agent, settings: Settings) -> str:
    """Where it works."""
    return agent.directory or str(settings.workspace / agent.id)
