"""Custom providers as clients send and read them; their keys are never shown."""

from __future__ import annotations

from pydantic import BaseModel, Field, RootModel

from bullpen.api.context import reach
from bullpen.api.roster.body import Body, Name, Place
from bullpen.core.errors import BadProvider
from bullpen.core.ids import check_name
from bullpen.core.masking import MASK, mask, mask_url
from bullpen.core.roster.custom_providers import (
    CustomProvider,
    CustomProviderChange,
    Harness,
    add_custom_provider,
    change_custom_provider,
    find_custom_provider,
    list_custom_providers,
)
from bullpen.core.store.transaction import Transaction


class ProviderBody(Body):
    """A custom provider, or what of it is to be changed."""

    name: Name | None = None
    harness: Harness | None = None
    base_url: Place | None = None
    api_key: Place | None = Field(None, description="left out, or as it is shown: it stays")
    model: Name | None = None


class ProviderAnswer(BaseModel):
    """A custom provider; its key is never shown."""

    name: str
    harness: Harness
    base_url: str
    api_key: str
    model: str

    @classmethod
    def of(cls, provider: CustomProvider) -> ProviderAnswer:
        """The provider, as it is shown."""
        return cls(
            name=provider.name,
            harness=provider.harness,
            base_url=mask_url(provider.base_url),
            api_key=mask(provider.api_key),
            model=provider.model,
        )


class ProviderMap(RootModel[dict[str, ProviderAnswer]]):
    """Custom providers by their ids."""


def provider_map(tx: Transaction) -> ProviderMap:
    """The custom providers."""
    return ProviderMap({each.id: ProviderAnswer.of(each) for each in list_custom_providers(tx)})


def put_provider(tx: Transaction, provider_id: str, body: ProviderBody) -> CustomProvider:
    """Make `custom:<id>` known, or change what is sent of it."""
    reach(None)
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
    known = find_custom_provider(tx, check_name(provider_id))
    if known is not None:
        return change_custom_provider(tx, provider_id, **change)
    if not {"harness", "base_url", "api_key"} <= change.keys():
        raise BadProvider(
            f"{provider_id} is new, and has no harness, address or key",
            hint="Send `harness`, `base_url` and `api_key`.",
        )
    made = CustomProvider(id=provider_id, **change)
    add_custom_provider(tx, made)
    return made
