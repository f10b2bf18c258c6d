"""A line of JSON from outside, looked into without trust: what is not there is empty."""

from __future__ import annotations

import json

from bullpen.core.text import sanitise_text


class UntrustedJson:
    """One JSON value; every look into it gives something of the type that was asked for."""

    def __init__(self, value: object) -> None:
        self._value = value

    @classmethod
    def line(cls, text: str) -> UntrustedJson:
        """The object on this line; anything else is an empty one."""
        try:
            value: object = json.loads(text)
        except (ValueError, RecursionError):  # it may be nested as deeply as it likes
            value = None
        return cls(value)

    def __getitem__(self, name: str) -> UntrustedJson:
        return UntrustedJson(self._value.get(name) if isinstance(self._value, dict) else None)

    @property
    def there(self) -> bool:
        """Whether there is anything."""
        return self._value is not None

    @property
    def text(self) -> str:
        """The string, as it can be stored."""
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
    def items(self) -> list[UntrustedJson]:
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
