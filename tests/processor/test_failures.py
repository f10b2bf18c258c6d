"""Each way in which a run can fail is told as what it is; each by a real program that does it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from bullpen.core.message import ErrorKind, Failure
from bullpen.processor.children.child import Launcher
from bullpen.processor.providers.base import Reply
from tests.processor.turns import (
    CLAUDE,
    PROVIDERS,
    Place,
    at_most,
    kill,
    launching,
    living,
    mark,
    open_files,
    parent,
)
from tests.processor.working import SOON, eventually


@pytest.fixture(scope="module")
def launcher() -> Iterator[Launcher]:
    """One fork server for all."""
    with launching() as made:
        yield made


@pytest.fixture
def place(tmp_path: Path, launcher: Launcher) -> Iterator[Place]:
    """A scratch directory."""
    with Place(tmp_path, launcher) as made:
        yield made


@pytest.fixture(params=PROVIDERS)
def name(request: pytest.FixtureRequest) -> str:
    """Each of the programs."""
    return str(request.param)


def claude(status: int | None, error: str, said: str) -> tuple[str, ...]:
    """What claude prints when its request was refused."""
    content = [{"type": "text", "text": said}]
    return (
        '{"type":"system","subtype":"init","model":"claude-opus-4-8"}',
        json.dumps({"type": "assistant", "message": {"content": content}, "error": error}),
        json.dumps(
            {"type": "result", "is_error": True, "api_error_status": status, "result": said}
        ),
    )


def codex(said: str) -> tuple[str, ...]:
    """What codex prints then."""
    return (
        '{"type":"thread.started","thread_id":"t1"}',
        json.dumps({"type": "error", "message": said}),
        json.dumps({"type": "turn.failed", "error": {"message": said}}),
    )


def opencode(said: str, status: int | None = None, after: str = "") -> tuple[str, ...]:
    """What opencode prints then."""
    data = {"message": said, "statusCode": status, "responseHeaders": {"retry-after": after}}
    error = {"name": "APIError", "data": data}
    return (json.dumps({"type": "error", "sessionID": "s1", "error": error}),)


LIMITED = '{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1060}}'
REFUSALS: dict[str, tuple[str, tuple[str, ...], ErrorKind, int | None]] = {
    "claude, a key that is refused": (
        *("claude", claude(401, "authentication_failed", "Invalid API key")),
        *(ErrorKind.AUTH, None),
    ),
    "claude, no login": (
        *("claude", claude(None, "authentication_failed", "Not logged in · Please run /login")),
        *(ErrorKind.AUTH, None),
    ),
    "claude, no credit": (
        *("claude", claude(400, "billing_error", "Credit balance is too low")),
        *(ErrorKind.QUOTA, None),
    ),
    "claude, a limit and until when": (
        *("claude", (LIMITED, *claude(429, "rate_limit", "You've hit your limit"))),
        *(ErrorKind.RATE_LIMIT, 60_000),
    ),
    "claude, a limit": (
        *("claude", claude(429, "rate_limit", "API Error: Request rejected (429)")),
        *(ErrorKind.RATE_LIMIT, None),
    ),
    "claude, no such model": (
        *("claude", claude(404, "model_not_found", "There's an issue with the selected model")),
        *(ErrorKind.PERMANENT, None),
    ),
    "claude, an overload": (
        *("claude", claude(529, "server_error", "API Error: 529 Overloaded.")),
        *(ErrorKind.RETRYABLE, None),
    ),
    "codex, a key that is refused": (
        *("codex", codex("unexpected status 401 Unauthorized: Incorrect API key provided")),
        *(ErrorKind.AUTH, None),
    ),
    "codex, no credit": (
        *("codex", codex("Quota exceeded. Check your plan and billing details.")),
        *(ErrorKind.QUOTA, None),
    ),
    "codex, a limit and until when": (
        *("codex", codex("rate limit exceeded: Please try again in 11.054s.")),
        *(ErrorKind.RATE_LIMIT, 11_054),
    ),
    "codex, no connection": (
        *("codex", codex("Connection failed: error sending request")),
        *(ErrorKind.RETRYABLE, None),
    ),
    "opencode, a key that is refused": (
        *("opencode", opencode("invalid x-api-key", 401)),
        *(ErrorKind.AUTH, None),
    ),
    "opencode, no credit": (
        *("opencode", opencode("Your credit balance is too low", 400)),
        *(ErrorKind.QUOTA, None),
    ),
    "opencode, a limit and until when": (
        *("opencode", opencode("slow down", 429, "30")),
        *(ErrorKind.RATE_LIMIT, 30_000),
    ),
}


@pytest.mark.parametrize("what", REFUSALS)
def test_a_refused_request_is_of_its_kind(place: Place, what: str) -> None:
    program, lines, kind, after = REFUSALS[what]
    place.prints(program, *lines, code=1)
    found = place.run(PROVIDERS[program])
    assert isinstance(found, Failure)
    assert (found.kind, found.retry_after) == (kind, after)
    assert json.dumps(found.error) in lines[-1], "what it said is the reason"


def test_an_exit_code_is_retryable_and_named(place: Place, name: str) -> None:
    place.prints(name, code=3, errors="it broke at cli.js:429:12 and cli.js:401:5\n")
    said = "it broke at cli.js:429:12 and cli.js:401:5"
    assert place.fails(PROVIDERS[name]) == (
        *(ErrorKind.RETRYABLE, f"{name} ended with status 3: {said}"),
    )


@pytest.mark.parametrize("signal", ["KILL", "SEGV", "TERM"])
def test_a_signal_is_retryable_and_named(place: Place, name: str, signal: str) -> None:
    place.program(name, f"echo unauthorized, or so >&2; kill -{signal} $$")
    kind, error = place.fails(PROVIDERS[name])
    assert kind is ErrorKind.RETRYABLE
    assert error == f"{name} was killed by SIG{signal}: unauthorized, or so"


@pytest.mark.parametrize(
    ("complaint", "kind"),
    [
        ("Not logged in · Please run /login", ErrorKind.AUTH),
        ("HTTP error: 401 Unauthorized", ErrorKind.AUTH),
        ("Error: token has expired", ErrorKind.AUTH),
        ("Error: status 429", ErrorKind.RATE_LIMIT),
        ("Your credit balance is too low", ErrorKind.QUOTA),
        ("Error: Invalid session ID. Must be a valid UUID.", ErrorKind.RETRYABLE),
    ],
)
def test_a_complaint_alone_says_the_kind(
    place: Place, name: str, complaint: str, kind: ErrorKind
) -> None:
    place.prints(name, code=1, errors=complaint)
    assert place.fails(PROVIDERS[name]) == (kind, f"{name} ended with status 1: {complaint}")


def test_an_end_without_a_word_is_retryable(place: Place, name: str) -> None:
    place.prints(name)
    kind, error = place.fails(PROVIDERS[name])
    assert kind is ErrorKind.RETRYABLE
    assert "answer" in error


EMPTY = {
    "claude": '{"type":"result","is_error":false,"result":"  ","usage":{"output_tokens":5}}',
    "codex": '{"type":"turn.completed","usage":{"output_tokens":5}}',
    "opencode": '{"type":"step_finish","part":{"tokens":{"output":5}}}',
}


def test_an_empty_answer_is_retryable_and_was_paid_for(place: Place, name: str) -> None:
    place.prints(name, EMPTY[name])
    found = place.run(PROVIDERS[name])
    assert isinstance(found, Failure)
    assert (found.kind, found.error) == (ErrorKind.RETRYABLE, "the answer is empty")
    assert found.usage.output_tokens == 5


@pytest.mark.parametrize("line", ["Welcome!", "{", '{"type": "result", "is_err', "[]", "null", "7"])
def test_output_that_is_something_else_is_retryable(place: Place, name: str, line: str) -> None:
    place.prints(name, line, line)
    assert place.fails(PROVIDERS[name])[0] is ErrorKind.RETRYABLE


def test_a_run_that_falls_silent_is_retryable_and_ended(place: Place, name: str) -> None:
    word = mark()
    place.environ["XDG_MARK"] = word
    place.settings = replace(place.settings, idle_seconds=1)
    place.program(name, "trap '' INT; echo begun; setsid sleep 1000 & sleep 1000; sleep 1000")
    assert place.fails(PROVIDERS[name]) == (
        *(ErrorKind.RETRYABLE, "no output for 1 s; the run was stopped"),
    )
    assert living(word) == []


def test_a_run_that_takes_too_long_is_retryable_and_ended(place: Place, name: str) -> None:
    word = mark()
    place.environ["XDG_MARK"] = word
    place.settings = replace(place.settings, run_seconds=1)
    place.program(name, "while :; do echo and on; sleep 0.05; done")
    assert place.fails(PROVIDERS[name]) == (
        *(ErrorKind.RETRYABLE, "the run took longer than 1 s and was stopped"),
    )
    assert living(word) == []


def test_a_program_that_is_not_there_needs_setup(place: Place, name: str) -> None:
    kind, error = place.fails(PROVIDERS[name])
    assert kind is ErrorKind.SETUP
    assert error.startswith(f"{name} is not installed. Install it: npm install -g ")


def test_a_program_that_may_not_be_run_needs_setup(place: Place, name: str) -> None:
    place.prints(name).chmod(0o644)
    kind, error = place.fails(PROVIDERS[name])
    assert (kind, error) == (ErrorKind.SETUP, f"{name} cannot be executed (EACCES)")


def test_a_program_that_is_a_directory_needs_setup(place: Place, name: str) -> None:
    (place.bin / name).mkdir()
    kind, error = place.fails(PROVIDERS[name])
    assert (kind, error) == (ErrorKind.SETUP, f"{name} cannot be executed (EACCES)")


def test_a_program_for_another_machine_needs_setup(place: Place, name: str) -> None:
    place.prints(name).write_bytes(b"\x7fELF of somewhere else")
    kind, error = place.fails(PROVIDERS[name])
    assert (kind, error) == (ErrorKind.SETUP, f"{name} cannot be executed (ENOEXEC)")


def test_a_program_whose_interpreter_is_not_there_needs_setup(place: Place, name: str) -> None:
    place.program(name, "", "/usr/bin/env no-such-node")
    kind, error = place.fails(PROVIDERS[name])
    assert kind is ErrorKind.SETUP
    assert "no-such-node" in error
    place.program(name, "", "/no/such/node")
    assert place.fails(PROVIDERS[name])[0] is ErrorKind.SETUP


def test_a_directory_that_is_not_there_needs_setup_and_is_named(place: Place, name: str) -> None:
    place.prints(name)
    for path in (place.path / "nowhere", place.path / "out"):
        kind, error = place.fails(PROVIDERS[name], place.turn(directory=path))
        assert kind is ErrorKind.SETUP
        assert str(path) in error
        assert not (place.path / "runs").exists(), "it is not run somewhere else"


def test_a_directory_that_is_deleted_meanwhile_is_the_programs_to_judge(
    place: Place, name: str
) -> None:
    place.program(name, f"rmdir {place.yard} && exit 5")
    assert place.fails(PROVIDERS[name]) == (ErrorKind.RETRYABLE, f"{name} ended with status 5")
    assert place.fails(PROVIDERS[name])[0] is ErrorKind.SETUP


DONE = {
    "claude": '{"type":"assistant","message":{"content":[{"type":"text","text":"Done."}]}}\n'
    '{"type":"result","is_error":false,"result":"Done.","session_id":"s1"}\n',
    "codex": '{"type":"thread.started","thread_id":"s1"}\n'
    '{"type":"item.completed","item":{"type":"agent_message","text":"Done."}}\n'
    '{"type":"turn.completed","usage":{"input_tokens":1}}\n',
    "opencode": '{"type":"text","sessionID":"s1","part":{"text":"Done."}}\n',
}


def test_a_keeper_that_is_killed_is_retryable_whatever_was_said(place: Place, name: str) -> None:
    then = "setsid sleep 1000 & echo $$ > $here/new; mv $here/new $here/pid; sleep 1000"
    place.prints(name, *DONE[name].splitlines(), after=then)
    word = mark()
    place.environ["XDG_MARK"] = word
    found: list[object] = []
    thread = threading.Thread(target=lambda: found.append(place.run(PROVIDERS[name])))
    thread.start()
    pid = place.path / "pid"
    eventually(pid.exists, "it runs")
    kill([parent(int(pid.read_text()))])
    thread.join(SOON)
    assert found == [
        Failure(
            kind=ErrorKind.RETRYABLE, error=f"{name} ended because its parent process was killed"
        ),
    ]
    eventually(lambda: not living(word), "nothing is left")


def test_a_want_of_files_is_retryable_and_over_when_there_are_some(place: Place) -> None:
    place.prints("claude", *DONE["claude"].splitlines())
    assert isinstance(place.run(CLAUDE), Reply)
    files, failed = open_files(), 0
    # From the lowest number on that is free: with it alone no file can be opened.
    free = min(set(range(len(files) + 1)) - set(map(int, files)))
    for most in range(free, len(files) + 40):
        with at_most(most):
            found = place.run(CLAUDE)
        if isinstance(found, Reply):
            break
        assert isinstance(found, Failure)
        assert found.kind is ErrorKind.RETRYABLE
        assert "Too many open files" in found.error
        failed += 1
    assert failed, "it needs some"
    assert isinstance(place.run(CLAUDE), Reply)
    assert len(open_files()) <= len(files)
