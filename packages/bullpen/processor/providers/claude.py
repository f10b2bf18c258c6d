"""claude: Anthropic's command line."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable
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
    kind_of_status,
    kind_of_text,
    retry_after_ms,
)
from bullpen.processor.providers.untrusted_json import UntrustedJson

DIRECTORY = ProgramDirectory(
    variable="CLAUDE_CONFIG_DIR",
    default=".claude",
    login=(".credentials.json",),
    settings=("settings.json", "CLAUDE.md"),
)
SESSION_GONE = "No conversation found"
RETRIES = "1"
"""How often claude retries within a run; after that the queue retries."""

_SKILLS = "Bash(bullpen history:*),Bash(bullpen response send:*),Bash(bullpen schedule:*)"

_PERMISSIONS = {
    Permission.READ: (
        *("--permission-mode", "default"),
        *("--disallowedTools", "Bash,Edit,Write,NotebookEdit"),
    ),
    Permission.EDIT: ("--permission-mode", "acceptEdits", "--allowedTools", _SKILLS),
    Permission.FULL: ("--dangerously-skip-permissions",),
}


class Claude:
    """How to run claude."""

    env_patterns = ("ANTHROPIC_*", "CLAUDE_*")

    def __init__(self, settings: Settings, clock: Callable[[], float] = time.time) -> None:
        self._settings = settings
        self._clock = clock

    def command(self, request: RunRequest, system_file: Path) -> CliCommand:
        """The command; a new session gets its id here, and an old one is resumed by its id."""
        argv = ["claude", "-p", "--output-format", "stream-json", "--verbose"]
        # Files in the working directory must not run commands, nor send the key elsewhere.
        argv += ["--setting-sources", "user"]
        argv += ["--append-system-prompt-file", str(system_file)]
        model = request.agent.model or (request.custom.model if request.custom else "")
        argv += ["--model", model] if model else []
        if request.session is None:
            argv += ["--session-id", str(uuid.uuid4())]
        else:
            argv += ["--resume", request.session.id]
        if request.directory != request.home:
            argv += ["--add-dir", str(request.home)]
        argv += _PERMISSIONS[request.agent.permission]
        # claude interprets a first word with a slash as one of its commands.
        stdin = f"\n{request.prompt}" if request.prompt.startswith("/") else request.prompt
        return CliCommand(
            tuple(argv),
            self._environment(request),
            stdin,
            self._hidden_env(request),
            (DIRECTORY,),
        )

    def reader(self, request: RunRequest) -> ClaudeReader:
        """A reader for one run."""
        return ClaudeReader(request, self._clock)

    def _environment(self, request: RunRequest) -> dict[str, str]:
        environ = {
            "CLAUDE_CODE_MAX_RETRIES": RETRIES,
            # A message must not make it read files, for example with `@path`.
            "CLAUDE_CODE_DISABLE_ATTACHMENTS": "1",
        }
        if request.agent.permission is Permission.FULL and os.geteuid() == 0:
            environ["IS_SANDBOX"] = "1"
        settings = self._settings
        if request.custom is not None:
            environ["ANTHROPIC_BASE_URL"] = request.custom.base_url
            environ["ANTHROPIC_AUTH_TOKEN"] = request.custom.api_key
        elif settings.anthropic_oauth_token:
            environ["CLAUDE_CODE_OAUTH_TOKEN"] = settings.anthropic_oauth_token
        elif settings.anthropic_api_key:
            environ["ANTHROPIC_API_KEY"] = settings.anthropic_api_key
        return environ

    def _hidden_env(self, request: RunRequest) -> tuple[str, ...]:
        """The credentials and addresses that would override those of this run."""
        if request.custom is not None:
            return ("ANTHROPIC_*", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CODE_USE_*")
        if self._settings.anthropic_oauth_token or self._settings.anthropic_api_key:
            return ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN")
        return ()


def make_claude(settings: Settings, launcher: Launcher) -> CliProvider:
    """The provider `claude`."""
    return CliProvider(Claude(settings), launcher, settings)


class ClaudeReader:
    """Reads the lines of `--output-format stream-json`."""

    def __init__(self, request: RunRequest, clock: Callable[[], float]) -> None:
        self._request = request
        self._clock = clock
        self._blocks: list[str] = []
        self._error = ""
        self._wait: int | None = None
        self._result = UntrustedJson(None)
        self._model = request.agent.model

    def line(self, text: str) -> str | None:
        """Keep the texts, the errors and the result."""
        event = UntrustedJson.from_line(text)
        match event["type"].text, event["subtype"].text:
            case "assistant", _:
                return self._assistant(event)
            case "system", "init":
                self._model = event["model"].text or self._model
            case "system", "api_retry":
                self._wait = retry_after_ms(event["retry_delay_ms"].number / 1000)
                return f"retrying after {event['error'].text or 'an error'} ({self._wait or 0} ms)"
            case "rate_limit_event", _:
                self._limited(event["rate_limit_info"])
            case "result", _:
                self._result = event
        return None

    def close(self, end: ChildExit, errors: str) -> Reply | Failure | SessionGone:
        """Success is decided by the flag of the result and the exit code, never by its label."""
        result = self._result
        if not result.exists:
            return self._without_result(end, errors)
        if result["is_error"].is_true:
            return self._failed(result)
        if end.code != 0:
            return replace(exit_failure("claude", end, errors), usage=self._usage())
        blocks = self._blocks or [result["result"].text]
        session = Session(id=result["session_id"].text) if result["session_id"].text else None
        return Reply(text="\n\n".join(blocks), session=session, usage=self._usage())

    def _assistant(self, event: UntrustedJson) -> str | None:
        if event["error"].text:
            self._error = event["error"].text
            return None
        # The output of a sub-agent is not part of the agent's answer.
        own = not event["parent_tool_use_id"].text
        shown = []
        for block in event["message"]["content"].elements:
            if block["type"].text == "text" and block["text"].text.strip():
                shown.append(block["text"].text)
                if own:
                    self._blocks.append(block["text"].text)
            elif block["type"].text == "tool_use":
                shown.append(f"[{block['name'].text}]")
        return "\n".join(shown) or None

    def _limited(self, info: UntrustedJson) -> None:
        if info["status"].text == "rejected" and info["resetsAt"].number:
            self._wait = retry_after_ms(info["resetsAt"].number - self._clock())

    def _without_result(self, end: ChildExit, errors: str) -> Failure | SessionGone:
        if self._request.session is not None and not self._blocks and SESSION_GONE in errors:
            return SessionGone(errors.strip())
        return exit_failure("claude", end, errors)

    def _failed(self, result: UntrustedJson) -> Failure | SessionGone:
        errors = "\n".join(each.text for each in result["errors"].elements)
        said = errors or result["result"].text
        status = int(result["api_error_status"].number)
        full = result["terminal_reason"].text == "prompt_too_long"
        if self._request.session is not None and (full or SESSION_GONE in errors):
            return SessionGone(said)
        if self._error == "authentication_failed":
            kind = ErrorKind.AUTH
        elif self._error == "billing_error":
            kind = ErrorKind.QUOTA
        elif status:
            kind = kind_of_status(status, said)
        else:
            kind = kind_of_text(said)
        text = said.strip() or result["subtype"].text or "claude reported an error"
        after = self._wait if kind is ErrorKind.RATE_LIMIT else None
        return Failure(kind=kind, error=text, retry_after=after, usage=self._usage())

    def _usage(self) -> Usage:
        used = self._result["usage"]
        cached = used["cache_creation_input_tokens"].number + used["cache_read_input_tokens"].number
        models = self._result["modelUsage"].names
        return Usage(
            provider=self._request.agent.provider,
            model=self._model or (models[0] if models else None),
            input_tokens=int(used["input_tokens"].number + cached),
            output_tokens=int(used["output_tokens"].number),
            cost=self._result["total_cost_usd"].number,
        )
