"""An agent's lane does not take it."""

from __future__ import annotations

from bullpen.core.errors.base import BullpenError


class LaneError(BullpenError):
    """An agent's lane does not take this."""

    code = "lane_error"
    exit_status = 75
    hint = "Look at the state of the agent's lane."


class LaneFull(LaneError):
    """The lane holds as many messages as it may."""

    code = "lane_full"
    hint = "Try again later, or raise the lane's maximum depth."


class LaneClosed(LaneError):
    """The lane is draining or archived and takes nothing new."""

    code = "lane_closed"
    hint = "Resume the lane to let messages in again."


class LaneBusy(LaneError):
    """The lane has work that must end first."""

    code = "lane_busy"
    hint = "Drain the lane first, and wait until it is empty."
