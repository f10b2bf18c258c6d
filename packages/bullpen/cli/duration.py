"""A length of time as an option's value: `30m`, `2h`, `1h30m`."""

from __future__ import annotations

import click

from bullpen.core.errors import BadSchedule
from bullpen.core.schedules.when import parse_duration


class Duration(click.ParamType[int]):
    """Milliseconds, written as people write a length of time."""

    name = "duration"

    def convert(
        self, value: str | int, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        """The milliseconds; a text that is no length of time is a mistake of usage."""
        if isinstance(value, int):
            return value
        try:
            return parse_duration(value)
        except BadSchedule as error:
            self.fail(f"{error}. {error.hint}", param, ctx)


DURATION = Duration()


def time_range(now: int, since: int | None, before: int | None) -> tuple[int | None, int | None]:
    """The moments from which and up to which something is meant, so long ago each."""
    if since is not None and before is not None and since <= before:
        raise click.UsageError("Nothing is younger than --since and older than --before.")
    return _ago(now, since), _ago(now, before)


def _ago(now: int, milliseconds: int | None) -> int | None:
    return None if milliseconds is None else max(0, now - milliseconds)
