"""Providers: what can answer for an agent. No secret of theirs is ever shown."""

from __future__ import annotations

import shutil

from pydantic import BaseModel, Field, RootModel

from bullpen.api.context import api, reach, read, write
from bullpen.api.models import Done
from bullpen.api.roster.providers import (
    ProviderAnswer,
    ProviderBody,
    ProviderMap,
    provider_map,
    put_provider,
)
from bullpen.api.route import blueprint, route
from bullpen.core.access.key import Scope
from bullpen.core.errors import NameTaken, NotFound
from bullpen.core.roster.available import ProviderOrigin, has_credentials
from bullpen.core.roster.custom_providers import (
    CUSTOM_PREFIX,
    get_custom_provider,
    list_custom_providers,
    remove_custom_provider,
)
from bullpen.core.roster.programs import PROGRAMS
from bullpen.core.roster.provider_names import BUILT_IN_PROVIDERS, plugin_provider_names

ROUTES = blueprint("providers", "What can answer for an agent.")


class Available(BaseModel):
    """Something that can answer."""

    name: str
    origin: ProviderOrigin
    program: str | None = Field(description="the command line that it needs")
    installed: bool = Field(description="whether that command line is there; true if it needs none")
    configured: bool = Field(
        description="whether Bullpen has what it needs to sign in; a command line may also have "
        "signed in by itself"
    )


class AvailableList(RootModel[list[Available]]):
    """All that can answer."""


class ProviderPath(BaseModel):
    """Which provider."""

    provider_id: str = Field(description="the provider's id; agents name it `custom:<id>`")


class ProviderDone(Done):
    """The provider as it is now."""

    provider: ProviderAnswer


@route(ROUTES, "GET", "/api/providers", scope=Scope.READ, answer=AvailableList)
def providers() -> AvailableList:
    """List all that can answer, and whether it is ready to."""
    reach(None)
    with read() as tx:
        custom = list_custom_providers(tx)
    found = [_available(name, ProviderOrigin.BUILT_IN) for name in BUILT_IN_PROVIDERS]
    found += [_available(name, ProviderOrigin.PLUGIN) for name in plugin_provider_names()]
    found += [
        _available(
            CUSTOM_PREFIX + each.id, ProviderOrigin.CUSTOM, each.harness.value, configured=True
        )
        for each in custom
    ]
    return AvailableList(found)


@route(ROUTES, "GET", "/api/custom-providers", scope=Scope.READ, answer=ProviderMap)
def custom_providers() -> ProviderMap:
    """List the services that were added, by their ids; their keys are masked."""
    reach(None)
    with read() as tx:
        return provider_map(tx)


@route(
    ROUTES,
    "GET",
    "/api/custom-providers/<provider_id>",
    scope=Scope.READ,
    answer=ProviderAnswer,
    errors=(NotFound,),
)
def custom_provider(path: ProviderPath) -> ProviderAnswer:
    """Show one service that was added; its key is masked."""
    reach(None)
    with read() as tx:
        return ProviderAnswer.of(get_custom_provider(tx, path.provider_id))


@route(
    ROUTES,
    "PUT",
    "/api/custom-providers/<provider_id>",
    scope=Scope.ADMIN,
    answer=ProviderDone,
    errors=(NameTaken,),
    audited=True,
)
def put(path: ProviderPath, body: ProviderBody) -> ProviderDone:
    """Add a service, or change one.

    Of one that exists, what is not sent stays; a key that is sent as it is shown stays as well.
    """
    with write() as tx:
        return ProviderDone(provider=ProviderAnswer.of(put_provider(tx, path.provider_id, body)))


@route(
    ROUTES,
    "DELETE",
    "/api/custom-providers/<provider_id>",
    scope=Scope.ADMIN,
    answer=Done,
    errors=(NotFound,),
    audited=True,
)
def remove(path: ProviderPath) -> Done:
    """Forget a service and its key; agents that name it are paused with their next message."""
    reach(None)
    with write() as tx:
        remove_custom_provider(tx, path.provider_id)
    return Done()


def _available(
    name: str, origin: ProviderOrigin, program: str | None = None, *, configured: bool | None = None
) -> Available:
    program = program or (name if name in PROGRAMS else None)
    if configured is None:
        configured = has_credentials(name, api().settings)
    installed = program is None or shutil.which(program) is not None
    return Available(
        name=name, origin=origin, program=program, installed=installed, configured=configured
    )
