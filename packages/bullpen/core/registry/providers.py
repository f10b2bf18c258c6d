"""ProviderInfo: a provider, its program and its login; and the list of providers."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bullpen.core.registry.entries import Registry

if TYPE_CHECKING:
    from bullpen.core.settings import Settings


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
