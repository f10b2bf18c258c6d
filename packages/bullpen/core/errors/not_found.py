"""What was named does not exist."""

from __future__ import annotations

from bullpen.core.errors.base import BullpenError


class NotFound(BullpenError):
    """What was named does not exist."""

    code = "not_found"
    hint = "Check the name; a list shows what exists."


class UnknownAgent(NotFound):
    """There is no agent of this name."""

    code = "unknown_agent"
    hint = "`bullpen agent list` shows the agents that exist."


class UnknownTeam(NotFound):
    """There is no team of this name."""

    code = "unknown_team"
    hint = "`bullpen team list` shows the teams that exist."


class UnknownProvider(NotFound):
    """There is no provider of this name."""

    code = "unknown_provider"
    hint = "`bullpen provider list` shows the providers that exist."


class UnknownMessage(NotFound):
    """There is no message of this id."""

    code = "unknown_message"
    hint = "Finished messages move to the archive after a day."


class UnknownResponse(NotFound):
    """There is no response of this id."""

    code = "unknown_response"
    hint = "Delivered responses move to the archive after a day."


class UnknownRecipient(NotFound):
    """Nobody has the name that was addressed; nothing was sent."""

    code = "unknown_recipient"
    hint = "Address an agent or a team that exists."


class UnknownSchedule(NotFound):
    """There is no schedule of this id or label."""

    code = "unknown_schedule"
    hint = "`bullpen schedule list` shows the schedules that exist."


class UnknownKey(NotFound):
    """There is no key of this id."""

    code = "unknown_key"
    hint = "`bullpen key list` shows the keys that exist."


class UnknownFile(NotFound):
    """There is no such file, or none that may be seen."""

    code = "unknown_file"
    hint = "Files are named as they were when they were uploaded or answered."


class UnknownService(NotFound):
    """There is no service of this name."""

    code = "unknown_service"
    hint = "`bullpen status` shows the services that exist."
