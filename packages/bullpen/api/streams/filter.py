"""Which events a client wants, and which its key lets it see."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from bullpen.api.streams.documents import ALIASES
from bullpen.api.streams.shown import Part, Shown
from bullpen.api.streams.wire import Wire
from bullpen.core.events.browse import EventFilter


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """What an event must be; None is anything."""

    types: frozenset[str] | None = None
    """Its own name, or that which the reference has for it."""
    agent: str | None = None
    conversation_id: str | None = None
    team: str | None = None
    reach: frozenset[str] | None = None
    """The agents of the key; what belongs to no agent is for keys that reach all."""

    def part(self, shown: Shown) -> Part | None:
        """Under which names this client gets the event; None if it does not."""
        event = shown.event
        if self.reach is not None and event.agent not in self.reach:
            return None
        if self.agent is not None and event.agent != self.agent:
            return None
        if self.conversation_id is not None and event.conversation_id != self.conversation_id:
            return None
        if self.team is not None and shown.team != self.team:
            return None
        if self.types is None:
            return Part.BOTH
        own, alias = event.type in self.types, shown.alias in self.types
        if own and alias:
            return Part.BOTH
        return Part.OWN if own else Part.ALIAS if alias else None

    def frames(self, wire: Wire, shown: Iterable[Shown]) -> list[bytes]:
        """What a client is given of these events."""
        parts = ((each, self.part(each)) for each in shown)
        return [each.frame(wire, part) for each, part in parts if part is not None]

    @property
    def wanted(self) -> EventFilter:
        """The same for the store, as far as the store can tell: never less."""
        agents = self.reach
        if self.agent is not None:
            mine = frozenset({self.agent})
            agents = mine if agents is None else agents & mine
        types = None if self.types is None else own_names(self.types)
        return EventFilter(types=types, agents=agents, conversation_id=self.conversation_id)


def own_names(types: frozenset[str]) -> frozenset[str]:
    """Also our names of what the reference has others for."""
    return types | {own for own, alias in ALIASES.items() if alias in types}
