"""What a run said."""

from __future__ import annotations

from dataclasses import dataclass, field

from bullpen.core.outcome import NO_USAGE, Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOutput:
    """An agent's text, tags included, and the files that go with it."""

    text: str
    files: tuple[str, ...] = ()
    metadata: str | None = None
    usage: Usage = field(default=NO_USAGE)


def sanitise_text(text: str) -> str:
    """The text with what no database can keep replaced."""
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}").encode(errors="replace").decode()
