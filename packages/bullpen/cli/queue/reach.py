"""What an agent may see of the queue in one of its runs: its own messages."""

from __future__ import annotations

from bullpen.cli.acting import acting_agent
from bullpen.core.errors import OutOfReach

OWN_MESSAGES_HINT = "`bullpen queue list` shows its own."


def visible_agent(agent: str | None) -> str | None:
    """Whose messages are looked at: of anybody by a person, by an agent its own."""
    acting = acting_agent()
    if acting is None or agent in (None, acting):
        return acting or agent
    raise OutOfReach(f"@{acting} may not look at the messages of @{agent}", hint=OWN_MESSAGES_HINT)


def require_visible(message_id: str, *agents: str | None) -> None:
    """Refuse an agent a message that is neither for it nor by it."""
    acting = acting_agent()
    if acting is not None and acting not in agents:
        raise OutOfReach(f"{message_id} is neither for @{acting} nor by it", hint=OWN_MESSAGES_HINT)
