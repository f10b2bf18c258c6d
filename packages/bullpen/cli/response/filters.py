"""The options by which responses are chosen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from bullpen.cli import ids
from bullpen.cli.duration import DURATION
from bullpen.core.states import ResponseState

Function = TypeVar("Function", bound=Callable[..., Any])

RESPONSE_STATES = click.Choice([each.value for each in ResponseState])

_RESPONSE_OPTIONS = {
    "channel": click.option("--channel", metavar="NAME", help="Only what goes to this channel."),
    "agent": click.option(
        "--agent", metavar="ID", shell_complete=ids.agents, help="Only what this agent said."
    ),
    "sender": click.option(
        "--to", "sender", metavar="NAME|ID", help="Only what goes to this person, by name or id."
    ),
    "error": click.option(
        "--error", metavar="TEXT", help="Only those whose last error has this in it."
    ),
    "since": click.option(
        "--since", type=DURATION, metavar="2h", help="Only what was said within so long."
    ),
    "before": click.option(
        "--before", type=DURATION, metavar="2h", help="Only what was said longer ago."
    ),
}


def response_filters(*names: str) -> Callable[[Function], Function]:
    """The filters of these names, as options."""

    def decorate(function: Function) -> Function:
        for name in reversed(names):
            function = _RESPONSE_OPTIONS[name](function)
        return function

    return decorate
