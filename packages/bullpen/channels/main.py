"""A channel's process: its client, in a worker process that the supervisor starts and stops."""

from __future__ import annotations

import asyncio
import logging
import random
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from pkgutil import resolve_name

from bullpen.channels.async_store import store_id
from bullpen.channels.client import Client
from bullpen.channels.failures import ChannelDown
from bullpen.channels.incoming.decide import IntakeSettings
from bullpen.channels.platform import ChannelContext, Finding, Platform
from bullpen.core.background import StopSignals, WorkerProcess
from bullpen.core.channels.health import retry_topic
from bullpen.core.clock import MINUTE, SystemClock
from bullpen.core.errors import BadSetting, ServiceFailed, UnknownService
from bullpen.core.registry import CHANNELS, ChannelInfo, LoadProblem
from bullpen.core.settings import Settings
from bullpen.core.settings.accounts import account_variable
from bullpen.core.store.base import Store
from bullpen.core.text import SecretMask

log = logging.getLogger(__name__)

CLIENT_STOP_SECONDS = 25.0
LOOPS_STOP_SECONDS = 5.0
CHECK_SECONDS = 60.0

MakePlatform = Callable[[ChannelContext], Platform]


class ChannelProcess:
    """The client of one account, and the worker process around it."""

    def __init__(self, store: Store, info: ChannelInfo, ended: Callable[[], None]) -> None:
        """`ended` is called if the client ends before it is stopped."""
        self._name = info.name
        self._ended = ended
        self._stopping = threading.Event()
        self._process = WorkerProcess(store, info.name)
        self.failed = False
        """Whether the client ended before it was stopped."""
        try:
            make: MakePlatform = resolve_name(info.factory)
            self._client = Client(
                store,
                make,
                make_context(store.settings, info, id_=store_id(store)),
                intake_settings(store.settings.account(info.name)),
                lambda: self._process.worker,
            )
        except BaseException:
            self._process.stop(0)
            raise
        self._process.on(f"responses:{info.name}", self._client.wake)
        self._process.on(retry_topic(info.name), self._client.retry)
        self._thread = threading.Thread(target=self._run, name="client", daemon=True)

    def start(self) -> None:
        """Start to serve the channel."""
        self._process.start()
        self._thread.start()

    def stop(self) -> None:
        """Stop the client and unregister; a client that does not stop ends with the process."""
        self._stopping.set()
        self._client.stop()
        self._thread.join(CLIENT_STOP_SECONDS)
        if self._thread.is_alive():
            log.warning("the client of %s does not stop in time", self._name)
        self._process.stop(LOOPS_STOP_SECONDS)

    def _run(self) -> None:
        try:
            self._client.run()
        except Exception:
            log.exception("the client of %s failed", self._name)
        if not self._stopping.is_set():
            self.failed = True
            self._ended()


def make_context(settings: Settings, info: ChannelInfo, *, id_: str) -> ChannelContext:
    """What the platform of an account is made with."""
    values = settings.account(info.name)
    return ChannelContext(
        info=info,
        setting=lambda name: values[name],
        store_id=id_,
        directory=settings.run / "channels" / info.name,
        clock=SystemClock(),
        chance=random.random,
        log=logging.getLogger(f"bullpen.channel.{info.name}"),
    )


def intake_settings(values: Mapping[str, str]) -> IntakeSettings:
    """The settings of an account that the base client reads."""
    return IntakeSettings(
        default_agent=values["default_agent"],
        every_message=values["mentions"] == "all",
        edits=values["edits"],
        age_fence_ms=int(values["age_fence_minutes"]) * MINUTE,
        file_bytes=int(values["max_file_bytes"]),
    )


def check_channel(settings: Settings, info: ChannelInfo, *, probe: str = "") -> list[Finding]:
    """Check an account live, in the platform's own terms; with `probe`, also in this chat."""

    hide = SecretMask(settings.secrets())

    async def work() -> list[Finding]:
        make: MakePlatform = resolve_name(info.factory)
        platform = make(make_context(settings, info, id_="test"))
        try:
            async with asyncio.timeout(CHECK_SECONDS):
                identity = await platform.start()
                text = f"connected as {identity.name or identity.id}"
                text += f" ({identity.details})" if identity.details else ""
                findings = [Finding(ok=True, code="identity", text=text)]
                findings += await platform.check()
                if probe:
                    findings += await platform.probe(probe)
                return findings
        except ChannelDown as error:
            return [Finding(ok=False, code=error.code, text=error.reason, hint=error.hint)]
        except (OSError, TimeoutError) as error:
            text = f"the platform is not reachable: {str(error) or 'no answer in time'}"
            return [Finding(ok=False, code="unreachable", text=text)]
        finally:
            await platform.close()

    return [
        replace(each, text=hide(each.text), hint=hide(each.hint)) for each in asyncio.run(work())
    ]


def find_channel(name: str, settings: Settings) -> ChannelInfo:
    """The channel or account of this name, which must have a client and its required settings."""
    info = CHANNELS.find(name)
    if isinstance(info, LoadProblem):
        raise ServiceFailed(str(info), hint="Fix or reinstall the package.")
    if info is None or not info.factory:
        known = (*CHANNELS.built_in.values(), *CHANNELS.plugins())
        clients = [each.name for each in known if each.factory]
        raise UnknownService(
            f"channel {name[:40]!r} has no client",
            hint=f"Channels with a client: {', '.join(clients)}."
            if clients
            else "Install a package with a client for this channel.",
        )
    if missing := [f"{name}.{each}" for each in info.missing(settings.account(name))]:
        raise BadSetting(
            f"channel {name!r} needs the setting {missing[0]}",
            hint=f"Run `bullpen config set {missing[0]}`, or set {account_variable(missing[0])} "
            "in the environment.",
        )
    return info


def run(store: Store, info: ChannelInfo) -> None:
    """Serve the channel until SIGTERM or SIGINT; a client that ends earlier is an error."""
    signals = StopSignals()
    process = ChannelProcess(store, info, signals.set)
    process.start()
    signals.wait()
    process.stop()
    if process.failed:
        raise ServiceFailed(f"the client of channel {info.name!r} ended unexpectedly")
