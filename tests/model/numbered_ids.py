"""Ids that are the same in every run, so that a failing history can be told again."""

from __future__ import annotations

import itertools

from bullpen.core.ids import Ids


class NumberedIds(Ids):
    """Ids by number; now and then one that was given before."""

    def __init__(self) -> None:
        numbers = itertools.count()
        self.repeated: str | None = None
        super().__init__(lambda: f"{next(numbers):08d}")

    def new(self, prefix: str) -> str:
        """The next id, or the repeated one."""
        repeated, self.repeated = self.repeated, None
        if repeated is not None and repeated.startswith(f"{prefix}_"):
            return repeated
        return super().new(prefix)
