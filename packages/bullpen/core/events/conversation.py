"""Events between the arrival of a message and its answer."""

from __future__ import annotations

from bullpen.core.events.base import AgentEvent, Level, MessageEvent, note, written_row


class MessageEnqueued(MessageEvent):
    """A message was stored in the queue of its agent"""

    type = "message_enqueued"
    says = "has a new message"
    # Older rows have no data; newer ones have a key only for what is not NULL.
    channel: str | None = None
    sender: str | None = None
    sender_id: str | None = None
    from_agent: str | None = note("the agent that sent it", default=None)
    parent_id: str | None = note("the message whose run sent it", default=None)
    hop: int | None = None
    team_id: str | None = None
    available_at: int | None = note("when it can be claimed first", default=None)


class AgentRouted(MessageEvent):
    """The agent for a person's message was selected"""

    type = "agent_routed"
    says = "was selected for a message"
    quiet = True
    team: str | None


class MessageReceived(MessageEvent):
    """A worker claimed the messages of a run"""

    type = "message_received"
    says = "had its messages claimed"
    quiet = True
    messages: list[str] = note("ids")
    worker: str


class ChainStepStart(MessageEvent):
    """A run started"""

    type = "chain_step_start"
    bookkeeping = True
    provider: str
    messages: list[str] = note("ids")
    batch: str | None = note("the id of a batch of room posts")

    def sentence(self) -> str:
        """Add the number of messages if it is more than one."""
        count = len(self.messages)
        return f"started a run for {count} messages" if count > 1 else "started a run"


class AgentProgress(MessageEvent):
    """A run reported progress; at most twice a second"""

    type = "agent_progress"
    level = Level.PROGRESS
    says = "reported: {text}"
    quiet = True
    text: str


class ChainStepDone(MessageEvent):
    """A run completed"""

    type = "chain_step_done"
    says = "completed a run"
    messages: list[str] = note("ids")
    responses: int
    said: int | None = written_row("the id of the agent's newest history entry")


class ChainHandoff(MessageEvent):
    """An agent handed work to another agent"""

    type = "chain_handoff"
    says = "handed work to @{to}"
    quiet = True
    to: str


class TeamChainStart(MessageEvent):
    """A message was routed to a team"""

    type = "team_chain_start"
    says = "received a message for #{team}"
    quiet = True
    team: str


class TeamChainEnd(MessageEvent):
    """A team's conversation finished: none of its messages is pending or processing"""

    type = "team_chain_end"
    says = "finished a conversation"
    bookkeeping = True
    team: str | None
    answers: int | None = None

    @property
    def who(self) -> str:
        """The team."""
        return super().who if self.team is None else f"#{self.team}"


class FileRefused(MessageEvent):
    """A file of an answer was not sent"""

    type = "file_refused"
    level = Level.FAILURE
    says = "could not send the file {file}"
    file: str
    reason: str


class SessionLost(MessageEvent):
    """The provider did not recognise the session; a new one was started"""

    type = "session_lost"
    level = Level.FAILURE
    says = "lost its session"
    reason: str


class SessionReset(AgentEvent):
    """The sessions of an agent were deleted; its next run starts a new one"""

    type = "session_reset"
    says = "had its sessions reset"
    bookkeeping = True
