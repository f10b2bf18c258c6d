"""opencode: how it is started, and what its lines mean. The lines are its own, shortened."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bullpen.core.message import ErrorKind, Failure, Usage
from bullpen.core.roster.agents import Permission
from bullpen.core.roster.sessions import Session
from bullpen.processor.children.child import ChildExit, ExitReason
from bullpen.processor.providers.base import CliCommand, Reply, RunRequest, SessionGone
from bullpen.processor.providers.opencode import OpenCode
from tests.processor.turns import agent, option, turn

ID = "ses_e10989cc2ffesa8P0U51JuXE0U"
SYSTEM_FILE = Path("/run/prompts/coder.md")
WHO = agent(provider="opencode", model="local/claude-sonnet-4-5")
RESUMED = turn(WHO, session=Session(id=ID))
DONE = ChildExit(ExitReason.EXITED, 0)
FAILED = ChildExit(ExitReason.EXITED, 1)


def line(kind: str, **more: object) -> str:
    """A line of this kind."""
    return json.dumps({"type": kind, "timestamp": 1795017895450, "sessionID": ID, **more})


def said(text: str) -> str:
    """A text of the model's."""
    return line("text", part={"id": "prt_1", "type": "text", "text": text})


def finished(read: int, written: int, cost: float, reason: str = "stop") -> str:
    """The end of a step."""
    tokens = {"input": read, "output": written, "reasoning": 1, "cache": {"write": 2, "read": 3}}
    part = {"reason": reason, "type": "step-finish", "tokens": tokens, "cost": cost}
    return line("step_finish", part=part)


def error(name: str = "APIError", **data: object) -> str:
    """A refusal."""
    return line("error", error={"name": name, "data": data})


STEP = line("step_start", part={"type": "step-start"})
TOOL = line("tool_use", part={"type": "tool", "tool": "bash", "state": {"status": "completed"}})
LAST = finished(100, 10, 0.25)


def read(
    *lines: str, asked: RunRequest | None = None, end: ChildExit = DONE, errors: str = ""
) -> Reply | Failure | SessionGone:
    """What a run came to that printed this."""
    made = OpenCode().reader(asked or turn(WHO))
    for each in lines:
        made.line(each)
    return made.close(end, errors)


def failure(*lines: str, end: ChildExit = FAILED, errors: str = "") -> Failure:
    """How a run failed."""
    found = read(*lines, end=end, errors=errors)
    assert isinstance(found, Failure), found
    return found


def test_an_answer_has_all_its_texts_its_session_and_what_its_steps_took() -> None:
    first = finished(1000, 100, 0.5, "tool-calls")
    found = read(STEP, said("I look."), TOOL, first, STEP, said("Done."), LAST)
    usage = Usage(
        provider="opencode",
        model="local/claude-sonnet-4-5",
        input_tokens=1110,
        output_tokens=112,
        cost=0.75,
    )
    assert found == Reply(text="I look.\n\nDone.", session=Session(id=ID), usage=usage)


def test_an_empty_answer_is_empty() -> None:
    found = read(STEP, said(" "), LAST)
    assert isinstance(found, Reply)
    assert found.text == ""


def test_those_who_watch_are_told_the_texts_and_the_tools() -> None:
    made = OpenCode().reader(turn(WHO))
    assert made.line(said("I look.")) == "I look."
    assert made.line(TOOL) == "[bash]"
    for each in (STEP, LAST, said(" "), error(message="x"), "no JSON"):
        assert made.line(each) is None, each


@pytest.mark.parametrize(
    ("event", "kind"),
    [
        (error(message="invalid x-api-key", statusCode=401), ErrorKind.AUTH),
        (error(message="Your credit balance is too low", statusCode=400), ErrorKind.QUOTA),
        (error(message="no such model", statusCode=404), ErrorKind.PERMANENT),
        (error(message="slow down", statusCode=429), ErrorKind.RATE_LIMIT),
        (error(message="broken", statusCode=500), ErrorKind.RETRYABLE),
        (error(message="rate limit exceeded"), ErrorKind.RATE_LIMIT),
        (error("ProviderAuthError", message="the key is not there"), ErrorKind.AUTH),
        (error("UnknownError", message="Unexpected server error."), ErrorKind.RETRYABLE),
        (error("MessageAbortedError"), ErrorKind.RETRYABLE),
        (line("error"), ErrorKind.RETRYABLE),
    ],
)
def test_each_refusal_is_of_its_kind(event: str, kind: ErrorKind) -> None:
    found = failure(STEP, event)
    assert found.kind is kind
    assert found.error


def test_a_refusal_is_a_failure_whatever_else_it_said() -> None:
    found = failure(STEP, said("I begin."), LAST, error(message="broken"), end=DONE)
    assert found.error == "broken"
    assert found.usage.cost == 0.25


@pytest.mark.parametrize(("after", "wait"), [("2", 2000), ("soon", None), (7, None)])
def test_a_rate_limit_lasts_as_long_as_it_says(after: object, wait: int | None) -> None:
    headers = {"retry-after": after}
    limit = error(message="slow down", statusCode=429, responseHeaders=headers)
    assert failure(STEP, limit).retry_after == wait
    other = error(message="broken", statusCode=500, responseHeaders=headers)
    assert failure(STEP, other).retry_after is None


@pytest.mark.parametrize("end", [FAILED, ChildExit(ExitReason.EXITED, -9)])
def test_an_exit_code_is_a_failure_whatever_was_said_before(end: ChildExit) -> None:
    lines = (STEP, said("Hello!"), LAST)
    found = read(*lines, asked=RESUMED, end=end, errors="session not found")
    assert isinstance(found, Failure)
    assert found.kind is ErrorKind.RETRYABLE
    assert found.usage.cost == 0.25


GONE = "\x1b[91m\x1b[1mError: \x1b[0mSession not found\n"


def test_a_session_that_is_unknown_is_lost() -> None:
    found = read(asked=RESUMED, end=FAILED, errors=GONE)
    assert isinstance(found, SessionGone)
    assert "Session not found" in found.why


def test_a_new_session_cannot_be_lost() -> None:
    assert failure(errors=GONE).error == "opencode ended with status 1: Error: Session not found"


def test_an_answer_beside_a_complaint_is_an_answer() -> None:
    found = read(STEP, said("Hello!"), LAST, asked=RESUMED, errors=GONE)
    assert isinstance(found, Reply)
    assert found.session_lost is None


def test_a_session_that_has_become_too_long_is_lost_and_a_prompt_that_is_fails() -> None:
    event = error(message="prompt is too long: 215123 tokens > 200000 maximum", statusCode=400)
    assert isinstance(read(event, asked=RESUMED, end=FAILED), SessionGone)
    assert failure(event).kind is ErrorKind.PERMANENT


@pytest.mark.parametrize(
    "other", ["", "{", "[" * 100_000, '{"type":[]}', '{"type":"text","part":7}', "\0", "[]"]
)
def test_a_line_that_it_never_printed_changes_nothing(other: str) -> None:
    found = read(other, STEP, other, said("Hello!"), LAST, other)
    assert isinstance(found, Reply)
    assert found.text == "Hello!"
    assert found.session == Session(id=ID)


def command(asked: RunRequest | None = None) -> CliCommand:
    """How it is started."""
    return OpenCode().command(asked or turn(WHO), SYSTEM_FILE)


def test_a_session_is_resumed_by_its_id() -> None:
    assert "--session" not in command().argv
    assert option(command(RESUMED), "--session") == ID


@pytest.mark.parametrize("prompt", ["-rf", "--help", "/cost", "x" * 300_000])
def test_a_prompt_is_never_an_argument(prompt: str) -> None:
    made = command(turn(WHO, prompt=prompt))
    assert not any(prompt in each for each in made.argv)
    assert made.stdin == prompt


def test_what_it_is_told_and_may_do_is_an_agent_of_its_own() -> None:
    for permission, bash, edit in (
        (Permission.READ, "deny", "deny"),
        (Permission.EDIT, "deny", "allow"),
        (Permission.FULL, "allow", "allow"),
    ):
        made = command(turn(agent(permission=permission)))
        config = json.loads(made.environ["OPENCODE_CONFIG_CONTENT"])
        own = config["agent"][option(made, "--agent")]
        assert own["prompt"] == f"{{file:{SYSTEM_FILE}}}"
        assert (own["permission"]["bash"], own["permission"]["edit"]) == (bash, edit)
        assert config["share"] == "disabled"


def test_its_model_is_the_agents_and_it_need_not_find_a_title() -> None:
    assert option(command(), "-m") == "local/claude-sonnet-4-5"
    assert "-m" not in command(turn()).argv
    assert option(command(), "--title") == "coder"
