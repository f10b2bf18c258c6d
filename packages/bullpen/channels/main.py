"""A channel's process: its client, in a worker process that the supervisor starts and stops."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from pkgutil import resolve_name

from bullpen.channels.base import ChannelContext, ChannelFactory
from bullpen.core.background import StopSignals, WorkerProcess
from bullpen.core.errors import BadSetting, ServiceFailed, UnknownService
from bullpen.core.registry import CHANNELS, ChannelInfo, LoadProblem
from bullpen.core.settings import Settings
from bullpen.core.settings.accounts import account_variable
from bullpen.core.store.base import Store

log = logging.getLogger(__name__)

CLIENT_STOP_SECONDS = 10.0
LOOPS_STOP_SECONDS = 5.0


class ChannelProcess:
    """The client of one account, and the worker process around it."""

    def __init__(self, store: Store, info: ChannelInfo, ended: Callable[[], None]) -> None:
        """`ended` is called if the client ends before it is stopped."""
        self._name = info.name
        self._ended = ended
        self._stop = threading.Event()
        self._process = WorkerProcess(store, info.name)
        self.failed = False
        """Whether the client ended before it was stopped."""
        try:
            factory: ChannelFactory = resolve_name(info.factory)
            self._client = factory(
                ChannelContext(
                    info=info,
                    account=info.name,
                    store=store,
                    settings=store.settings,
                    environ=os.environ,
                    log=logging.getLogger(f"bullpen.channel.{info.name}"),
                    on_commit=self._process.on,
                )
            )
        except BaseException:
            self._process.stop(0)
            raise
        self._thread = threading.Thread(target=self._run, name="client", daemon=True)

    def start(self) -> None:
        """Start to serve the channel."""
        self._process.start()
        self._thread.start()

    def stop(self) -> None:
        """Stop the client and unregister; a client that does not stop ends with the process."""
        self._stop.set()
        self._thread.join(CLIENT_STOP_SECONDS)
        if self._thread.is_alive():
            log.warning("the client of %s does not stop in time", self._name)
        self._process.stop(LOOPS_STOP_SECONDS)

    def _run(self) -> None:
        try:
            self._client.run(self._stop)
        except Exception:
            log.exception("the client of %s failed", self._name)
        if not self._stop.is_set():
            self.failed = True
            self._ended()


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
