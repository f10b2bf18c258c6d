"""The providers of a process, found in the registry by name, and made when first used."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pkgutil import resolve_name

from bullpen.core.errors import UnknownProvider
from bullpen.core.registry import PROVIDERS, LoadProblem
from bullpen.core.roster.providers import BUILT_IN_PROVIDERS, CUSTOM_PREFIX, CustomProvider
from bullpen.core.settings import Settings
from bullpen.core.text import describe_unknown
from bullpen.processor.children.child import Launcher
from bullpen.processor.providers.base import Provider

ProviderFactory = Callable[[Settings, Launcher], Provider]
BROKEN_HINT = "Fix or reinstall the package, or change the provider of the agent."


class Providers:
    """The providers of this process, each made once."""

    def __init__(self, settings: Settings, launcher: Launcher) -> None:
        self._settings = settings
        self._launcher = launcher
        self._made: dict[str, Provider] = {}
        self._lock = threading.Lock()

    def get(self, name: str, custom: CustomProvider | None = None) -> Provider:
        """The provider of this name; a custom one uses its command line."""
        if name.startswith(CUSTOM_PREFIX):
            if custom is None:
                raise UnknownProvider(f"provider {name!r} does not exist")
            name = custom.harness.value
        with self._lock:
            if name not in self._made:
                self._made[name] = _factory(name)(self._settings, self._launcher)
            return self._made[name]


def _factory(name: str) -> ProviderFactory:
    info = PROVIDERS.find(name)
    if info is None:
        raise UnknownProvider(
            describe_unknown("provider", name, (*BUILT_IN_PROVIDERS, *PROVIDERS.plugin_names()))
        )
    if isinstance(info, LoadProblem):
        raise UnknownProvider(str(info), hint=BROKEN_HINT)
    try:
        factory: ProviderFactory = resolve_name(info.factory)
    except (Exception, SystemExit) as error:
        raise UnknownProvider(
            f"the provider {name} cannot be loaded: {type(error).__name__}: {error}",
            hint=BROKEN_HINT,
        ) from error
    return factory
