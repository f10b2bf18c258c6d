"""Schedules as clients send and read them."""

from bullpen.api.schedules.answer import ScheduleAnswer, ScheduleList
from bullpen.api.schedules.body import ScheduleBody
from bullpen.api.schedules.given import changed, new
from bullpen.api.schedules.runs import RunAnswer, RunList

__all__ = [
    "RunAnswer",
    "RunList",
    "ScheduleAnswer",
    "ScheduleBody",
    "ScheduleList",
    "changed",
    "new",
]
