"""Channels as people see them: which are set up, and in which state they are."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass

from bullpen.core.background import count_live_workers
from bullpen.core.channels.health import WORKING, ChannelHealth, ChannelState, list_health
from bullpen.core.channels.people import list_waiting_pairings
from bullpen.core.errors import UnknownChannel
from bullpen.core.registry import CHANNELS, ChannelInfo, LoadProblem
from bullpen.core.settings import Settings
from bullpen.core.store.transaction import Transaction
from bullpen.core.text import describe_unknown, format_count

NOT_SET_UP = "not set up"
"""The state of a channel whose required settings are not set."""


@dataclass(frozen=True, slots=True)
class ChannelRecord:
    """One account: its settings and its state."""

    channel: str
    platform: str
    state: str
    """A `ChannelState`, or `not set up`."""
    since: int | None
    code: str
    """Why it is in this state, as a short code; empty if it works."""
    reason: str
    hint: str
    missing: tuple[str, ...]
    """The required settings that are not set, such as `slack.bot_token`."""
    paused: bool
    """Whether a person paused it; the state follows when the client notices."""
    waiting: int
    """Pairing requests that wait for approval."""
    last_message_at: int | None
    last_sent_at: int | None
    connections: int | None
    caught_up_at: int | None
    caught_up: str | None
    """The result of the last catch-up."""
    last_probe_at: int | None
    probe_ms: int | None
    findings: str | None
    """The answers of the last probe, a JSON object."""

    @property
    def works(self) -> bool:
        """Whether it receives and delivers."""
        return self.state in WORKING

    @property
    def details(self) -> str:
        """Why it does not work, and how many requests wait, in one line; empty without either."""
        parts = []
        if self.missing:
            verb = "is" if len(self.missing) == 1 else "are"
            parts.append(f"{', '.join(self.missing)} {verb} not set")
        elif self.reason:
            parts.append(self.reason)
        if self.waiting:
            count = format_count(self.waiting, "pairing request waits", "pairing requests wait")
            parts.append(count)
        return "; ".join(parts)


def channel_fields(record: ChannelRecord) -> dict[str, object]:
    """A channel as a JSON document."""
    findings: object = json.loads(record.findings) if record.findings else None
    return {**asdict(record), "missing": list(record.missing), "findings": findings}


def list_channels(tx: Transaction, names: Iterable[str] = ()) -> list[ChannelRecord]:
    """The accounts that are set up or were served before, and these, by name."""
    health = {each.channel: each for each in list_health(tx)}
    live = count_live_workers(tx)
    waiting: dict[str, int] = {}
    for each in list_waiting_pairings(tx):
        waiting[each.channel] = waiting.get(each.channel, 0) + 1
    accounts = {*tx.settings.accounts.names(), *health, *waiting, *names}
    records = []
    for name in sorted(accounts):
        info = CHANNELS.find(name)
        if isinstance(info, ChannelInfo) and (info.pull or not info.factory):
            continue
        if info is None and name not in health:
            continue
        alive = bool(live.get(name))
        records.append(
            _record(tx.settings, name, info, health.get(name), alive, waiting.get(name, 0))
        )
    return records


def get_channel(tx: Transaction, name: str) -> ChannelRecord:
    """One account; raises UnknownChannel if no channel has this name."""
    found = [each for each in list_channels(tx, [name]) if each.channel == name]
    if not found:
        check_client(name)
        raise UnknownChannel(describe_unknown("channel", name, client_names()))
    return found[0]


def check_client(name: str) -> ChannelInfo:
    """The entry of a channel with a client; raises UnknownChannel if there is none."""
    info = CHANNELS.find(name)
    if isinstance(info, LoadProblem):
        raise UnknownChannel(str(info), hint="Fix or reinstall the package.")
    if info is None:
        account = name.lower().replace("_", "-")
        names = client_names()
        if isinstance(CHANNELS.find(account), ChannelInfo):
            names.append(account)
        raise UnknownChannel(describe_unknown("channel", name, names))
    if info.pull or not info.factory:
        raise UnknownChannel(f"channel {name!r} has no client: it needs neither setup nor pairing")
    return info


def client_names() -> list[str]:
    """The channels with a client; packages are loaded."""
    known = (*CHANNELS.built_in.values(), *CHANNELS.plugins())
    return sorted(each.name for each in known if each.factory and not each.pull)


def owner_channel_problem(settings: Settings) -> str:
    """Why the owner cannot be reached on `owner_channel`; empty if they can."""
    name = settings.owner_channel
    info = CHANNELS.find(name)
    if info is None:
        known = [*CHANNELS.built_in, *CHANNELS.plugin_names()]
        return f"owner_channel: {describe_unknown('channel', name, known)}"
    if isinstance(info, LoadProblem):
        return f"owner_channel: {info}"
    if info.pull:
        return ""
    if not info.factory:
        return f"owner_channel: channel {name!r} has no client"
    if missing := info.missing(settings.account(name)):
        return f"owner_channel: {name} is not set up: {name}.{missing[0]} is not set"
    return "" if settings.owner_id else f"owner_channel is {name}, and owner_id is not set"


def _record(
    settings: Settings,
    name: str,
    info: ChannelInfo | LoadProblem | None,
    health: ChannelHealth | None,
    alive: bool,
    waiting: int,
) -> ChannelRecord:
    missing: tuple[str, ...] = ()
    # A client that runs has its settings, also if this process was started before they were set.
    if isinstance(info, ChannelInfo) and not alive:
        missing = tuple(f"{name}.{each}" for each in info.missing(settings.account(name)))
    state = ChannelState.STOPPED if health is None or not alive else health.state
    paused = health is not None and health.paused
    shown = NOT_SET_UP if missing else ChannelState(state).value
    if paused and not missing and state is not ChannelState.STOPPED:
        shown = ChannelState.PAUSED.value
    tells = health is not None and not missing and state not in (ChannelState.UP,)
    return ChannelRecord(
        channel=name,
        platform=info.platform if isinstance(info, ChannelInfo) else name,
        state=shown,
        since=health.since if health and alive else None,
        code=(health.code or "") if health and tells else "",
        reason=(health.reason or "") if health and tells else "",
        hint=(health.hint or "") if health and tells else "",
        missing=missing,
        paused=paused,
        waiting=waiting,
        last_message_at=health.last_message_at if health else None,
        last_sent_at=health.last_receipt_at if health else None,
        connections=health.connections if health and alive else None,
        caught_up_at=health.caught_up_at if health else None,
        caught_up=health.caught_up if health else None,
        last_probe_at=health.last_probe_at if health else None,
        probe_ms=health.probe_ms if health else None,
        findings=health.findings if health else None,
    )
