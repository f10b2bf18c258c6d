"""No text says `1 messages`: counts with their nouns go through `format_count`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.docs.render import DOCS

PACKAGES = DOCS.parent / "packages"
NOUNS = (
    *("agent", "answer", "attempt", "backup", "change", "command", "conversation", "event"),
    *("file", "finding", "heartbeat", "hop", "key", "line", "member", "message", "post", "problem"),
    *("process", "provider", "request", "response", "row", "run", "schedule", "service", "setting"),
    *("table", "team", "try", "warning", "worker", "notice", "check", "job", "session", "failure"),
)
PLURAL = re.compile(
    rf"^ (?:more |dead |other |pending |held )?(?:{'|'.join(NOUNS)})(?:e?s)\b|^ tries\b"
)
FIXED = re.compile(r"limit|most|least|floor|MAX|MIN|seconds|megabytes", re.IGNORECASE)
"""Values that are never 1: limits and settings."""


def counted_plurals(file: Path) -> Iterator[str]:
    """Where an f-string has a value and then a noun in the plural."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.JoinedStr):
            for value, text in zip(node.values, node.values[1:], strict=False):
                if (
                    isinstance(value, ast.FormattedValue)
                    and isinstance(text, ast.Constant)
                    and PLURAL.match(str(text.value))
                    and not FIXED.search(ast.unparse(value))
                ):
                    yield f"{file.relative_to(PACKAGES)}:{node.lineno}: {ast.unparse(node)[:90]}"


def test_a_count_is_formatted_with_its_noun() -> None:
    found = [each for file in sorted(PACKAGES.rglob("*.py")) for each in counted_plurals(file)]
    assert found == []
