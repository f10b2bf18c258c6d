"""codex: OpenAI's command line."""

from __future__ import annotations

import hashlib
import json
import re
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
    retry_after_in_text,
)
from bullpen.processor.providers.untrusted_json import UntrustedJson

DIRECTORY = ProgramDirectory(
    variable="CODEX_HOME", default=".codex", login=("auth.json",), settings=("config.toml",)
)
HOME_DIGEST_CHARS = 8
CUSTOM_KEY = "BULLPEN_CUSTOM_KEY"
_STATUS = re.compile(r"\b(?:status|HTTP)[ :]*(\d{3})\b|\b(\d{3}) [A-Z][a-z]+")
_NO_PROFILES = re.compile(r"config profile .{0,100}not found")
OLD_CODEX = "this version of codex is too old: it cannot read a profile from a file. Update codex"
_GONE = re.compile(r"no rollout found|thread.{0,60}not found|no (saved )?session", re.IGNORECASE)

_PERMISSIONS = {
    Permission.READ: ("--sandbox", "read-only"),
    Permission.EDIT: ("--sandbox", "workspace-write"),
    Permission.FULL: ("--dangerously-bypass-approvals-and-sandbox",),
}


class Codex:
    """How to run codex."""

    env_patterns = ("OPENAI_*", "CODEX_*")

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def command(self, request: RunRequest, system_file: Path) -> CliCommand:
        """The command; the system prompt is the developer instructions of a profile.

        Other users of the machine can read the arguments of a program, but not its profiles.
        """
        profile = self._profile(request)
        argv = ["codex", "exec", "--json", "--skip-git-repo-check", "--profile", profile]
        argv += _PERMISSIONS[request.agent.permission]
        model = request.agent.model or (request.custom.model if request.custom else "")
        argv += ["-m", model] if model else []
        for key, value in self._config(request):
            argv += ["-c", f"{key}={_toml(value)}"]
        if request.session is not None:
            argv += ["resume", request.session.id]
        # Its tools must not see the keys of the other service.
        hidden = ("OPENAI_*", "CODEX_API_KEY") if request.custom is not None else ()
        return CliCommand(
            (*argv, "-"),
            self._environment(request),
            _stdin(request),
            hidden,
            (DIRECTORY,),
            {f"{profile}.config.toml": f"developer_instructions = {_toml(request.system)}\n"},
        )

    def reader(self, request: RunRequest) -> CodexReader:
        """A reader for one run."""
        return CodexReader(request)

    def _profile(self, request: RunRequest) -> str:
        """The profile of this agent; other homes use other names."""
        home = str(self._settings.home.absolute()).encode(errors="surrogateescape")
        digest = hashlib.sha256(home).hexdigest()[:HOME_DIGEST_CHARS]
        return f"bullpen-{digest}-{request.agent.id}"

    def _config(self, request: RunRequest) -> list[tuple[str, object]]:
        config: list[tuple[str, object]] = [
            ("project_doc_max_bytes", 0),
            # /etc/profile would replace the PATH, and skills would not find `bullpen`.
            ("allow_login_shell", False),
            # Without this, codex would wait for the network without reporting it.
            ("features.unbounded_connection_retries", False),
        ]
        if request.custom is not None:
            # With a prefix: codex does not allow `openai` or `ollama` to be redefined.
            name = f"bullpen-{request.custom.id}"
            own = f"model_providers.{name}"
            config += [
                ("model_provider", name),
                (f"{own}.name", request.custom.name or request.custom.id),
                (f"{own}.base_url", request.custom.base_url),
                (f"{own}.env_key", CUSTOM_KEY),
                (f"{own}.wire_api", "responses"),
                (f"{own}.request_max_retries", 1),
                (f"{own}.stream_max_retries", 1),
            ]
        return config

    def _environment(self, request: RunRequest) -> dict[str, str]:
        if request.custom is not None:
            return {CUSTOM_KEY: request.custom.api_key}
        if self._settings.openai_api_key:
            return {
                "OPENAI_API_KEY": self._settings.openai_api_key,
                "CODEX_API_KEY": self._settings.openai_api_key,
            }
        return {}


def _stdin(request: RunRequest) -> str:
    """The messages, preceded by the system prompt if the thread does not have it yet."""
    known = request.session is not None and request.session.told == instructions_hash(
        request.system
    )
    if known or request.session is None:
        return request.prompt
    return f"[Bullpen: your instructions, as they are now]\n{request.system}\n\n{request.prompt}"


def _toml(value: object) -> str:
    # TOML strings are like JSON strings, but without surrogate pairs and unescaped DEL.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def instructions_hash(system: str) -> str:
    """A short hash of the system prompt of a thread."""
    return hashlib.sha256(system.encode(errors="replace")).hexdigest()[:16]


def make_codex(settings: Settings, launcher: Launcher) -> CliProvider:
    """The provider `codex`."""
    return CliProvider(Codex(settings), launcher, settings)


class CodexReader:
    """Reads the lines of `--json`."""

    def __init__(self, request: RunRequest) -> None:
        self._request = request
        self._blocks: list[str] = []
        self._thread = ""
        self._error = ""
        self._used = UntrustedJson(None)

    def line(self, text: str) -> str | None:
        """Keep the texts, the errors and the thread's id."""
        event = UntrustedJson.from_line(text)
        match event["type"].text:
            case "thread.started":
                self._thread = event["thread_id"].text
            case "item.started" if event["item"]["type"].text == "command_execution":
                return f"[{event['item']['command'].text[:200]}]"
            case "item.completed" if event["item"]["type"].text == "agent_message":
                said = event["item"]["text"].text
                if said.strip():
                    self._blocks.append(said)
                    return said
            case "turn.completed":
                self._used = event["usage"]
            case "turn.failed":
                self._error = (
                    event["error"]["message"].text or self._error or "codex reported an error"
                )
            case "error":
                self._error = event["message"].text or self._error
        return None

    def close(self, end: ChildExit, errors: str) -> Reply | Failure | SessionGone:
        """Success is a completed turn and exit code 0."""
        if self._used.exists and end.code == 0:
            asked = self._request.session
            # For an unknown id, codex starts a new thread without an error.
            lost = asked is not None and self._thread not in ("", asked.id)
            session, usage = self._account(None if lost else asked)
            text = "\n\n".join(self._blocks)
            why = "codex started a new thread" if lost else None
            return Reply(text=text, session=session, usage=usage, session_lost=why)
        if self._request.session is not None and not self._thread and _GONE.search(errors):
            return SessionGone(errors.strip()[-500:])
        if _NO_PROFILES.search(errors):
            return Failure(kind=ErrorKind.SETUP, error=OLD_CODEX)
        if not self._error:
            return exit_failure("codex", end, errors)
        return self._failed()

    def _failed(self) -> Failure | SessionGone:
        error = self._error
        if is_context_overflow(error):
            if self._request.session is not None:
                return SessionGone(error)
            return Failure(kind=ErrorKind.PERMANENT, error=error)
        found = _STATUS.search(error)
        status = int(found[1] or found[2]) if found else 0
        kind = kind_of_status(status, error) if status else kind_of_text(error)
        after = retry_after_in_text(error) if kind is ErrorKind.RATE_LIMIT else None
        return Failure(kind=kind, error=error, retry_after=after)

    def _account(self, old: Session | None) -> tuple[Session | None, Usage]:
        """codex counts the tokens of the whole thread; those of the run are the difference."""
        now = (int(self._used["input_tokens"].number), int(self._used["output_tokens"].number))
        before = (0, 0) if old is None else (old.input_tokens, old.output_tokens)
        if now[0] < before[0] or now[1] < before[1]:
            before = (0, 0)
        usage = Usage(
            provider=self._request.agent.provider,
            model=self._request.agent.model or None,
            input_tokens=now[0] - before[0],
            output_tokens=now[1] - before[1],
        )
        thread = self._thread or (old.id if old is not None else "")
        if not thread:
            return None, usage
        told = instructions_hash(self._request.system)
        return Session(id=thread, input_tokens=now[0], output_tokens=now[1], told=told), usage
