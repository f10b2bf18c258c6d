"""The base of all events: a type, the ids of what it is about, typed fields, and a sentence.

Events are declared like dataclasses; `dataclass_transform` makes mypy check each call. They are not
real dataclasses, because creating one takes a quarter of a millisecond, and every command imports
some sixty events at its start.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from inspect import get_annotations
from types import NoneType
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, dataclass_transform


class About(Protocol):
    """The ids that an event is about: those of a `Message`, or of a row of the event log."""

    @property
    def agent(self) -> str | None:
        """The agent."""

    @property
    def conversation_id(self) -> str | None:
        """The conversation."""

    @property
    def message_id(self) -> str | None:
        """The message."""


class MessageRef(NamedTuple):
    """The ids of a message whose other columns are not loaded."""

    agent: str | None
    conversation_id: str | None
    message_id: str | None


NOTHING = MessageRef(None, None, None)


class Level(Enum):
    """The severity of an event."""

    PROGRESS = "progress"
    """Output of a running run."""
    INFO = "info"
    NOTICE = "notice"
    """Unusual, but not a problem."""
    WARNING = "warning"
    """May need a person's action."""
    FAILURE = "failure"

    @property
    def is_trouble(self) -> bool:
        """Whether it is a warning or a failure."""
        return self in (Level.WARNING, Level.FAILURE)


_SUBJECT, _MISSING = object(), object()


class _Note:
    __slots__ = ("default", "in_database", "text")

    def __init__(self, text: str, default: object, *, in_database: bool = False) -> None:
        self.text = text
        self.default = default
        self.in_database = in_database


# Field specifiers return Any, so that mypy accepts them for fields of every type.
def note(text: str, *, default: object = _MISSING) -> Any:  # noqa: ANN401
    """A field with an explanation for the documentation; one with a default is optional."""
    return _Note(text, default)


def written_row(text: str, *, init: Literal[False] = False) -> Any:  # noqa: ANN401
    """A field with the id of the row written just before, which the database looks up."""
    return _Note(text, _MISSING, in_database=True)


def subject(*, kw_only: Literal[False]) -> Any:  # noqa: ANN401
    """The message that the event is about: the positional argument, not part of the data."""
    return _SUBJECT


class EventField(NamedTuple):
    """A key of an event's data."""

    name: str
    annotation: str
    note: str
    required: bool
    """Whether every row has it: a field with a default is optional."""


FIELD_TYPES: Mapping[str, tuple[type, ...]] = {
    "None": (NoneType,),
    "str": (str,),
    "str | None": (str, NoneType),
    "int": (int,),
    "int | None": (int, NoneType),
    "list[str]": (list,),
}
"""The allowed annotations of fields, and their types in JSON."""


@dataclass_transform(
    kw_only_default=True,
    frozen_default=True,
    eq_default=False,
    field_specifiers=(note, written_row, subject),
)
class Event:
    """Something that happened. Its fields are the keys of its `data`.

    The docstring of an event is its row in docs/reference/events.md.
    """

    # The `__dict__` of an instance is its data, and contains nothing else.
    __slots__ = ("__dict__", "about")

    type: ClassVar[str]
    """Its name in the database, the API, the command line and the documentation."""
    level: ClassVar[Level] = Level.INFO
    says: ClassVar[str] = ""
    """The template of its sentence: `{message}` is the message's id, `{x}` the field `x`."""
    quiet: ClassVar[bool] = False
    """Whether live views never show it: another line says the same, or it is too frequent."""
    bookkeeping: ClassVar[bool] = False
    """Whether live views show it only on request: it changes no message, answer or run."""
    fields: ClassVar[tuple[EventField, ...]] = ()
    written_field: ClassVar[str | None] = None
    """The field that `written_row` declared, if any."""

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
                default = default.default
                if default is not _MISSING:
                    setattr(cls, name, default)
            own.append(EventField(name, annotation, text, default is _MISSING))
        cls.fields = (*cls.fields, *own)

    @property
    def data(self) -> Mapping[str, object]:
        """The values of its fields, stored in this order in the column `data`."""
        return self.__dict__

    @classmethod
    def read(cls, about: About, data: Mapping[str, object]) -> Event | None:
        """The event in a row; None if the data do not have the fields of this version."""
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
        """The subject of its sentence: `@coder`, `#dev`, a process or `bullpen`."""
        return f"@{self.about.agent}" if self.about.agent else "bullpen"

    def sentence(self) -> str:
        """Its sentence without the subject, and the reason or the error if it has one."""
        what = self.says or self.type.replace("_", " ")
        if "{" in what:
            what = what.format(
                message=self.about.message_id,
                **{name: _format_value(value) for name, value in self.data.items()},
            )
        why = self.data.get("reason") or self.data.get("error")
        return f"{what}: {why}" if why else what


def _format_value(value: object) -> object:
    return ", ".join(map(str, value)) if isinstance(value, list) else value


class OwnedEvent(Event):
    """An event about something of an agent or a team, such as a schedule; a team's has no agent."""

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
    """An event about an agent, and not about a message."""

    agent: str

    @classmethod
    def read(cls, about: About, data: Mapping[str, object]) -> Event | None:
        """The event in a row; also None if the row has no agent."""
        return None if about.agent is None else super().read(about, data)


class MessageEvent(Event):
    """An event about a message, and so about the agent that it is for."""

    about: About = subject(kw_only=False)


class UnknownEvent(Event):
    """An event that another version of Bullpen wrote: unknown type or unexpected data."""

    __slots__ = ("_data", "type")

    _data: Mapping[str, object]

    def __init__(self, type_: str, data: Mapping[str, object], about: About = NOTHING, /) -> None:
        super().__init__(about)
        object.__setattr__(self, "type", type_)
        object.__setattr__(self, "_data", data)

    @property
    def data(self) -> Mapping[str, object]:
        """The stored values; none of them is an attribute, whatever its name."""
        return self._data
