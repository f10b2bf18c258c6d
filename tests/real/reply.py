"""What a stand-in for a model answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Body = dict[str, Any]


@dataclass(frozen=True)
class Say:
    """A finished answer; an empty text is an answer without any content."""

    text: str
    input_tokens: int = 11
    output_tokens: int = 7


@dataclass(frozen=True)
class UseTool:
    """A tool call, after some text if `say` is given."""

    name: str
    input: Body
    say: str = ""


@dataclass(frozen=True)
class Refuse:
    """An HTTP error; `kind` replaces the protocol's usual error type for that status."""

    status: int
    message: str = "refused by the stand-in"
    kind: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Hang:
    """No answer at all, until the server is closed."""


Reply = Say | UseTool | Refuse | Hang
