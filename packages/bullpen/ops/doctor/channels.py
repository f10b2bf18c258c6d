"""Checks of channels: their state, their settings, their clients, and how to reach the owner."""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote
from urllib.parse import urlsplit

from bullpen.core.channels.health import ChannelState
from bullpen.core.channels.people import list_waiting_pairings
from bullpen.core.inspect.channels import (
    NOT_SET_UP,
    ChannelRecord,
    list_channels,
    owner_channel_problem,
)
from bullpen.core.inspect.queue import count_outgoing_by_channel
from bullpen.core.message import PULL_CHANNELS
from bullpen.core.registry import CHANNELS, ChannelInfo, LoadProblem
from bullpen.core.schedules.model import list_schedules
from bullpen.core.settings import Settings
from bullpen.core.text import format_count
from bullpen.ops.doctor.check import PASSED, Needs, Problem, Severity, Verdict, check, skipped
from bullpen.ops.doctor.installation import Installation

MAX_SHOWN = 3
CREDENTIALS = ("bot_token", "number")
"""Settings that belong to one bot only."""


def _records(installation: Installation) -> list[ChannelRecord]:
    with installation.store.read() as tx:
        return list_channels(tx)


@check("channel.down", Severity.WARNING, Needs.SCHEMA)
def down(installation: Installation) -> Problem | Verdict:
    """A channel is not connected, or does not work as it should."""
    broken = (ChannelState.DOWN, ChannelState.DEGRADED)
    found = [each for each in _records(installation) if each.state in broken]
    if not found:
        return PASSED
    first = found[0]
    texts = [f"{each.channel} is {each.state}: {each.reason or each.code}" for each in found]
    return Problem(
        text="; ".join(texts[:MAX_SHOWN]),
        remedy=first.hint or f"bullpen channel status {first.channel}",
        severity=Severity.CRITICAL if first.state == ChannelState.DOWN else None,
    )


@check("channel.not_running", Severity.WARNING, Needs.SCHEMA)
def not_running(installation: Installation) -> Problem | Verdict:
    """A channel is set up, and its client does not run."""
    if installation.services is None:
        return skipped("Bullpen is not running")
    known = {each["name"] for each in installation.services}
    found = [
        each.channel
        for each in _records(installation)
        if each.state == ChannelState.STOPPED and _is_set_up(installation.settings, each.channel)
    ]
    if not found:
        return PASSED
    missing = [each for each in found if each not in known]
    return Problem(
        text=f"no client runs for {', '.join(found)}",
        remedy="bullpen up" if missing else f"bullpen restart {found[0]}",
    )


@check("channel.incomplete", Severity.WARNING, Needs.SCHEMA)
def incomplete(installation: Installation) -> Problem | Verdict:
    """A channel has settings, and a required one is empty, so it is not started."""
    wanted = installation.settings.accounts.names()
    found = [
        each
        for each in _records(installation)
        if each.state == NOT_SET_UP and each.channel in wanted
    ]
    if not found:
        return PASSED
    return Problem(
        text="; ".join(f"{each.channel} is not started: {each.details}" for each in found),
        remedy=f"bullpen channel setup {found[0].channel}",
    )


@check("channel.paused", Severity.INFO, Needs.SCHEMA)
def paused(installation: Installation) -> Problem | Verdict:
    """A channel is paused: it neither receives nor sends."""
    found = [each.channel for each in _records(installation) if each.paused]
    if not found:
        return PASSED
    return Problem(text=f"paused: {', '.join(found)}", remedy=f"bullpen channel resume {found[0]}")


@check("channel.requests", Severity.INFO, Needs.SCHEMA)
def requests(installation: Installation) -> Problem | Verdict:
    """Pairing requests wait for approval."""
    with installation.store.read() as tx:
        count = len(list_waiting_pairings(tx))
    if not count:
        return PASSED
    return Problem(
        text=f"{format_count(count, 'pairing request waits', 'pairing requests wait')}"
        " for approval",
        remedy="bullpen pairing list --waiting",
    )


@check("channel.owner", Severity.WARNING)
def owner(installation: Installation) -> Problem | Verdict:
    """Notices and questions cannot reach the owner on `owner_channel`."""
    problem = owner_channel_problem(installation.settings)
    if not problem:
        return PASSED
    return Problem(
        text=problem,
        remedy="bullpen channel setup NAME --owner ID; or: bullpen config set owner_channel cli",
    )


@check("channel.unsafe_url", Severity.WARNING)
def unsafe_url(installation: Installation) -> Problem | Verdict:
    """The public URL of a channel is not https, so others can read messages and signatures."""
    found = [
        name
        for name, values in _accounts(installation.settings)
        if (url := values.get("public_url")) and urlsplit(url).scheme != "https"
    ]
    if not found:
        return PASSED
    return Problem(
        text=f"the public URL is not https: {', '.join(f'{each}.public_url' for each in found)}",
        remedy=f"bullpen config set {found[0]}.public_url https://HOST",
    )


@check("channel.same_bot", Severity.CRITICAL)
def same_bot(installation: Installation) -> Problem | Verdict:
    """Two accounts have the same bot or the same port, so one of them does not work."""
    for name, values in reversed(list(_accounts(installation.settings))):
        if shared := find_shared(installation.settings, name, values):
            what, other = shared
            return Problem(
                text=f"{other} and {name} have the same {what}",
                remedy=f"bullpen channel setup {name}",
            )
    return PASSED


def find_shared(settings: Settings, name: str, values: dict[str, str]) -> tuple[str, str] | None:
    """What this account would share with another one, such as `bot_token`, and the other one."""
    info = CHANNELS.find(name)
    if not isinstance(info, ChannelInfo) or info.missing(values):
        return None
    claims = set(_claims(info, values))
    for other, theirs in _accounts(settings):
        found = CHANNELS.find(other)
        if other == name or not isinstance(found, ChannelInfo) or found.missing(theirs):
            continue
        for what, value in _claims(found, theirs):
            if (what, value) in claims:
                return what.partition(" ")[0], other
    return None


def _claims(info: ChannelInfo, values: dict[str, str]) -> Iterator[tuple[str, str]]:
    """What only one account can have: the bot, and the port of a listener."""
    for each in CREDENTIALS:
        if values.get(each):
            yield f"{each} on {info.platform}", values[each]
    port = info.setting("port")
    if port is not None and port.applies(values) and values.get("public_url"):
        yield "port", values["port"]


def _accounts(settings: Settings) -> Iterator[tuple[str, dict[str, str]]]:
    for name in settings.accounts.names():
        yield name, settings.account(name)


def _is_set_up(settings: Settings, name: str) -> bool:
    info = CHANNELS.find(name)
    return isinstance(info, ChannelInfo) and not info.missing(settings.account(name))


@check("channel.no_client", Severity.WARNING, Needs.SCHEMA)
def no_client(installation: Installation) -> Problem | Verdict:
    """Schedules or pending responses use a channel without a client."""
    with installation.store.read() as tx:
        outgoing, schedules = count_outgoing_by_channel(tx), list_schedules(tx)
    uses: dict[str, tuple[str, str]] = {}
    for each in schedules:
        name = quote(each.label or each.id)
        remedy = f"bullpen schedule set {name} --to cli:owner"
        uses.setdefault(each.place.channel, (f"the schedule {name}", remedy))
    for channel, count in outgoing.items():
        remedy = f"bullpen response list --channel {channel}"
        uses.setdefault(channel, (format_count(count, "pending response"), remedy))
    lost = [each for each in uses if not _has_client(installation, each)]
    if not lost:
        return PASSED
    told = "; ".join(f"{each} (used by {uses[each][0]})" for each in lost[:MAX_SHOWN])
    return Problem(
        text=f"no client delivers the responses of {told}",
        remedy=f"Install and configure the channel; or: {uses[lost[0]][1]}",
    )


def _has_client(installation: Installation, channel: str) -> bool:
    """Whether responses on this channel are fetched, or a service delivers them."""
    if channel in PULL_CHANNELS:
        return True
    info = CHANNELS.find(channel)
    if info is None or isinstance(info, LoadProblem) or not info.factory:
        return False
    return not info.missing(installation.settings.account(channel))


CHECKS = (
    *(down, not_running, incomplete, paused, requests, owner, unsafe_url, same_bot, no_client),
)
