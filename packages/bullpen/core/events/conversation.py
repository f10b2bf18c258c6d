"""What happens between a message's arrival and its answer."""

from __future__ import annotations

from bullpen.core.events.base import AgentEvent, Level, MessageEvent, note, written_row


class MessageEnqueued(MessageEvent):
    """a message was stored for its agent"""

    type = "message_enqueued"
    says = "has a new message"


class AgentRouted(MessageEvent):
    """a person's message was routed"""

    type = "agent_routed"
    says = "was chosen for a message"
    quiet = True
    team: str | None


class MessageReceived(MessageEvent):
    """a processor claimed it, perhaps with others"""

    type = "message_received"
    says = "has its messages claimed"
    quiet = True
    messages: list[str] = note("ids")
    worker: str


class ChainStepStart(MessageEvent):
    """a run begins"""

    type = "chain_step_start"
    provider: str
    messages: list[str] = note("ids")
    batch: str | None = note("the id of several room posts that it answers")

    def sentence(self) -> str:
        """Say how many messages the run answers."""
        count = len(self.messages)
        return f"begins, for {count} messages at once" if count > 1 else "begins"


class AgentProgress(MessageEvent):
    """a run said or did something; at most two a second"""

    type = "agent_progress"
    level = Level.PROGRESS
    quiet = True
    text: str

    def sentence(self) -> str:
        """Say it."""
        return f"works: {self.text}"


class ChainStepDone(MessageEvent):
    """a run finished"""

    type = "chain_step_done"
    says = "is done"
    messages: list[str] = note("ids")
    responses: int
    said: int | None = written_row("the last of its agent's history by then")


class ChainHandoff(MessageEvent):
    """an agent handed work to another"""

    type = "chain_handoff"
    quiet = True
    to: str

    def sentence(self) -> str:
        """Say to whom."""
        return f"hands work to {self.to}"


class TeamChainStart(MessageEvent):
    """a message was routed to a team"""

    type = "team_chain_start"
    says = "begins for its team"
    quiet = True
    team: str


class TeamChainEnd(MessageEvent):
    """nothing of its conversation is under way any more"""

    type = "team_chain_end"
    says = "is through with it"
    team: str | None
    answers: int | None = None

    @property
    def who(self) -> str:
        """The team."""
        return f"#{self.team}"


class FileRefused(MessageEvent):
    """an agent wanted to send a file that may not leave"""

    type = "file_refused"
    level = Level.FAILURE
    says = "may not send a file"
    file: str
    reason: str


class SessionLost(MessageEvent):
    """the provider did not know the session any more; a new one was begun"""

    type = "session_lost"
    level = Level.FAILURE
    says = "lost its session"
    reason: str


class SessionReset(AgentEvent):
    """a person let an agent forget its sessions"""

    type = "session_reset"
    says = "forgot its sessions"
