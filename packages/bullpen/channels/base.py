"""What a channel's client is, and what it is made with."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from bullpen.core.answers.attachments import OpenFile, RefusedFile, open_response_files
from bullpen.core.outbox.delivery import Response
from bullpen.core.registry import ChannelInfo, setting_value
from bullpen.core.settings import Settings
from bullpen.core.store.base import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelContext:
    """What the client of a channel is made with."""

    info: ChannelInfo
    account: str
    """Which of the channel's accounts it serves; empty is the only one."""
    store: Store
    settings: Settings
    environ: Mapping[str, str]
    log: logging.Logger
    on_commit: Callable[[str, Callable[[], None]], None]
    """Registers a callback for a topic, as `responses:slack`; any commit on it calls back.

    It may also be called when nothing was committed."""

    def open_files(
        self, delivery: Response
    ) -> AbstractContextManager[tuple[OpenFile | RefusedFile, ...]]:
        """The files of a delivery, open until the block ends; what may not be sent says why."""
        return open_response_files(self.store, delivery)

    def setting(self, name: str) -> str:
        """A setting of Bullpen's, or one of the channel's own: BULLPEN_NAME in the environment."""
        return setting_value(name, self.settings, self.environ)


class ChannelClient(Protocol):
    """Receives what people write on a channel, and delivers the responses to them."""

    def run(self, stop: threading.Event) -> None:
        """Serve the channel until `stop` is set. An end before that counts as a failure."""
        ...


ChannelFactory = Callable[[ChannelContext], ChannelClient]
