"""/api/providers and /api/custom-providers."""

from __future__ import annotations

import os

from pydantic import BaseModel, Field, RootModel

from bullpen.api.context import api, read, require_reach, write
from bullpen.api.route import ADMIN, READ, Routes
from bullpen.api.schemas import Answer, Done, LenientBody, LongText, Rows, ShortText
from bullpen.core.errors import BadProvider, NameTaken, NotFound
from bullpen.core.ids import check_name
from bullpen.core.roster.providers import (
    CUSTOM_PREFIX,
    CustomProvider,
    CustomProviderChange,
    Harness,
    ProviderOrigin,
    add_custom_provider,
    change_custom_provider,
    find_custom_provider,
    get_custom_provider,
    has_credentials,
    installed_providers,
    list_custom_providers,
    remove_custom_provider,
)
from bullpen.core.store.transaction import Transaction
from bullpen.core.text import MASK, mask, mask_url
from bullpen.ops.services.search_path import search_path

routes = Routes("providers", "Providers, built-in and custom.")


class ProviderBody(LenientBody):
    """A new custom provider, or the fields of a provider to change."""

    name: ShortText | None = None
    harness: Harness | None = None
    base_url: LongText | None = None
    api_key: LongText | None = Field(
        None, description="The key; omitted, or the mask that is shown: no change."
    )
    model: ShortText | None = None


class ProviderAnswer(Answer):
    """A custom provider, with its key masked."""

    name: str
    harness: Harness
    base_url: str
    api_key: str
    model: str


class ProviderMap(RootModel[dict[str, ProviderAnswer]]):
    """Custom providers by their ids."""


class Available(Answer):
    """A provider."""

    name: str
    origin: ProviderOrigin
    program: str | None = Field(description="The program that it needs.")
    installed: bool = Field(description="Whether the program is installed; true if it needs none.")
    configured: bool = Field(
        description="Whether Bullpen has credentials for it. A program may have its own login."
    )


class AvailableList(Rows[Available]):
    """Providers."""


class ProviderPath(BaseModel):
    """Selects a custom provider."""

    provider_id: str = Field(description="The provider's id; agents use it as `custom:<id>`.")


class ProviderDone(Done):
    """The provider after the change."""

    provider: ProviderAnswer


@routes.get("/api/providers", READ)
def providers() -> AvailableList:
    """List the providers, and whether each is ready to use."""
    require_reach(None)
    with read() as tx:
        custom = list_custom_providers(tx)
    settings = api().settings
    available = [
        _available(each.name, origin, each.program, configured=has_credentials(each, settings))
        for origin, each in installed_providers()
    ]
    available += [
        _available(
            CUSTOM_PREFIX + each.id, ProviderOrigin.CUSTOM, each.harness.value, configured=True
        )
        for each in custom
    ]
    return AvailableList.of(available)


@routes.get("/api/custom-providers", READ)
def custom_providers() -> ProviderMap:
    """List the custom providers by id, with their keys masked."""
    require_reach(None)
    with read() as tx:
        return provider_map(tx)


@routes.get("/api/custom-providers/<provider_id>", READ, NotFound)
def custom_provider(path: ProviderPath) -> ProviderAnswer:
    """Get a custom provider, with its key masked."""
    require_reach(None)
    with read() as tx:
        return _provider_answer(get_custom_provider(tx, path.provider_id))


@routes.put("/api/custom-providers/<provider_id>", ADMIN, NameTaken)
def put(path: ProviderPath, body: ProviderBody) -> ProviderDone:
    """Create or change a custom provider.

    For an existing provider, omitted fields are unchanged, and so is a key that is sent back as its
    mask.
    """
    with write() as tx:
        return ProviderDone(provider=_provider_answer(put_provider(tx, path.provider_id, body)))


@routes.delete("/api/custom-providers/<provider_id>", ADMIN, NotFound)
def remove(path: ProviderPath) -> Done:
    """Delete a custom provider and its key.

    Agents that use it are paused at their next message.
    """
    require_reach(None)
    with write() as tx:
        remove_custom_provider(tx, path.provider_id)
    return Done()


def provider_map(tx: Transaction) -> ProviderMap:
    """Return the custom providers."""
    return ProviderMap({each.id: _provider_answer(each) for each in list_custom_providers(tx)})


def put_provider(tx: Transaction, provider_id: str, body: ProviderBody) -> CustomProvider:
    """Add `custom:<id>`, or change the given fields."""
    require_reach(None)
    change = CustomProviderChange()
    if body.name is not None:
        change["name"] = body.name
    if body.harness is not None:
        change["harness"] = body.harness
    if body.base_url is not None and MASK not in body.base_url:
        change["base_url"] = body.base_url
    if body.api_key is not None and body.api_key != MASK:
        change["api_key"] = body.api_key
    if body.model is not None:
        change["model"] = body.model
    existing = find_custom_provider(tx, check_name(provider_id))
    if existing is not None:
        return change_custom_provider(tx, provider_id, **change)
    if not {"harness", "base_url", "api_key"} <= change.keys():
        raise BadProvider(
            f"new custom provider {provider_id!r} requires a harness, a base URL and an API key",
            hint="Send `harness`, `base_url` and `api_key`.",
        )
    new = CustomProvider(id=provider_id, **change)
    add_custom_provider(tx, new)
    return new


def _provider_answer(provider: CustomProvider) -> ProviderAnswer:
    return ProviderAnswer.from_row(
        provider, base_url=mask_url(provider.base_url), api_key=mask(provider.api_key)
    )


def _available(
    name: str, origin: ProviderOrigin, program: str | None, *, configured: bool
) -> Available:
    path = search_path(api().settings, os.environ)
    installed = program is None or path.find(program) is not None
    return Available(
        name=name, origin=origin, program=program, installed=installed, configured=configured
    )
