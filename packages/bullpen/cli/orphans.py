"""What is said of schedules whom nobody is there for any more."""

from __future__ import annotations

from collections.abc import Sequence


def orphan_notices(schedules: Sequence[str]) -> list[str]:
    """That they are paused, and what can be done."""
    if not schedules:
        return []
    count = f"{len(schedules)} schedules are" if len(schedules) > 1 else "1 schedule is"
    return [
        f"{count} paused, since nobody is there to ask: {', '.join(sorted(schedules))}",
        "Next: bullpen schedule set NAME --agent ANOTHER, and bullpen schedule resume",
    ]
