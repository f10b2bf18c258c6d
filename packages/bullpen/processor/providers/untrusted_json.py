"""JSON from a program, read without trust: a missing value or a wrong type is empty."""

from __future__ import annotations

import json

from bullpen.core.text import sanitise_text


class UntrustedJson:
    """One JSON value; each property returns its own type, whatever the value is."""

    def __init__(self, value: object) -> None:
        self._value = value

    @classmethod
    def from_line(cls, text: str) -> UntrustedJson:
        """The value on this line; empty if it is not JSON."""
        try:
            value: object = json.loads(text)
        except (ValueError, RecursionError):  # nesting may be of any depth
            value = None
        return cls(value)

    def __getitem__(self, name: str) -> UntrustedJson:
        return UntrustedJson(self._value.get(name) if isinstance(self._value, dict) else None)

    @property
    def exists(self) -> bool:
        """Whether there is a value."""
        return self._value is not None

    @property
    def text(self) -> str:
        """The string, in a form that can be stored."""
        return sanitise_text(self._value) if isinstance(self._value, str) else ""

    @property
    def number(self) -> float:
        """The number, zero or more."""
        value = self._value
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return 0
        return value if 0 <= value < 1e15 else 0

    @property
    def is_true(self) -> bool:
        """Whether it is true."""
        return self._value is True

    @property
    def elements(self) -> list[UntrustedJson]:
        """The elements of the list."""
        return (
            [UntrustedJson(each) for each in self._value] if isinstance(self._value, list) else []
        )

    @property
    def names(self) -> list[str]:
        """The names in the object."""
        return (
            [sanitise_text(name) for name in self._value] if isinstance(self._value, dict) else []
        )
