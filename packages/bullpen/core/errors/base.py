"""The error that all others are."""

from __future__ import annotations

from typing import ClassVar


class BullpenError(Exception):
    """What happened, in words; `hint` says what to do about it."""

    code: ClassVar[str] = "error"
    exit_status: ClassVar[int] = 1
    hint: str = ""

    def __init__(self, text: str, hint: str | None = None) -> None:
        super().__init__(text)
        if hint is not None:
            self.hint = hint
