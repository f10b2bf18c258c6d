"""Registry: all entries of one kind, built-in ones and those of other packages.

A package adds an entry with an entry point in the group `bullpen.providers`, `bullpen.channels` or
`bullpen.reports`. The `factory` of an entry is a name, `module:attribute`, so that listing entries
imports nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

REASON_CHARS = 300
ANY_NAME = r".+"
SERVICE_NAME = r"[a-z0-9][a-z0-9_-]{0,31}"


class Entry(Protocol):
    """An entry of a registry."""

    @property
    def name(self) -> str:
        """The name of the entry."""
        ...

    @property
    def factory(self) -> str:
        """The `module:attribute` that is imported when the entry is used."""
        ...


Info = TypeVar("Info", bound=Entry)


@dataclass(frozen=True, slots=True)
class LoadProblem:
    """An entry of an installed package that cannot be used."""

    kind: str
    name: str
    package: str
    reason: str

    def __str__(self) -> str:
        return f"the {self.kind} {self.name} of the package {self.package}: {self.reason}"


class Registry(Generic[Info]):
    """All entries of one kind. The entry of a package is imported when it is used.

    Of several entries with the same name, a built-in one is used, or the first package's.
    """

    def __init__(
        self,
        kind: type[Info],
        group: str,
        built_in: tuple[Info, ...] = (),
        *,
        adapt: Callable[[str, str], Info] | None = None,
        names: str = ANY_NAME,
        reserved: frozenset[str] = frozenset(),
    ) -> None:
        """`adapt` creates an entry from the name and path of a callable.

        `names` is the form of names in packages, and `reserved` are names that they cannot use.
        """
        self.group = group
        self.built_in: Mapping[str, Info] = {each.name: each for each in built_in}
        self._kind = kind
        self._adapt = adapt
        self._names = names
        self._reserved = reserved

    def plugin_names(self) -> list[str]:
        """The names of the packages' entries; none of them is imported."""
        return sorted(self._points())

    def find(self, name: str) -> Info | LoadProblem | None:
        """The entry of this name, or why it cannot be loaded; None if it does not exist."""
        if name in self.built_in:
            return self.built_in[name]
        point = self._points().get(name)
        return None if point is None else self._load(point)

    def plugins(self) -> list[Info]:
        """The packages' entries that can be loaded, by name."""
        loaded = (self._load(point) for _, point in sorted(self._points().items()))
        return [each for each in loaded if not isinstance(each, LoadProblem)]

    def problems(self) -> list[LoadProblem]:
        """The problems of packages' entries and of their factories."""
        return [
            problem
            for point in self._all_points()
            if (problem := self._name_problem(point) or self._load_problem(point)) is not None
        ]

    def _points(self) -> dict[str, EntryPoint]:
        points: dict[str, EntryPoint] = {}
        for point in self._all_points():
            if not self._refusal(point.name):
                points.setdefault(point.name, point)
        return points

    def _all_points(self) -> Iterator[EntryPoint]:
        from importlib.metadata import entry_points  # only here: built-in entries do not need it

        return iter(entry_points(group=self.group))

    def _load(self, point: EntryPoint) -> Info | LoadProblem:
        try:
            found: object = point.load()
        except (Exception, SystemExit) as error:
            return self._problem(point, f"it cannot be loaded: {_describe(error)}")
        if isinstance(found, self._kind):
            if found.name == point.name:
                return found
            return self._problem(
                point, f"its name is {found.name[:60]!r}, not the name of its entry point"
            )
        if self._adapt is not None and callable(found):
            return self._adapt(point.name, f"{point.module}:{point.attr}")
        return self._problem(point, f"it is not a {self._kind.__name__}")

    def _name_problem(self, point: EntryPoint) -> LoadProblem | None:
        if refusal := self._refusal(point.name):
            return self._problem(point, refusal)
        first = self._points()[point.name]
        if _package(first) != _package(point):
            return self._problem(point, f"the package {_package(first)} already uses this name")
        return None

    def _refusal(self, name: str) -> str:
        """Why a package's entry cannot have this name; empty if it can."""
        if name in self.built_in or name in self._reserved:
            return "Bullpen uses this name"
        if not re.fullmatch(self._names, name):
            return "the name must have at most 32 characters, of a-z 0-9 - _"
        return ""

    def _load_problem(self, point: EntryPoint) -> LoadProblem | None:
        from pkgutil import resolve_name  # only here: listing entries does not need it

        found = self._load(point)
        if isinstance(found, LoadProblem):
            return found
        try:
            if found.factory:
                resolve_name(found.factory)
        except (Exception, SystemExit) as error:
            return self._problem(point, f"{found.factory} cannot be loaded: {_describe(error)}")
        return None

    def _problem(self, point: EntryPoint, reason: str) -> LoadProblem:
        kind = self._kind.__name__.removesuffix("Info").lower()
        return LoadProblem(kind, point.name[:60], _package(point), reason)


def _package(point: EntryPoint) -> str:
    return "(unknown)" if point.dist is None else point.dist.name


def _describe(error: BaseException) -> str:
    text = f"{type(error).__name__}: {error}"
    return "".join(each if each.isprintable() else " " for each in text)[:REASON_CHARS]


PLUGIN_GROUP = "bullpen.plugins"
"""The entry points of plugins that packages add; plugins have no entry here."""


def plugin_files(home: Path) -> list[tuple[str, Path]]:
    """The plugins in a home, by name: each file or package whose name has no leading `.` or `_`."""
    directory = home / "plugins"
    files = [(path.stem, path) for path in sorted(directory.glob("*.py"))]
    packages = [(path.parent.name, path) for path in sorted(directory.glob("*/__init__.py"))]
    return [each for each in (*files, *packages) if not each[0].startswith((".", "_"))]
