"""The audit log: who did what over the API, and what was refused to whom."""

from __future__ import annotations

from dataclasses import asdict

from flask import Response
from pydantic import BaseModel, Field, RootModel

from bullpen.api.context import reach, read
from bullpen.api.models import Page, listed, upto
from bullpen.api.route import blueprint, route
from bullpen.core.access.audit import AuditEntry, list_audit_entries
from bullpen.core.access.key import Scope
from bullpen.core.models import AUDIT_LOG

AUDIT_ROUTES = blueprint("audit", "Who did what over the API.")


class DeedAnswer(BaseModel):
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

    @classmethod
    def of(cls, deed: AuditEntry) -> DeedAnswer:
        """The line, as it is shown."""
        return cls.model_validate(asdict(deed))


class DeedList(RootModel[list[DeedAnswer]]):
    """Lines of the log."""


@route(AUDIT_ROUTES, "GET", "/api/audit", scope=Scope.ADMIN, answer=DeedList)
def audit(query: Page) -> Response:
    """List what was done, the latest first; with `since_id` what came after it, the oldest first.

    For keys that reach all agents.
    """
    reach(None)
    last = upto(AUDIT_LOG, query.since_id)
    with read() as tx:
        found = list_audit_entries(tx, query.since_id, query.limit, last)
    rows = DeedList([DeedAnswer.of(each) for each in found])
    return listed(rows, [each.id for each in found], query)
