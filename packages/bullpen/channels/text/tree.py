"""A text in markdown as a tree of blocks and spans."""

from __future__ import annotations


class Document:
    """A text in markdown."""

    length: int
    """The number of characters of its leaf text: the unit of offsets."""

    @classmethod
    def parse(cls, markdown: str) -> Document:
        """The tree of a text; any text has one."""
        raise NotImplementedError

    def slice(self, start: int, end: int | None = None) -> Document:
        """A piece between two offsets; what it cuts is closed and opened again."""
        raise NotImplementedError

    def plain(self) -> str:
        """Its text without any formatting."""
        raise NotImplementedError
