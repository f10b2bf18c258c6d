"""/api/providers: the providers that there are, and custom ones."""

from __future__ import annotations

import shutil

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

routes = Routes("providers", "What can answer for an agent.")


class ProviderBody(LenientBody):
    """A custom provider, or what of it is to be changed."""

    name: ShortText | None = None
    harness: Harness | None = None
    base_url: LongText | None = None
    api_key: LongText | None = Field(None, description="left out, or as it is shown: it stays")
    model: ShortText | None = None


class ProviderAnswer(Answer):
    """A custom provider; its key is never shown."""

    name: str
    harness: Harness
    base_url: str
    api_key: str
    model: str


class ProviderMap(RootModel[dict[str, ProviderAnswer]]):
    """Custom providers by their ids."""


class Available(Answer):
    """Something that can answer."""

    name: str
    origin: ProviderOrigin
    program: str | None = Field(description="the command line that it needs")
    installed: bool = Field(description="whether that command line is there; true if it needs none")
    configured: bool = Field(
        description="whether Bullpen has what it needs to sign in; a command line may also have "
        "signed in by itself"
    )


class AvailableList(Rows[Available]):
    """All that can answer."""


class ProviderPath(BaseModel):
    """Which provider."""

    provider_id: str = Field(description="the provider's id; agents name it `custom:<id>`")


class ProviderDone(Done):
    """The provider as it is now."""

    provider: ProviderAnswer


@routes.get("/api/providers", READ)
def providers() -> AvailableList:
    """List all that can answer, and whether it is ready to."""
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
    """List the services that were added, by their ids; their keys are masked."""
    require_reach(None)
    with read() as tx:
        return provider_map(tx)


@routes.get("/api/custom-providers/<provider_id>", READ, NotFound)
def custom_provider(path: ProviderPath) -> ProviderAnswer:
    """Show one service that was added; its key is masked."""
    require_reach(None)
    with read() as tx:
        return _provider_answer(get_custom_provider(tx, path.provider_id))


@routes.put("/api/custom-providers/<provider_id>", ADMIN, NameTaken)
def put(path: ProviderPath, body: ProviderBody) -> ProviderDone:
    """Add a service, or change one.

    Of one that exists, what is not sent stays; a key that is sent as it is shown stays as well.
    """
    with write() as tx:
        return ProviderDone(provider=_provider_answer(put_provider(tx, path.provider_id, body)))


@routes.delete("/api/custom-providers/<provider_id>", ADMIN, NotFound)
def remove(path: ProviderPath) -> Done:
    """Forget a service and its key; agents that name it are paused with their next message."""
    require_reach(None)
    with write() as tx:
        remove_custom_provider(tx, path.provider_id)
    return Done()


def provider_map(tx: Transaction) -> ProviderMap:
    """The custom providers."""
    return ProviderMap({each.id: _provider_answer(each) for each in list_custom_providers(tx)})


def put_provider(tx: Transaction, provider_id: str, body: ProviderBody) -> CustomProvider:
    """Add `custom:<id>`, or change the fields that were sent."""
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
            f"{provider_id} is new, and has no harness, address or key",
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
    installed = program is None or shutil.which(program) is not None
    return Available(
        name=name, origin=origin, program=program, installed=installed, configured=configured
    )
