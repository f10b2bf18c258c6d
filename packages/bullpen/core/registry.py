"""Providers, channels and reports: one list of each, built-in ones and those of other packages.

A package adds an entry with an entry point in the group `bullpen.providers`, `bullpen.channels` or
`bullpen.reports`. The `factory` of an entry is a name, `module:attribute`, so that listing entries
imports nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from bullpen.core.settings import Settings

SETTING_PREFIX = "BULLPEN_"
REASON_CHARS = 300
ANY_NAME = r".+"
SERVICE_NAME = r"[a-z0-9][a-z0-9_-]{0,31}"


@dataclass(frozen=True, slots=True)
class Credential:
    """A setting that contains a key; the prefix of a key decides its setting."""

    setting: str
    prefix: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """How a program is logged in, as far as that is visible without a run."""

    credentials: tuple[Credential, ...]
    variables: tuple[str, ...] = ()
    """Environment variables, one of which is enough."""
    directory: str
    """The directory of the program's files."""
    directory_variable: str
    """The variable that names another directory."""
    files: tuple[str, ...]
    """Files in the directory, one of which is enough."""

    def configured(self, settings: Settings) -> bool:
        """Whether the settings contain a key."""
        return any(getattr(settings, each.setting) for each in self.credentials)

    def found(self, settings: Settings, environ: Mapping[str, str]) -> bool:
        """Whether a key or the files of a login exist; only a run proves that they work."""
        if self.configured(settings) or any(environ.get(each) for each in self.variables):
            return True
        directory = Path(environ.get(self.directory_variable) or self.directory)
        with suppress(RuntimeError):  # there is no home directory for ~
            return any((directory.expanduser() / each).exists() for each in self.files)
        return False

    def assign(self, key: str) -> dict[str, str | None]:
        """The setting for this key; the others are cleared because one may override it."""
        fitting = [each for each in self.credentials if key.startswith(each.prefix)]
        chosen = max(fitting, key=lambda each: len(each.prefix)).setting
        return {each.setting: key if each.setting == chosen else None for each in self.credentials}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderInfo:
    """A provider: the program or protocol with which agents answer."""

    name: str
    factory: str
    """`module:attribute` of a callable that takes the settings and the launcher of children."""
    program: str | None = None
    """The program that it starts."""
    install: str = ""
    """The command that installs the program, as its vendor documents it."""
    log_in: str = ""
    """How a person logs in to the program: the end of a sentence that begins with "Log in: "."""
    login: Login | None = None
    """Where the login is stored; None if that is unknown."""
    automatic: bool = False
    """Whether `bullpen up` uses it for the first agent, if its program is installed."""
    aliases: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    """Names of models that the command line suggests."""


@dataclass(frozen=True, slots=True)
class AddressFormat:
    """The form of a channel's addresses, as regular expressions of their parts."""

    chat: str
    example: str
    thread: str | None = None
    direct: bool = False
    """True if an address is that of a person, and needs no chat."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelLimits:
    """The limits of the platform; None is unlimited."""

    text_characters: int | None = None
    """The longest text of one platform message."""
    file_bytes: int | None = None
    """The largest file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelInfo:
    """A channel: a platform on which people write and are answered."""

    name: str
    address: AddressFormat | None = None
    """None accepts every printable address."""
    needs: tuple[str, ...] = ()
    """Settings without which its service is not started."""
    limits: ChannelLimits = ChannelLimits()
    factory: str = ""
    """`module:attribute` of a callable that takes a `ChannelContext` and returns its client.

    Empty if there is no client."""
    pull: bool = False
    """True if people fetch their responses, for example with `bullpen response read`.

    Only for built-in channels, because a package's channel delivers responses."""


class Chart(StrEnum):
    """How a report is drawn."""

    NONE = "none"
    BAR = "bar"
    LINE = "line"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportInfo:
    """A report: a question about past runs, and its answer."""

    name: str
    question: str
    columns: tuple[str, ...]
    factory: str
    """`module:attribute` of the function that computes its rows with Spark."""
    chart: Chart = Chart.NONE


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


def setting_value(name: str, settings: Settings, environ: Mapping[str, str]) -> str:
    """The value of a setting as text; one of a package is `BULLPEN_NAME` in `environ`."""
    if name in {each.name for each in fields(settings)}:
        return str(getattr(settings, name))
    return environ.get(f"{SETTING_PREFIX}{name.upper()}", "")


PROVIDERS = Registry(
    ProviderInfo,
    "bullpen.providers",
    (
        ProviderInfo(name="echo", factory="bullpen.processor.providers.echo:make_echo"),
        ProviderInfo(
            name="claude",
            factory="bullpen.processor.providers.claude:make_claude",
            program="claude",
            install="npm install -g @anthropic-ai/claude-code",
            log_in=(
                "run `claude`, then /login; or run `bullpen config set anthropic_api_key` "
                "and `bullpen restart processor`"
            ),
            login=Login(
                credentials=(
                    Credential("anthropic_api_key"),
                    Credential("anthropic_oauth_token", prefix="sk-ant-oat"),
                ),
                variables=(
                    *("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"),
                    *("CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX"),
                    "CLAUDE_CODE_USE_FOUNDRY",
                ),
                directory="~/.claude",
                directory_variable="CLAUDE_CONFIG_DIR",
                files=(".credentials.json",),
            ),
            automatic=True,
            aliases=("anthropic",),
            models=("haiku", "opus", "sonnet"),
        ),
        ProviderInfo(
            name="codex",
            factory="bullpen.processor.providers.codex:make_codex",
            program="codex",
            install="npm install -g @openai/codex",
            log_in=(
                "run `codex login`; or run `bullpen config set openai_api_key` "
                "and `bullpen restart processor`"
            ),
            login=Login(
                credentials=(Credential("openai_api_key"),),
                variables=("OPENAI_API_KEY", "CODEX_API_KEY"),
                directory="~/.codex",
                directory_variable="CODEX_HOME",
                files=("auth.json",),
            ),
            automatic=True,
            aliases=("openai",),
        ),
        ProviderInfo(
            name="opencode",
            factory="bullpen.processor.providers.opencode:make_opencode",
            program="opencode",
            install="npm install -g opencode-ai",
            log_in="run `opencode auth login`",
        ),
        ProviderInfo(name="http", factory="bullpen.processor.providers.echo:make_http"),
    ),
    adapt=lambda name, path: ProviderInfo(name=name, factory=path),
)

# Halves of surrogate pairs cannot be stored.
_ANY_NAME = r"[^\s/\x00-\x1f\x7f\ud800-\udfff]{0,200}"
_PHONE_NUMBER = r"\+[1-9]\d{6,14}"

CHANNELS = Registry(
    ChannelInfo,
    "bullpen.channels",
    (
        ChannelInfo(
            name="slack",
            address=AddressFormat(
                r"[CDGUW][A-Z0-9]{5,20}",
                "slack:C0123456789 or slack:C0123456789/1700000000.000100",
                r"\d{6,12}\.\d{1,9}",
            ),
        ),
        ChannelInfo(
            name="telegram",
            address=AddressFormat(r"-?[1-9]\d{0,18}", "telegram:123456789", r"[1-9]\d{0,18}"),
        ),
        ChannelInfo(
            name="discord", address=AddressFormat(r"\d{15,20}", "discord:123456789012345678")
        ),
        ChannelInfo(
            name="sms", address=AddressFormat(_PHONE_NUMBER, "sms:+491701234567", direct=True)
        ),
        ChannelInfo(
            name="whatsapp",
            address=AddressFormat(_PHONE_NUMBER, "whatsapp:+491701234567", direct=True),
        ),
        ChannelInfo(
            name="web", address=AddressFormat(_ANY_NAME, "web:ann", direct=True), pull=True
        ),
        ChannelInfo(
            name="cli", address=AddressFormat(_ANY_NAME, "cli:owner", direct=True), pull=True
        ),
        ChannelInfo(
            name="api", address=AddressFormat(_ANY_NAME, "api:ann", direct=True), pull=True
        ),
    ),
    names=SERVICE_NAME,
    # Services of Bullpen, channels on which only Bullpen writes, and words of addresses.
    reserved=frozenset(
        {
            *("processor", "scheduler", "guard", "minder", "supervisord", "supervisor", "channel"),
            *("chatroom", "internal", "heartbeat", "schedule", "owner", "nowhere"),
        }
    ),
)

REPORTS = Registry(ReportInfo, "bullpen.reports", names=SERVICE_NAME)

PLUGIN_GROUP = "bullpen.plugins"
"""The entry points of plugins that packages add; plugins have no entry here."""


def plugin_files(home: Path) -> list[tuple[str, Path]]:
    """The plugins in a home, by name: each file or package whose name has no leading `.` or `_`."""
    directory = home / "plugins"
    files = [(path.stem, path) for path in sorted(directory.glob("*.py"))]
    packages = [(path.parent.name, path) for path in sorted(directory.glob("*/__init__.py"))]
    return [each for each in (*files, *packages) if not each[0].startswith((".", "_"))]
