"""No text says `1 messages`: a count and its noun go through `format_count`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.docs.render import DOCS

PACKAGES = DOCS.parent / "packages"
NOUNS = (
    *("agent", "answer", "attempt", "backup", "change", "check", "command", "conversation"),
    *("event", "failure", "file", "finding", "heartbeat", "hop", "job", "key", "line", "member"),
    *("message", "notice", "post", "problem", "process", "provider", "request", "response", "row"),
    *("run", "schedule", "service", "session", "setting", "table", "team", "warning", "worker"),
)
PLURAL = re.compile(
    rf"^ (?:more |dead |other |pending |held )?(?:{'|'.join(NOUNS)})e?s\b(?! with| now)"
)
NEVER_ONE = re.compile(r"limit|most|least|floor|MAX|MIN", re.IGNORECASE)


def parts_of(value: ast.expr) -> list[str]:
    """The value's expression, and the attributes and calls in it."""
    inner = (each for each in ast.walk(value) if isinstance(each, ast.Attribute | ast.Call))
    return [ast.unparse(each) for each in (value, *inner)]


def counted_plurals(node: ast.AST, conditions: tuple[str, ...] = ()) -> Iterator[ast.JoinedStr]:
    """The f-strings with a value and then a plural, unless a condition is about that value."""
    if isinstance(node, ast.JoinedStr):
        for value, text in zip(node.values, node.values[1:], strict=False):
            if (
                isinstance(value, ast.FormattedValue)
                and isinstance(text, ast.Constant)
                and PLURAL.match(str(text.value))
                and not NEVER_ONE.search(ast.unparse(value.value))
                and not any(part in each for part in parts_of(value.value) for each in conditions)
            ):
                yield node
    if isinstance(node, ast.If | ast.IfExp):
        conditions = (*conditions, ast.unparse(node.test))
    for child in ast.iter_child_nodes(node):
        yield from counted_plurals(child, conditions)


def found_in(file: Path) -> Iterator[str]:
    """Where they are in a file, and what they say."""
    for each in counted_plurals(ast.parse(file.read_text(encoding="utf-8"))):
        yield f"{file.relative_to(PACKAGES)}:{each.lineno}: {ast.unparse(each)}"


def test_a_count_is_formatted_with_its_noun() -> None:
    assert [each for file in sorted(PACKAGES.rglob("*.py")) for each in found_in(file)] == []
