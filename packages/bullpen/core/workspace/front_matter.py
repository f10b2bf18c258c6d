"""The lines between two `---` at the top of a Markdown file."""

from __future__ import annotations

from pathlib import Path

MAX_FRONT_MATTER_CHARS = 4096
"""Front matter is looked for in so many characters."""


def read_front_matter(path: Path) -> dict[str, str]:
    """Its names and values; nothing if the file has none or cannot be read."""
    try:
        if not path.is_file():
            return {}  # a pipe would be waited for, for ever
        with path.open(encoding="utf-8-sig", errors="replace") as file:
            lines = file.read(MAX_FRONT_MATTER_CHARS).splitlines()
    except OSError:
        return {}
    return _parse_lines(lines)


def parse_front_matter(text: str) -> dict[str, str]:
    """The names and values at the top of this text."""
    return _parse_lines(text[:MAX_FRONT_MATTER_CHARS].splitlines())


def _parse_lines(lines: list[str]) -> dict[str, str]:
    if not lines or lines[0].strip() != "---":
        return {}
    found: dict[str, str] = {}
    for line in lines[1:]:
        if line.strip() == "---":
            return found
        name, colon, value = line.partition(":")
        if colon:
            found[name.strip().lower()] = value.strip().strip("\"'")
    return {}
