"""Who runs the command: a person, or an agent in one of its runs, with that agent's own rights."""

from __future__ import annotations

import os

from bullpen.core.errors import OutOfReach


def acting_agent() -> str | None:
    """The agent whose run this command is in, if it is in one."""
    return os.environ.get("BULLPEN_AGENT") or None


def require_person(what: str) -> None:
    """Refuse an agent what only a person may do."""
    agent = acting_agent()
    if agent is not None:
        raise OutOfReach(f"@{agent} may not {what}", hint="Ask a person to do it.")
