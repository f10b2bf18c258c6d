"""What can answer for agents, and for which it does."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from bullpen.core.errors import UnknownProvider
from bullpen.core.masking import mask_url
from bullpen.core.roster.custom_providers import CUSTOM_PREFIX, list_custom_providers
from bullpen.core.roster.find import list_agents
from bullpen.core.roster.programs import PROGRAMS
from bullpen.core.roster.provider_names import (
    BUILT_IN_PROVIDERS,
    PROVIDER_ALIASES,
    plugin_provider_names,
)
from bullpen.core.settings import Settings
from bullpen.core.store.transaction import Transaction


class ProviderOrigin(StrEnum):
    """Where a provider comes from."""

    BUILT_IN = "built_in"
    PLUGIN = "plugin"
    CUSTOM = "custom"
    MISSING = "missing"
    """Agents name it, and it is not there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderSummary:
    """Something that answers for agents."""

    provider: str
    origin: ProviderOrigin
    name: str = ""
    program: str | None = None
    """The command line that it needs."""
    configured: bool = True
    """Whether Bullpen has what it needs to sign in; a command line may have done so by itself."""
    base_url: str = ""
    model: str = ""
    """Which it takes for agents that have none of their own; empty is its own choice."""
    agents: tuple[str, ...] = ()


def list_providers(tx: Transaction) -> list[ProviderSummary]:
    """All of them, those of plugins and those that were added last."""
    agents: dict[str, tuple[str, ...]] = {}
    for each in list_agents(tx):
        agents[each.provider] = (*agents.get(each.provider, ()), each.id)
    found = [
        ProviderSummary(
            provider=name,
            origin=ProviderOrigin.BUILT_IN,
            program=name if name in PROGRAMS else None,
            configured=has_credentials(name, tx.settings),
            agents=agents.pop(name, ()),
        )
        for name in BUILT_IN_PROVIDERS
    ]
    found += [
        ProviderSummary(provider=name, origin=ProviderOrigin.PLUGIN, agents=agents.pop(name, ()))
        for name in plugin_provider_names()
    ]
    found += [
        ProviderSummary(
            provider=CUSTOM_PREFIX + each.id,
            origin=ProviderOrigin.CUSTOM,
            name=each.name,
            program=each.harness.value,
            base_url=mask_url(each.base_url),
            model=each.model,
            agents=agents.pop(CUSTOM_PREFIX + each.id, ()),
        )
        for each in list_custom_providers(tx)
    ]
    return found + [
        ProviderSummary(
            provider=name, origin=ProviderOrigin.MISSING, configured=False, agents=of_it
        )
        for name, of_it in sorted(agents.items())
    ]


def get_provider(tx: Transaction, given: str) -> ProviderSummary:
    """The one of this name; a service that was added also without `custom:` before its id."""
    name = PROVIDER_ALIASES.get(given, given)
    found = {each.provider: each for each in list_providers(tx)}
    if name not in found and CUSTOM_PREFIX + name not in found:
        raise UnknownProvider(f"there is no provider {given[:60]!r}")
    return found.get(name) or found[CUSTOM_PREFIX + name]


def has_credentials(provider: str, settings: Settings) -> bool:
    """Whether the settings have what a built-in provider needs to sign in."""
    match provider:
        case "claude":
            return bool(settings.anthropic_api_key or settings.anthropic_oauth_token)
        case "codex":
            return bool(settings.openai_api_key)
        case "opencode":
            return False
        case _:
            return True
