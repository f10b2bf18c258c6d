"""Which provider answers for an agent: the built-in ones, custom ones, and those of plugins."""

from __future__ import annotations

import threading
from collections.abc import Callable
from importlib.metadata import entry_points

from bullpen.core.errors import UnknownProvider
from bullpen.core.roster.providers import (
    BUILT_IN_PROVIDERS,
    CUSTOM_PREFIX,
    ENTRY_POINT_GROUP,
    CustomProvider,
    Harness,
)
from bullpen.core.settings import Settings
from bullpen.processor.children.child import Launcher
from bullpen.processor.providers.base import Provider
from bullpen.processor.providers.claude import Claude
from bullpen.processor.providers.codex import Codex
from bullpen.processor.providers.command_line import CliProvider
from bullpen.processor.providers.echo import Echo, Http
from bullpen.processor.providers.opencode import OpenCode

Make = Callable[[Settings, Launcher], Provider]


class Providers:
    """The providers of this process, each made when it is first asked for."""

    def __init__(self, settings: Settings, launcher: Launcher) -> None:
        self._settings = settings
        self._launcher = launcher
        self._made: dict[str, Provider] = {}
        self._lock = threading.Lock()

    def get(self, name: str, custom: CustomProvider | None = None) -> Provider:
        """The provider of this name; a custom one is its command line."""
        if name.startswith(CUSTOM_PREFIX):
            if custom is None:
                raise UnknownProvider(f"there is no provider {name}")
            name = custom.harness.value
        with self._lock:
            if name not in self._made:
                self._made[name] = self._make(name)
            return self._made[name]

    def _make(self, name: str) -> Provider:
        settings, launcher = self._settings, self._launcher
        match name:
            case "echo":
                return Echo(settings.default_agent)
            case "http":
                return Http()
            case Harness.CLAUDE:
                return CliProvider(Claude(settings), launcher, settings)
            case Harness.CODEX:
                return CliProvider(Codex(settings), launcher, settings)
            case "opencode":
                return CliProvider(OpenCode(), launcher, settings)
        for point in entry_points(group=ENTRY_POINT_GROUP, name=name):
            make: Make = point.load()
            return make(settings, launcher)
        raise UnknownProvider(
            f"there is no provider {name!r}", hint=f"Built in are {', '.join(BUILT_IN_PROVIDERS)}."
        )
