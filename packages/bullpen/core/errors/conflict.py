"""The state of things does not allow it."""

from __future__ import annotations

from bullpen.core.errors.base import BullpenError


class Conflict(BullpenError):
    """The state of things does not allow it."""

    code = "conflict"
    hint = "Look at its present state, then decide."


class DuplicateMessage(Conflict):
    """A message of this id was accepted before; the new one was not stored."""

    code = "duplicate_message"
    hint = "Nothing to do if this was a repeat; otherwise send it under a new id."

    def __init__(self, message_id: str, status: str) -> None:
        super().__init__(f"message {message_id} exists already and is {status}")
        self.message_id = message_id
        self.status = status


class NameTaken(Conflict):
    """An agent, a team or a provider has this id; agents and teams share their names."""

    code = "name_taken"
    hint = "Choose another id, or change the one that exists."


class StaleToken(Conflict):
    """The claim is no longer yours: its lease ended or somebody took it back."""

    code = "stale_token"
    hint = "Stop the run and drop its output; the message is being taken care of."


class IllegalMove(Conflict):
    """This cannot be done to something in its present state."""

    code = "illegal_move"
    hint = "Look at its present state: not every move leads out of it."


class TooMany(Conflict):
    """An agent has made as many schedules as it may."""

    code = "too_many"
    hint = (
        "Remove one of them first, or wait for an hour; the limit is the setting `agent_schedules`."
    )


class InTheWay(Conflict):
    """Something lies in a directory where a file or directory of Bullpen's is to be."""

    code = "in_the_way"
    hint = "Look at what lies there, and move it away."


class ServiceFailed(Conflict):
    """A service that was told to start or stop, and did not."""

    code = "service_failed"
    hint = "Look at its log, in the directory `logs` of the home."
