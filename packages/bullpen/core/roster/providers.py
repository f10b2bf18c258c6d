"""Providers: built-in ones, those of packages, and custom ones, which are added services."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import TypedDict, Unpack
from urllib.parse import urlsplit

from sqlalchemy import bindparam, delete, insert, select, update

from bullpen.core.errors import BadName, BadProvider, NameTaken, UnknownProvider
from bullpen.core.ids import check_name
from bullpen.core.models import CUSTOM_PROVIDERS
from bullpen.core.registry import PROVIDERS, ProviderInfo
from bullpen.core.roster.agents import list_agents
from bullpen.core.settings import Settings
from bullpen.core.store.statement import Statement, columns
from bullpen.core.store.transaction import Transaction
from bullpen.core.text import check_text, describe_unknown, mask_url

MAX_MODEL_NAME_CHARS = 200


def check_model(name: str, limit: int) -> str:
    """Return a valid model name; the empty one is the default of the provider."""
    check_text(name, limit, "the model's name")
    if (
        len(name) > MAX_MODEL_NAME_CHARS
        or name.startswith("-")
        or not name.isprintable()
        or " " in name
    ):
        raise BadName(
            f"invalid model name {name[:40]!r}",
            hint="Use one word without a leading -, such as sonnet; '' is the provider's default.",
        )
    return name


P = CUSTOM_PROVIDERS.c
CUSTOM_PREFIX = "custom:"


class Harness(StrEnum):
    """The command line that a custom provider uses."""

    CLAUDE = "claude"
    CODEX = "codex"


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomProvider:
    """A service: its address, its key, and the command line that works with it."""

    id: str
    name: str = ""
    harness: Harness
    base_url: str
    api_key: str = field(repr=False)
    model: str = ""


class CustomProviderChange(TypedDict, total=False):
    """The fields to change; the others stay."""

    name: str
    harness: Harness
    base_url: str
    api_key: str
    model: str


FIND: Statement[CustomProvider] = Statement(
    lambda: select(*columns(CustomProvider, CUSTOM_PROVIDERS)).where(P.id == bindparam("provider")),
    CustomProvider,
)
LIST: Statement[CustomProvider] = Statement(
    lambda: select(*columns(CustomProvider, CUSTOM_PROVIDERS)).order_by(P.id), CustomProvider
)
INSERT: Statement[None] = Statement(
    lambda: insert(CUSTOM_PROVIDERS).values({column.name: bindparam(column.name) for column in P})
)
UPDATE: Statement[None] = Statement(
    lambda: (
        update(CUSTOM_PROVIDERS)
        .where(P.id == bindparam("provider"))
        .values(
            {
                **{
                    each.name: bindparam(each.name)
                    for each in columns(CustomProvider, CUSTOM_PROVIDERS)
                    if each.name != "id"
                },
                "updated_at": bindparam("now"),
            }
        )
    )
)
DELETE: Statement[None] = Statement(
    lambda: delete(CUSTOM_PROVIDERS).where(P.id == bindparam("provider"))
)


def add_custom_provider(tx: Transaction, provider: CustomProvider) -> None:
    """Add the provider `custom:<id>`."""
    _check_custom_provider(tx, provider)
    if find_custom_provider(tx, provider.id) is not None:
        raise NameTaken(f"the provider {CUSTOM_PREFIX}{provider.id} already exists")
    values = {**asdict(provider), "harness": provider.harness.value}
    tx.write(INSERT, {**values, "created_at": tx.now, "updated_at": tx.now})


def change_custom_provider(
    tx: Transaction, provider_id: str, **change: Unpack[CustomProviderChange]
) -> CustomProvider:
    """Change the named fields, and return the provider."""
    before = get_custom_provider(tx, provider_id)
    changed = replace(before, **change)
    _check_custom_provider(tx, changed)
    if "api_key" not in change and _origin(before.base_url) != _origin(changed.base_url):
        raise BadProvider(
            f"a new address of {provider_id} needs a new key",
            hint="Give --key as well. The old key is not sent to another host.",
        )
    values = {**asdict(changed), "harness": changed.harness.value}
    del values["id"]
    tx.write(UPDATE, {**values, "provider": provider_id, "now": tx.now})
    return changed


def remove_custom_provider(tx: Transaction, provider_id: str) -> None:
    """Remove a provider; runs of its agents fail until they have another one."""
    get_custom_provider(tx, provider_id)
    tx.write(DELETE, {"provider": provider_id})


def find_custom_provider(tx: Transaction, provider_id: str) -> CustomProvider | None:
    """The provider of this id, or None."""
    return tx.one(FIND, {"provider": provider_id})


def get_custom_provider(tx: Transaction, provider_id: str) -> CustomProvider:
    """The provider of this id, which must exist."""
    check_text(provider_id, tx.settings.message_bytes, "the provider's id")
    provider = find_custom_provider(tx, provider_id)
    if provider is None:
        custom = (CUSTOM_PREFIX + each.id for each in list_custom_providers(tx))
        raise UnknownProvider(describe_unknown("provider", CUSTOM_PREFIX + provider_id, custom))
    return provider


def list_custom_providers(tx: Transaction) -> list[CustomProvider]:
    """All custom providers, by id."""
    return tx.all(LIST, {})


def _origin(address: str) -> tuple[str, str]:
    """The host that gets the key, and the scheme: http would show the key to the network."""
    url = urlsplit(address)
    return url.scheme, url.netloc.lower()


def _check_custom_provider(tx: Transaction, provider: CustomProvider) -> None:
    check_name(provider.id)
    check_model(provider.model, tx.settings.message_bytes)
    for text in (provider.name, provider.base_url, provider.api_key):
        check_text(text, tx.settings.message_bytes, "what describes the provider")
    try:
        address = urlsplit(provider.base_url)
    except ValueError as error:
        raise BadProvider(f"invalid address {mask_url(provider.base_url)!r}: {error}") from None
    if "@" in address.netloc:
        # Addresses are shown; keys are not.
        raise BadProvider(f"the address of {provider.id} contains a name or password")
    if address.scheme not in ("http", "https") or not address.hostname:
        raise BadProvider(f"invalid address {mask_url(provider.base_url)!r}")
    if not provider.api_key.strip():
        raise BadProvider(f"the key of {provider.id} is empty")


BUILT_IN_PROVIDERS = tuple(PROVIDERS.built_in)

PROVIDER_ALIASES = {
    alias: info.name for info in PROVIDERS.built_in.values() for alias in info.aliases
}
"""Names of companies, for their command lines."""


def resolve_provider_name(tx: Transaction, given: str) -> str:
    """The name of the provider with this name or alias; an unknown one is an error."""
    name = check_text(
        PROVIDER_ALIASES.get(given, given), tx.settings.message_bytes, "the provider's name"
    )
    if name in BUILT_IN_PROVIDERS:
        return name
    if name.startswith(CUSTOM_PREFIX):
        if find_custom_provider(tx, name.removeprefix(CUSTOM_PREFIX)) is not None:
            return name
    elif name in PROVIDERS.plugin_names():
        return name
    known = (
        each.provider for each in list_providers(tx) if each.origin is not ProviderOrigin.MISSING
    )
    raise BadProvider(
        describe_unknown("provider", given, known),
        hint=f"Use {', '.join(BUILT_IN_PROVIDERS)}, or {CUSTOM_PREFIX}ID for a service that was "
        "added. To list all: bullpen provider list",
    )


class ProviderOrigin(StrEnum):
    """Where a provider comes from."""

    BUILT_IN = "built_in"
    PLUGIN = "plugin"
    CUSTOM = "custom"
    MISSING = "missing"
    """Used by agents, but it does not exist."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderSummary:
    """A provider as lists show it."""

    provider: str
    origin: ProviderOrigin
    name: str = ""
    program: str | None = None
    """The command line that it needs."""
    configured: bool = True
    """Whether the settings contain its key; a program can be logged in without one."""
    base_url: str = ""
    model: str = ""
    """The model for agents without one; empty is the provider's default."""
    agents: tuple[str, ...] = ()


def list_providers(tx: Transaction) -> list[ProviderSummary]:
    """All providers: built-in ones, then those of packages, custom ones, and missing ones."""
    agents: dict[str, tuple[str, ...]] = {}
    for each in list_agents(tx):
        agents[each.provider] = (*agents.get(each.provider, ()), each.id)
    summaries = [
        ProviderSummary(
            provider=info.name,
            origin=origin,
            program=info.program,
            configured=has_credentials(info, tx.settings),
            agents=agents.pop(info.name, ()),
        )
        for origin, info in installed_providers()
    ]
    summaries += [
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
    return summaries + [
        ProviderSummary(
            provider=name, origin=ProviderOrigin.MISSING, configured=False, agents=of_it
        )
        for name, of_it in sorted(agents.items())
    ]


def get_provider(tx: Transaction, given: str) -> ProviderSummary:
    """The provider of this name; a custom one is also found by its id alone."""
    name = PROVIDER_ALIASES.get(given, given)
    found = {each.provider: each for each in list_providers(tx)}
    if name not in found and CUSTOM_PREFIX + name not in found:
        raise UnknownProvider(describe_unknown("provider", given, found))
    return found.get(name) or found[CUSTOM_PREFIX + name]


def installed_providers() -> list[tuple[ProviderOrigin, ProviderInfo]]:
    """The built-in providers, and those of packages that can be loaded."""
    return [
        *((ProviderOrigin.BUILT_IN, each) for each in PROVIDERS.built_in.values()),
        *((ProviderOrigin.PLUGIN, each) for each in PROVIDERS.plugins()),
    ]


def has_credentials(provider: ProviderInfo, settings: Settings) -> bool:
    """Whether the settings contain a key for this provider."""
    if provider.program is None:
        return True
    return provider.login is not None and provider.login.configured(settings)
