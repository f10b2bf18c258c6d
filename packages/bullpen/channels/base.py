"""The protocol of a channel's client, and its context."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from bullpen.core.answers.attachments import OpenFile, RefusedFile, open_response_files
from bullpen.core.outbox.delivery import Response
from bullpen.core.registry import ChannelInfo
from bullpen.core.settings import Settings
from bullpen.core.store.base import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelContext:
    """The context of a channel's client."""

    info: ChannelInfo
    account: str
    """The account that it serves, such as `slack` or `slack-sage`."""
    store: Store
    settings: Settings
    environ: Mapping[str, str]
    log: logging.Logger
    on_commit: Callable[[str, Callable[[], None]], None]
    """Registers a callback for commits on a topic, such as `responses:slack`.

    The callback may also be called without a commit."""

    def open_files(
        self, delivery: Response
    ) -> AbstractContextManager[tuple[OpenFile | RefusedFile, ...]]:
        """The files of a delivery, open until the block ends; a refused file has its reason."""
        return open_response_files(self.store, delivery)

    def setting(self, name: str) -> str:
        """A setting of the account, or its default; KeyError if there is none of this name."""
        return self.settings.account(self.account)[name]


class ChannelClient(Protocol):
    """Receives the messages of people on a channel, and delivers the responses to them."""

    def run(self, stop: threading.Event) -> None:
        """Serve the channel until `stop` is set. An end before that counts as a failure."""
        ...


ChannelFactory = Callable[[ChannelContext], ChannelClient]
