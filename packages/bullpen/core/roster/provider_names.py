"""The names of providers: what is built in, what plugins bring, and services that were added."""

from __future__ import annotations

from importlib.metadata import entry_points

from bullpen.core.errors import BadProvider
from bullpen.core.roster.agent import ECHO, HTTP
from bullpen.core.roster.custom_providers import CUSTOM_PREFIX, find_custom_provider
from bullpen.core.store.transaction import Transaction
from bullpen.core.text import check_text

ENTRY_POINT_GROUP = "bullpen.providers"
"""Entry points: a name, and a callable that takes settings and launcher and gives a Provider."""

BUILT_IN_PROVIDERS = (ECHO, "claude", "codex", "opencode", HTTP)

PROVIDER_ALIASES = {"anthropic": "claude", "openai": "codex"}
"""Companies that are named for their command lines."""


def plugin_provider_names() -> list[str]:
    """The providers that plugins bring."""
    return sorted(
        {point.name for point in entry_points(group=ENTRY_POINT_GROUP)} - set(BUILT_IN_PROVIDERS)
    )


def resolve_provider_name(tx: Transaction, given: str) -> str:
    """The name under which this provider is known; one that does not exist is refused."""
    name = check_text(
        PROVIDER_ALIASES.get(given, given), tx.settings.message_bytes, "the provider's name"
    )
    if name in BUILT_IN_PROVIDERS:
        return name
    if name.startswith(CUSTOM_PREFIX):
        if find_custom_provider(tx, name.removeprefix(CUSTOM_PREFIX)) is not None:
            return name
    elif name in plugin_provider_names():
        return name
    raise BadProvider(
        f"there is no provider {name[:60]!r}",
        hint=f"Built in are {', '.join(BUILT_IN_PROVIDERS)}; a service that was added is {CUSTOM_PREFIX}<id>.",
    )
