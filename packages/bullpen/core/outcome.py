"""What a run leaves behind."""

from __future__ import annotations

from dataclasses import dataclass, field

from bullpen.core.message import ErrorKind, NewMessage


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One text for the person who asked."""

    message: str
    files: tuple[str, ...] = ()
    metadata: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RoomPost:
    """A post in a team's room, and the agents to whom it is delivered."""

    team_id: str
    message: str
    to: tuple[str, ...] = ()
    hold: str | None = None
    """Why a person must let it go on before anybody reads it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Who did it, and what it took."""

    provider: str | None = None
    model: str | None = None
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0
    started_at: int | None = None


NO_USAGE = Usage()


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A run that succeeded."""

    answers: tuple[Answer, ...] = ()
    handoffs: tuple[NewMessage, ...] = ()
    room_posts: tuple[RoomPost, ...] = ()
    said: str | None = None
    """What the agent said, word for word, for the history; None is what is above."""
    usage: Usage = field(default=NO_USAGE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A run that did not."""

    kind: ErrorKind
    error: str
    retry_after: int | None = None
    """Milliseconds that the provider asked to wait."""
    usage: Usage = field(default=NO_USAGE)
