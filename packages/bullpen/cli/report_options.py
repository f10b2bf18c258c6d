"""Options of the commands that read a report: which rows, of which days."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import click
from click.shell_completion import CompletionItem

from bullpen.cli import completion
from bullpen.cli.options import Function, combine_options
from bullpen.core.clock import SystemClock, owner_zone_name
from bullpen.core.errors import BullpenError
from bullpen.core.registry import REPORTS
from bullpen.core.settings import Settings
from bullpen.reports.manifest import read_manifest
from bullpen.reports.read.filter import Filter, parse_day


def _report_names(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    with suppress(BullpenError):
        names = [*REPORTS.built_in, *REPORTS.plugin_names()]
        return [CompletionItem(each) for each in names if each.startswith(incomplete)]
    return []


report_argument = click.argument("name", metavar="REPORT", shell_complete=_report_names)


def filter_options(since: str | None) -> Callable[[Function], Function]:
    """The options that filter a report; `since` is the first day unless one is given."""
    return combine_options(
        click.option(
            "--since",
            metavar="DATE|DURATION",
            default=since,
            show_default=since is not None,
            help="First day, or how long ago it was.",
        ),
        click.option("--until", metavar="DATE|DURATION", help="Last day, or how long ago it was."),
        click.option(
            "--agent",
            metavar="AGENT",
            shell_complete=completion.agents,
            help="Only rows of this agent.",
        ),
        click.option(
            "--team",
            metavar="TEAM",
            shell_complete=completion.teams,
            help="Only rows of this team.",
        ),
        click.option(
            "--channel",
            metavar="CHANNEL",
            shell_complete=completion.channels,
            help="Only rows of this channel.",
        ),
    )


def parse_filter(
    settings: Settings,
    since: str | None,
    until: str | None,
    agent: str | None,
    team: str | None,
    channel: str | None,
) -> Filter:
    """The filter that the options describe. Durations count back from today."""
    manifest = read_manifest(settings.reports)
    zone = owner_zone_name(settings) if manifest is None else manifest.zone
    now = SystemClock().now()
    return Filter(
        since=None if since is None else parse_day(since, now, zone),
        until=None if until is None else parse_day(until, now, zone),
        agent=agent,
        team=team,
        channel=channel,
    )
