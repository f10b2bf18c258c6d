"""Every error has one form: lower-case text without a full stop, and a hint of whole sentences."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

from bullpen.core import errors
from tests.docs.render import DOCS

PACKAGES = DOCS.parent / "packages"
ERRORS = {
    name
    for name, each in vars(errors).items()
    if inspect.isclass(each) and issubclass(each, errors.BullpenError)
}
USAGE = {"UsageError", "BadParameter"}

TEXT = re.compile(r"(?:Bullpen|(?![A-Z][a-z]+ [a-z])).*[^.!]", re.DOTALL)
HINT = re.compile(r"[A-Z`'{].*(?:[.?}]|: (?:bullpen|kill|tmux|{}) .*[^.])", re.DOTALL)
"""A sentence, or one that ends with a command to copy."""


def text_of(node: ast.expr) -> str | None:
    """A literal text, its values as `{}`; None if the text is not literal."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=values):
            return "".join(
                str(each.value) if isinstance(each, ast.Constant) else "{}" for each in values
            )
        case _:
            return None


def wrong_texts(file: Path) -> Iterator[str]:
    """The texts and hints of errors in a file that have another form."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Call):
            continue
        name = (
            node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        )
        if name not in ERRORS | USAGE:
            continue
        at = f"{file.relative_to(PACKAGES)}:{node.lineno}"
        text = text_of(node.args[0]) if node.args else None
        if text and not TEXT.fullmatch(text):
            yield f"{at}: {text}"
        hints = [each.value for each in node.keywords if each.arg == "hint"]
        hints += node.args[1:2] if name == "UsageError" else []
        for hint in map(text_of, hints):
            if hint and not HINT.fullmatch(hint):
                yield f"{at}: hint: {hint}"


def test_the_texts_of_errors_have_one_form() -> None:
    wrong = [each for file in sorted(PACKAGES.rglob("*.py")) for each in wrong_texts(file)]
    assert wrong == []


def test_the_hint_of_every_kind_of_error_is_a_sentence() -> None:
    kinds = {name: getattr(errors, name).hint for name in ERRORS - {"BullpenError"}}
    assert {name: hint for name, hint in kinds.items() if not HINT.fullmatch(hint)} == {}
