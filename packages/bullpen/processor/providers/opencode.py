"""opencode: a command line for many services; its models are called `service/model`."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from bullpen.core.message import ErrorKind, Failure, Usage
from bullpen.core.roster.agents import Permission
from bullpen.core.roster.sessions import Session
from bullpen.core.settings import Settings
from bullpen.processor.children.child import ChildExit, Launcher
from bullpen.processor.providers.base import (
    CliCommand,
    ProgramDirectory,
    Reply,
    RunRequest,
    SessionGone,
)
from bullpen.processor.providers.command_line import CliProvider
from bullpen.processor.providers.errors import (
    exit_failure,
    is_context_overflow,
    kind_of_status,
    kind_of_text,
    retry_after_ms,
)
from bullpen.processor.providers.untrusted_json import UntrustedJson

AGENT = "bullpen"
DIRECTORIES = (
    ProgramDirectory(
        variable="XDG_DATA_HOME", default=".local/share", below="opencode", login=("auth.json",)
    ),
    ProgramDirectory(
        variable="XDG_CONFIG_HOME",
        default=".config",
        below="opencode",
        settings=("config.json", "opencode.json", "opencode.jsonc"),
    ),
    ProgramDirectory(variable="XDG_CACHE_HOME", default=".cache", below="opencode"),
    ProgramDirectory(variable="XDG_STATE_HOME", default=".local/state", below="opencode"),
)

_PERMISSIONS: dict[Permission, dict[str, str]] = {
    Permission.READ: {"edit": "deny", "bash": "deny", "webfetch": "deny"},
    Permission.EDIT: {"edit": "allow", "bash": "deny", "webfetch": "deny"},
    Permission.FULL: {"edit": "allow", "bash": "allow", "webfetch": "allow"},
}


class OpenCode:
    """How to run opencode."""

    env_patterns = ("OPENCODE_*", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY")

    def command(self, request: RunRequest, system_file: Path) -> CliCommand:
        """The command; the system prompt belongs to an agent in its configuration."""
        argv = ["opencode", "run", "--format", "json", "--agent", AGENT]
        argv += ["--title", request.agent.id]  # otherwise it asks the model for a title
        argv += ["-m", request.agent.model] if request.agent.model else []
        argv += ["--session", request.session.id] if request.session is not None else []
        config = {
            "agent": {
                AGENT: {
                    "mode": "primary",
                    "prompt": f"{{file:{system_file}}}",
                    "permission": _PERMISSIONS[request.agent.permission],
                }
            },
            "autoupdate": False,
            "share": "disabled",
        }
        environ = {"OPENCODE_CONFIG_CONTENT": json.dumps(config)}
        return CliCommand(tuple(argv), environ, request.prompt, directories=DIRECTORIES)

    def reader(self, request: RunRequest) -> OpenCodeReader:
        """A reader for one run."""
        return OpenCodeReader(request)


def make_opencode(settings: Settings, launcher: Launcher) -> CliProvider:
    """The provider `opencode`."""
    return CliProvider(OpenCode(), launcher, settings)


class OpenCodeReader:
    """Reads the lines of `--format json`."""

    def __init__(self, request: RunRequest) -> None:
        self._request = request
        self._blocks: list[str] = []
        self._session = ""
        self._error = ""
        self._name = ""
        self._status = 0
        self._wait: int | None = None
        self._tokens = [0, 0]
        self._cost = 0.0

    def line(self, text: str) -> str | None:
        """Keep the texts, the errors and the usage of each step."""
        event = UntrustedJson.from_line(text)
        self._session = event["sessionID"].text or self._session
        part = event["part"]
        match event["type"].text:
            case "text":
                if part["text"].text.strip():
                    self._blocks.append(part["text"].text)
                    return part["text"].text
            case "tool_use":
                return f"[{part['tool'].text}]"
            case "step_finish":
                tokens = part["tokens"]
                cached = tokens["cache"]["read"].number + tokens["cache"]["write"].number
                self._tokens[0] += int(tokens["input"].number + cached)
                self._tokens[1] += int(tokens["output"].number + tokens["reasoning"].number)
                self._cost += part["cost"].number
            case "error":
                self._failed(event["error"])
        return None

    def close(self, end: ChildExit, errors: str) -> Reply | Failure | SessionGone:
        """An error event or a nonzero exit code is a failure."""
        if self._error:
            return self._failure()
        if end.code != 0:
            gone = "session not found" in errors.lower() and not self._blocks
            if self._request.session is not None and gone:
                return SessionGone(errors.strip()[-500:])
            return replace(exit_failure("opencode", end, errors), usage=self._usage())
        session = Session(id=self._session) if self._session else None
        return Reply(text="\n\n".join(self._blocks), session=session, usage=self._usage())

    def _failed(self, error: UntrustedJson) -> None:
        data = error["data"]
        self._name = error["name"].text
        self._error = data["message"].text or self._name or "an error"
        self._status = int(data["statusCode"].number)
        after = data["responseHeaders"]["retry-after"].text
        self._wait = retry_after_ms(float(after)) if after.isdecimal() else None

    def _failure(self) -> Failure | SessionGone:
        said = self._error
        lost = is_context_overflow(said) or "session not found" in said.lower()
        if self._request.session is not None and lost:
            return SessionGone(said)
        if self._name == "ProviderAuthError":
            kind = ErrorKind.AUTH
        elif is_context_overflow(said):
            kind = ErrorKind.PERMANENT
        else:
            kind = kind_of_status(self._status, said) if self._status else kind_of_text(said)
        after = self._wait if kind is ErrorKind.RATE_LIMIT else None
        return Failure(kind=kind, error=said, retry_after=after, usage=self._usage())

    def _usage(self) -> Usage:
        return Usage(
            provider=self._request.agent.provider,
            model=self._request.agent.model or None,
            input_tokens=self._tokens[0],
            output_tokens=self._tokens[1],
            cost=self._cost,
        )
