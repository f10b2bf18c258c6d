"""/api/keys and /api/audit: keys for the API, and the log of what was done with them."""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, Field

from bullpen.api.context import caller, read, require_reach, write
from bullpen.api.route import ADMIN, Routes
from bullpen.api.schemas import Answer, Done, Number, Page, Rows, StrictBody, page_end
from bullpen.core.access.audit import list_audit_entries
from bullpen.core.access.keys import KeyKind, Scope, add_key_as, list_keys_as, revoke_key_as
from bullpen.core.errors import UnknownKey
from bullpen.core.models import AUDIT_LOG

routes = Routes("keys", "Keys for the API, each with scopes, and revoked at once.")
audit_routes = Routes("audit", "Who did what over the API.")


class NewKey(StrictBody):
    """What the key is to be for."""

    name: Annotated[str, Field(min_length=1, max_length=200, description="what it is for")]
    scopes: list[Scope] = Field(min_length=1, max_length=16)
    agents: list[Annotated[str, Field(max_length=32)]] | None = Field(
        None, max_length=1000, description="the agents that it reaches; null is all"
    )
    expires_at: Number | None = Field(None, description="when it opens nothing any more")


def _sorted_agents(agents: Collection[str] | None) -> list[str] | None:
    return None if agents is None else sorted(agents)


AgentSet = Annotated[list[str] | None, BeforeValidator(_sorted_agents)]


class KeyAnswer(Answer):
    """A key, without its secret."""

    id: str
    kind: KeyKind
    name: str
    scopes: Annotated[list[Scope], BeforeValidator(sorted)]
    agents: AgentSet
    created_at: int
    expires_at: int | None
    used_at: int | None
    revoked_at: int | None
    made_by: str | None = Field(
        description="a key's id, `owner` for the owner's token, null if made on the machine"
    )
    valid: bool = Field(description="whether it still opens anything")


class NewKeyAnswer(KeyAnswer, Done):
    """The new key, with its secret."""

    key: str = Field(description="the secret: shown this once, and stored nowhere")


class Revoked(Done):
    """It is revoked."""

    revoked: list[str] = Field(description="the keys and logins that were in force until now")


class KeyList(Rows[KeyAnswer]):
    """Keys."""


class KeyPath(BaseModel):
    """Which key."""

    key_id: str = Field(max_length=100, description="the key's id; it is no secret")


@routes.get("/api/keys", ADMIN)
def keys() -> KeyList:
    """List the keys and the browsers that were let in, those of the past included.

    A key for some agents sees those that are for these alone.
    """
    with read() as tx:
        keys = list_keys_as(tx, caller())
        return KeyList.of(KeyAnswer.from_row(each, valid=each.valid(tx.now)) for each in keys)


@routes.post("/api/keys", ADMIN)
def add(body: NewKey) -> NewKeyAnswer:
    """Make a key. No key makes one that may more, reaches more or lasts longer than itself.

    It ends with the key that makes it, when that is revoked or expires.
    """
    with write() as tx:
        key, secret = add_key_as(tx, caller(), body.name, body.scopes, body.agents, body.expires_at)
        return NewKeyAnswer.from_row(key, valid=key.valid(tx.now), key=secret)


@routes.delete("/api/keys/<key_id>", ADMIN, UnknownKey)
def revoke(path: KeyPath) -> Revoked:
    """Revoke a key or browser login, and all keys and logins that it made, from now on."""
    with write() as tx:
        revoked = revoke_key_as(tx, caller(), path.key_id)
    return Revoked(revoked=[each.id for each in revoked])


class AuditEntryAnswer(Answer):
    """One thing that was done, or refused."""

    id: int
    key_id: str
    key_name: str
    action: str
    target: str = Field(description="the path that was asked for")
    outcome: str = Field(description="`done`, or the code of the error")
    request_id: str
    address: str
    created_at: int


class AuditEntryList(Rows[AuditEntryAnswer]):
    """Lines of the log."""


@audit_routes.get("/api/audit", ADMIN)
def audit(query: Page) -> AuditEntryList:
    """List what was done, the latest first; with `since_id` what came after it, the oldest first.

    For keys that reach all agents.
    """
    require_reach(None)
    last = page_end(AUDIT_LOG, query)
    with read() as tx:
        rows = list_audit_entries(tx, query.since_id, query.limit, last)
    return AuditEntryList.page(rows, query)
