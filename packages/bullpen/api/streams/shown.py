"""Events made ready to be sent: encoded once, whoever follows, and as late as somebody does."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from bullpen.api.streams.documents import Document, alias_of, document_of, encode, team_of
from bullpen.api.streams.wire import Wire
from bullpen.core.events.facts import event_details
from bullpen.core.events.tail import Event
from bullpen.core.store.base import Store


class Part(Enum):
    """Under which of its names a client wants an event."""

    BOTH = "both"
    OWN = "own"
    ALIAS = "alias"


class Shown:
    """One event as it is shown, with the frames that were asked for so far."""

    __slots__ = ("_alias", "_frames", "_own", "event", "team")

    def __init__(
        self, event: Event, own: bytes, team: str | None, alias: tuple[str, bytes] | None
    ) -> None:
        self.event = event
        self.team = team
        """The team that it is about, or its message."""
        self._own = own
        self._alias = alias
        self._frames: dict[tuple[Wire, Part], bytes] = {}

    @property
    def alias(self) -> str | None:
        """Its name in the reference, if it has one."""
        return None if self._alias is None else self._alias[0]

    @property
    def size(self) -> int:
        """About how many bytes it takes."""
        return 2 * (len(self._own) + (0 if self._alias is None else len(self._alias[1])))

    def frame(self, wire: Wire, part: Part) -> bytes:
        """Its bytes on this wire."""
        found = self._frames.get((wire, part))
        if found is None:
            found = self._frames[wire, part] = self._framed(wire, part)
        return found

    def _framed(self, wire: Wire, part: Part) -> bytes:
        """The alias first and without an id: who is cut off between the two gets both again."""
        own = wire.frame(self.event.type, self._own, self.event.id)
        if self._alias is None or part is Part.OWN:
            return own
        if part is Part.ALIAS:
            return wire.alone(*self._alias, self.event.id)
        return wire.frame(*self._alias) + own


def show(store: Store, events: Sequence[Event]) -> list[Shown]:
    """These events with all that is known of them, in one look at the store."""
    with store.read() as tx:
        facts = event_details(tx, events)
    found = []
    for event, known in zip(events, facts, strict=True):
        own = encode(document_of(event, known))
        other = alias_of(event, known)
        alias = None if other is None else (str(other["type"]), encode(other))
        found.append(Shown(event, own, team_of(event, known), alias))
    return found


def documents(store: Store, events: Sequence[Event]) -> list[Document]:
    """The same as plain documents, under their own names."""
    with store.read() as tx:
        facts = event_details(tx, events)
    return [document_of(event, known) for event, known in zip(events, facts, strict=True)]
