"""What can answer for agents, and for which it does."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from bullpen.core.errors import UnknownProvider
from bullpen.core.masking import mask_url
from bullpen.core.roster.custom_providers import PREFIX, list_custom_providers
from bullpen.core.roster.find import list_agents
from bullpen.core.roster.programs import PROGRAMS
from bullpen.core.roster.provider_names import ALIASES, BUILT_IN, plugin_names
from bullpen.core.settings import Settings
from bullpen.core.store.transaction import Transaction


class Origin(StrEnum):
    """Where a provider comes from."""

    BUILT_IN = "built_in"
    PLUGIN = "plugin"
    CUSTOM = "custom"
    MISSING = "missing"
    """Agents name it, and it is not there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Available:
    """Something that answers for agents."""

    provider: str
    origin: Origin
    name: str = ""
    program: str | None = None
    """The command line that it needs."""
    configured: bool = True
    """Whether Bullpen has what it needs to sign in; a command line may have done so by itself."""
    base_url: str = ""
    model: str = ""
    """Which it takes for agents that have none of their own; empty is its own choice."""
    agents: tuple[str, ...] = ()


def list_available(tx: Transaction) -> list[Available]:
    """All of them, those of plugins and those that were added last."""
    agents: dict[str, tuple[str, ...]] = {}
    for each in list_agents(tx):
        agents[each.provider] = (*agents.get(each.provider, ()), each.id)
    found = [
        Available(
            provider=name,
            origin=Origin.BUILT_IN,
            program=name if name in PROGRAMS else None,
            configured=signs_in(name, tx.settings),
            agents=agents.pop(name, ()),
        )
        for name in BUILT_IN
    ]
    found += [
        Available(provider=name, origin=Origin.PLUGIN, agents=agents.pop(name, ()))
        for name in plugin_names()
    ]
    found += [
        Available(
            provider=PREFIX + each.id,
            origin=Origin.CUSTOM,
            name=each.name,
            program=each.harness.value,
            base_url=mask_url(each.base_url),
            model=each.model,
            agents=agents.pop(PREFIX + each.id, ()),
        )
        for each in list_custom_providers(tx)
    ]
    return found + [
        Available(provider=name, origin=Origin.MISSING, configured=False, agents=of_it)
        for name, of_it in sorted(agents.items())
    ]


def get_available(tx: Transaction, given: str) -> Available:
    """The one of this name; a service that was added also without `custom:` before its id."""
    name = ALIASES.get(given, given)
    found = {each.provider: each for each in list_available(tx)}
    if name not in found and PREFIX + name not in found:
        raise UnknownProvider(f"there is no provider {given[:60]!r}")
    return found.get(name) or found[PREFIX + name]


def signs_in(provider: str, settings: Settings) -> bool:
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
