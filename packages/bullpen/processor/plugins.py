"""Plugins: Python files in the home's `plugins` directory, and entry points of other packages.

A plugin may have three functions. `activate(context)` is called once, before the first claim.
`transform_incoming(text, about)` changes the text that an agent reads, and
`transform_outgoing(text, about)` the text of its answer. They return a text, or a text and a
dictionary that is sent with the answer. A plugin that fails is logged and skipped. A file or
package whose name begins with `_` or `.` is not loaded. The processor loads plugins when it starts.
"""

from __future__ import annotations

import importlib.util
import json
import logging
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import entry_points
from pathlib import Path
from typing import Protocol

from bullpen.core.events.log import EventRecord
from bullpen.core.files import check_home
from bullpen.core.message import Message
from bullpen.core.registry import PLUGIN_GROUP, plugin_files
from bullpen.core.strict_json import check_json_column
from bullpen.core.text import sanitise_text

log = logging.getLogger(__name__)

ALL_EVENTS = "*"

MAX_METADATA_CHARS = 65_536
"""The longest JSON that one plugin may add to an answer."""

MAX_PENDING_METADATA = 1024
"""The oldest is dropped above this: a message whose run fails may never be answered."""

Listener = Callable[[EventRecord], object]


@dataclass(frozen=True, slots=True)
class About:
    """The message of a text."""

    channel: str
    sender: str
    message_id: str
    agent: str
    original_message: str


Transform = Callable[[str, About], object]


@dataclass(slots=True)
class PluginContext:
    """The argument of `activate`."""

    home: Path
    log: logging.Logger
    listeners: list[tuple[str, Listener]] = field(default_factory=list)

    def on(self, event: str, listener: Listener) -> None:
        """Call the listener with every event of this type; `*` is all types."""
        self.listeners.append((event, listener))


class Module(Protocol):
    """A loaded plugin; every function is optional."""

    __name__: str


class Plugins:
    """The plugins of this process, ordered by name."""

    def __init__(self) -> None:
        self._incoming: list[tuple[str, Transform]] = []
        self._outgoing: list[tuple[str, Transform]] = []
        self._listeners: list[tuple[str, str, Listener]] = []
        self._incoming_metadata: dict[str, dict[str, object]] = {}

    @classmethod
    def load(cls, home: Path) -> Plugins:
        """Load and activate all plugins; none if other users can write to the home."""
        check_home(home)
        plugins = cls()
        for name, load in sorted(_find_plugins(home), key=lambda each: each[0]):
            try:
                plugins.add(name, load(), home)
            except (Exception, SystemExit):
                log.exception("plugin %s could not be loaded and is skipped", name)
        return plugins

    def add(self, name: str, module: object, home: Path) -> None:
        """Activate one plugin."""
        context = PluginContext(home, logging.getLogger(f"bullpen.plugin.{name}"))
        activate = getattr(module, "activate", None)
        if activate is not None:
            activate(context)
        self._listeners += [(name, event, listener) for event, listener in context.listeners]
        for hook, transforms in (
            ("transform_incoming", self._incoming),
            ("transform_outgoing", self._outgoing),
        ):
            transform = getattr(module, hook, None)
            if transform is not None:
                transforms.append((name, transform))
        log.info("plugin %s is loaded; changes to it need: bullpen restart processor", name)

    @property
    def listens(self) -> bool:
        """Whether a plugin listens to events."""
        return bool(self._listeners)

    def dispatch(self, event: EventRecord) -> None:
        """Call the listeners of this event."""
        for name, type_, listener in self._listeners:
            if type_ in (ALL_EVENTS, event.type):
                try:
                    listener(event)
                except Exception:
                    log.exception("plugin %s failed at %s", name, event.type)

    def incoming(self, message: Message, text: str) -> str:
        """The text of this message as the agent reads it."""
        text, metadata = self._transform(self._incoming, message, text)
        if metadata:
            while len(self._incoming_metadata) >= MAX_PENDING_METADATA:
                self._incoming_metadata.pop(next(iter(self._incoming_metadata), ""), None)
            self._incoming_metadata[message.message_id] = metadata
        return text

    def outgoing(self, message: Message, text: str) -> tuple[str, str | None]:
        """The text that people get, and the JSON that is sent with it."""
        text, metadata = self._transform(self._outgoing, message, text)
        metadata = {**self._incoming_metadata.pop(message.message_id, {}), **metadata}
        return text, _json(metadata) if metadata else None

    def _transform(
        self, transforms: list[tuple[str, Transform]], message: Message, text: str
    ) -> tuple[str, dict[str, object]]:
        about = About(
            channel=message.channel,
            sender=message.sender,
            message_id=message.message_id,
            agent=message.agent,
            original_message=message.message,
        )
        metadata: dict[str, object] = {}
        for name, transform in transforms:
            try:
                text, more = _check_result(transform(text, about))
                if len(_json(more)) > MAX_METADATA_CHARS:
                    raise ValueError(f"the metadata exceeds {MAX_METADATA_CHARS} characters")
            except Exception:
                log.exception("plugin %s failed and is skipped for this message", name)
            else:
                metadata.update(more)
        return text, metadata


def _check_result(result: object) -> tuple[str, dict[str, object]]:
    text, more = result if isinstance(result, tuple) else (result, {})
    if not isinstance(text, str) or not isinstance(more, dict):
        raise TypeError(
            f"a plugin must return a text, or a text and a dictionary, not {result!r}"[:200]
        )
    return sanitise_text(text), more


def _json(metadata: dict[str, object]) -> str:
    return check_json_column(json.dumps(metadata, allow_nan=False), "the metadata of plugins")


def _find_plugins(home: Path) -> Iterator[tuple[str, Callable[[], object]]]:
    for name, path in plugin_files(home):
        yield name, partial(_module, name, path)
    for point in entry_points(group=PLUGIN_GROUP):
        yield point.name, point.load


def _module(name: str, path: Path) -> object:
    spec = importlib.util.spec_from_file_location(f"bullpen_plugin_{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # A package's own imports find it there, and so do its dataclasses.
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[spec.name]
        raise
    return module
