"""What every event is made of: a type, who or what it is about, typed fields, and a sentence.

An event is declared like a dataclass, which `dataclass_transform` tells mypy: each call is checked.
No code is generated for it. A generated dataclass takes a quarter of a millisecond to create, and
a command that has to start at once imports some sixty events.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from inspect import get_annotations
from types import NoneType
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, dataclass_transform


class About(Protocol):
    """The envelope of an event: a `Message` has these ids, and so has a row of the event log."""

    @property
    def agent(self) -> str | None:
        """The agent whose lane it is in."""

    @property
    def conversation_id(self) -> str | None:
        """The conversation that it belongs to."""

    @property
    def message_id(self) -> str | None:
        """The message."""


class MessageRef(NamedTuple):
    """A message of which only these ids are known."""

    agent: str | None
    conversation_id: str | None
    message_id: str | None


NOTHING = MessageRef(None, None, None)


class Level(Enum):
    """How much an event matters to a person."""

    PROGRESS = "progress"
    """Output of a run that is not finished."""
    INFO = "info"
    NOTICE = "notice"
    """Out of the ordinary, and nothing is wrong."""
    WARNING = "warning"
    """A person may have to act."""
    FAILURE = "failure"

    @property
    def is_trouble(self) -> bool:
        """Whether something went wrong."""
        return self in (Level.WARNING, Level.FAILURE)


class _Note:
    __slots__ = ("in_database", "text")

    def __init__(self, text: str, *, in_database: bool = False) -> None:
        self.text = text
        self.in_database = in_database


_SUBJECT, _MISSING = object(), object()


# Field specifiers return Any, so that mypy accepts them for a field of any type.
def note(text: str) -> Any:  # noqa: ANN401
    """A field, and what the documentation adds to its name."""
    return _Note(text)


def written_row(text: str, *, init: Literal[False] = False) -> Any:  # noqa: ANN401
    """The id of the row that was written just before; the database finds it: see `append`."""
    return _Note(text, in_database=True)


def subject(*, kw_only: Literal[False]) -> Any:  # noqa: ANN401
    """The message that it happened to: the positional argument, and no part of the data."""
    return _SUBJECT


class EventField(NamedTuple):
    """A key of an event's data."""

    name: str
    annotation: str
    note: str
    required: bool
    """Whether every row has it: a field with a default may be left out."""


FIELD_TYPES: Mapping[str, tuple[type, ...]] = {
    "None": (NoneType,),
    "str": (str,),
    "str | None": (str, NoneType),
    "int": (int,),
    "int | None": (int, NoneType),
    "list[str]": (list,),
}
"""What a field may be annotated with, and what it then is in JSON."""


@dataclass_transform(
    kw_only_default=True,
    frozen_default=True,
    eq_default=False,
    field_specifiers=(note, written_row, subject),
)
class Event:
    """Something that happened. Its fields are the keys of its `data`.

    The docstring of an event is its line in docs/reference/events.md.
    """

    # The dictionary of an instance is its data, and nothing else is in it.
    __slots__ = ("__dict__", "about")

    type: ClassVar[str]
    """Its name in the database, in the API, on the command line and in the documentation."""
    level: ClassVar[Level] = Level.INFO
    says: ClassVar[str] = ""
    """What happened, in the words that follow the name of who it happened to."""
    quiet: ClassVar[bool] = False
    """Whether it is too small for a line of its own in a live view."""
    fields: ClassVar[tuple[EventField, ...]] = ()
    written_field: ClassVar[str | None] = None
    """The field with the id of the row that was written just before."""

    about: About

    def __init__(self, about: About = NOTHING, /, **data: object) -> None:
        self.about = about
        self.__dict__ = data

    def __init_subclass__(cls) -> None:
        own = []
        for name, annotation in get_annotations(cls).items():
            default = cls.__dict__.get(name, _MISSING)
            if default is _SUBJECT or isinstance(default, _Note):
                delattr(cls, name)
            if default is _SUBJECT or name in cls.__slots__:
                continue
            text = ""
            if isinstance(default, _Note):
                text = default.text
                if default.in_database:
                    cls.written_field = name
            required = default is _MISSING or isinstance(default, _Note)
            own.append(EventField(name, annotation, text, required))
        cls.fields = (*cls.fields, *own)

    @property
    def data(self) -> Mapping[str, object]:
        """What is stored beside the type and the ids, in this order."""
        return self.__dict__

    @classmethod
    def read(cls, about: About, data: Mapping[str, object]) -> Event | None:
        """The event in a row; None if this version would not have written these data."""
        known = cls._known_data(data)
        return None if known is None else cls(about, **known)

    @classmethod
    def _known_data(cls, data: Mapping[str, object]) -> Mapping[str, object] | None:
        known = {each.name: data[each.name] for each in cls.fields if each.name in data}
        for each in cls.fields:
            if each.name in known:
                if not isinstance(known[each.name], FIELD_TYPES[each.annotation]):
                    return None
            elif each.required:
                return None
        return known

    @property
    def who(self) -> str:
        """Who it happened to, as people read it."""
        return self.about.agent or "bullpen"

    def sentence(self) -> str:
        """What happened, as people read it after the name of who it happened to."""
        what = self.says or self.type.replace("_", " ")
        why = self.data.get("reason") or self.data.get("error")
        return f"{what}: {why}" if why else what


class OwnedEvent(Event):
    """Something that happened to what an agent or a team has; a team's names no agent."""

    __slots__ = ("agent",)

    agent: str | None

    def __init__(self, *, agent: str | None, **data: object) -> None:
        super().__init__(MessageRef(agent, None, None), **data)
        object.__setattr__(self, "agent", agent)

    @classmethod
    def read(cls, about: About, data: Mapping[str, object]) -> Event | None:
        """The event in a row; the row's agent is passed as the argument `agent`."""
        known = cls._known_data(data)
        return None if known is None else cls(agent=about.agent, **known)


class AgentEvent(OwnedEvent):
    """Something that happened to an agent, and not because of a message."""

    agent: str

    @classmethod
    def read(cls, about: About, data: Mapping[str, object]) -> Event | None:
        """The event in a row; None also if the row has no agent."""
        return None if about.agent is None else super().read(about, data)


class MessageEvent(Event):
    """Something that happened to a message, and so to the agent that it is for."""

    about: About = subject(kw_only=False)


class UnknownEvent(Event):
    """An event of another version of Bullpen: its type is new, or its data are not as expected."""

    __slots__ = ("_data", "type")

    _data: Mapping[str, object]

    def __init__(self, type_: str, data: Mapping[str, object], about: About = NOTHING, /) -> None:
        super().__init__(about)
        object.__setattr__(self, "type", type_)
        object.__setattr__(self, "_data", data)

    @property
    def data(self) -> Mapping[str, object]:
        """What is stored: none of it is an attribute, whatever its name is."""
        return self._data
