"""/api/pairing: the people and groups that may write on channels, and their requests."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field

from bullpen.api.context import ChangedBy, caller, read, require_reach, write
from bullpen.api.route import ADMIN, Routes
from bullpen.api.schemas import CamelAnswer, Done, StrictBody
from bullpen.core.channels.chats import Access
from bullpen.core.channels.pairing import deny
from bullpen.core.channels.people import (
    PairingRecord,
    approve_request,
    change_access,
    change_tier,
    find_request,
    list_pairings,
    list_waiting_pairings,
    unpair,
)
from bullpen.core.channels.senders import Tier
from bullpen.core.errors import (
    IllegalMove,
    InputError,
    UnknownChannel,
    UnknownCode,
    UnknownSender,
)
from bullpen.core.inspect.channels import check_client, list_channels

routes = Routes("pairing", "The people and groups on channels.")

Code = Annotated[str, Field(max_length=40)]


class PendingAnswer(CamelAnswer):
    """A request that waits for approval."""

    channel: str
    sender_id: str = Field(description="The id of the person, or of the group.")
    sender: str
    code: str | None
    expires_at: int | None
    created_at: int
    last_seen_at: int | None
    kind: str = Field(description="`person` or `group`.")


class ApprovedAnswer(CamelAnswer):
    """A person with a tier, or an approved group."""

    channel: str
    sender_id: str = Field(description="The id of the person, or of the group.")
    sender: str
    tier: str | None = Field(
        description="`owner`, `member`, `guest` or `blocked`; `members` or `everyone` of a group."
    )
    approved_at: int | None
    approved_by: str | None
    created_at: int
    last_seen_at: int | None
    kind: str = Field(description="`person` or `group`.")


class PairingAnswer(CamelAnswer):
    """People and groups, and the requests that wait."""

    pending: list[PendingAnswer]
    approved: list[ApprovedAnswer]


class ApproveBody(StrictBody):
    """A request, and what it gets."""

    code: Annotated[Code, ChangedBy.ALL_AGENTS]
    tier: Annotated[Tier, ChangedBy.ALL_AGENTS] = Field(
        Tier.MEMBER, description="The tier of a person."
    )
    access: Annotated[Access, ChangedBy.ALL_AGENTS] = Field(
        Access.MEMBERS, description="Who is answered in a group."
    )


class TierBody(StrictBody):
    """The tier of a person, or the access of a group."""

    tier: Annotated[Tier | None, ChangedBy.ALL_AGENTS] = None
    access: Annotated[Access | None, ChangedBy.ALL_AGENTS] = None


class PairingDone(Done):
    """The person or the group after the change."""

    entry: ApprovedAnswer


class PendingPath(BaseModel):
    """Selects a request."""

    code: Code


class SenderPath(BaseModel):
    """Selects a person or a group."""

    channel: Annotated[str, Field(max_length=40)]
    sender_id: Annotated[str, Field(max_length=200)]


@routes.get("/api/pairing", ADMIN)
def pairing() -> PairingAnswer:
    """List people and groups, and the requests that wait."""
    require_reach(None)
    with read() as tx:
        names = [each.channel for each in list_channels(tx)]
        return PairingAnswer(
            pending=[_pending(each) for each in list_waiting_pairings(tx)],
            approved=[_approved(each) for name in names for each in list_pairings(tx, name)],
        )


@routes.post("/api/pairing/approve", ADMIN, UnknownCode)
def approve(body: ApproveBody) -> PairingDone:
    """Approve the person or the group with this code."""
    require_reach(None)
    with write() as tx:
        done = approve_request(tx, body.code, body.tier, caller().name, access=body.access)
        return PairingDone(entry=_approved(done))


@routes.delete("/api/pairing/pending/<code>", ADMIN, UnknownCode)
def dismiss(path: PendingPath) -> Done:
    """End a request.

    The person is not told, and gets the next code in an hour at the earliest.
    """
    require_reach(None)
    with write() as tx:
        found = find_request(tx, path.code)
        deny(tx, found.channel, path.code)
    return Done()


@routes.put("/api/pairing/<channel>/<sender_id>", ADMIN, UnknownChannel, UnknownSender, IllegalMove)
def change(path: SenderPath, body: TierBody) -> PairingDone:
    """Change the tier of a person, or the access of a group.

    Messages of a person with the tier `blocked` are ignored.
    """
    require_reach(None)
    check_client(path.channel)
    if (body.tier is None) == (body.access is None):
        raise InputError("either tier or access is required", hint="Send one of the two.")
    with write() as tx:
        if body.tier is not None:
            done = change_tier(tx, path.channel, path.sender_id, body.tier, caller().name)
        else:
            access = body.access or Access.MEMBERS
            done = change_access(tx, path.channel, path.sender_id, access, caller().name)
        return PairingDone(entry=_approved(done))


@routes.delete("/api/pairing/<channel>/<sender_id>", ADMIN, UnknownSender, IllegalMove)
def revoke(path: SenderPath) -> Done:
    """Make a person or a group unpaired."""
    require_reach(None)
    with write() as tx:
        unpair(tx, path.channel, path.sender_id, caller().name)
    return Done()


def _kind(record: PairingRecord) -> str:
    return "group" if record.group else "person"


def _pending(record: PairingRecord) -> PendingAnswer:
    return PendingAnswer(
        channel=record.channel,
        sender_id=record.id,
        sender=record.name,
        code=record.code,
        expires_at=record.code_expires_at,
        created_at=record.first_at,
        last_seen_at=record.last_at,
        kind=_kind(record),
    )


def _approved(record: PairingRecord) -> ApprovedAnswer:
    return ApprovedAnswer(
        channel=record.channel,
        sender_id=record.id,
        sender=record.name,
        tier=record.tier,
        approved_at=record.approved_at,
        approved_by=record.approved_by,
        created_at=record.first_at,
        last_seen_at=record.last_at,
        kind=_kind(record),
    )
