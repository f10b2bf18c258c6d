"""claude: how it is started, and what its lines mean. The lines are its own, shortened."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Mapping
from pathlib import Path

import pytest

from bullpen.core.message import ErrorKind, Failure, Usage
from bullpen.core.roster.agents import Permission
from bullpen.core.roster.providers import Harness
from bullpen.core.roster.sessions import Session
from bullpen.core.settings import Settings
from bullpen.processor.children.child import ChildExit, ExitReason
from bullpen.processor.providers.base import CliCommand, Reply, RunRequest, SessionGone
from bullpen.processor.providers.claude import Claude, ClaudeReader
from tests.processor.turns import agent, custom, option, turn

ID = "bbe3530b-0000-4000-8000-000000000000"
NOW = 1_795_000_000.0
SYSTEM_FILE = Path("/run/prompts/coder.md")
RESUMED = turn(session=Session(id=ID))
DONE = ChildExit(ExitReason.EXITED, 0)
FAILED = ChildExit(ExitReason.EXITED, 1)
USED = {
    "input_tokens": 100,
    "cache_creation_input_tokens": 20,
    "cache_read_input_tokens": 3,
    "output_tokens": 45,
}

INIT = json.dumps(
    {
        **{"type": "system", "subtype": "init", "cwd": "/work", "session_id": ID},
        **{"model": "claude-opus-4-8[1m]", "tools": ["Task", "Bash"], "mcp_servers": []},
    }
)
HOOK = '{"type":"system","subtype":"hook_started","hook_event":"SessionStart"}'
TOOL_RESULT = (
    '{"type":"user","message":{"role":"user","content":[{"tool_use_id":"toolu_1",'
    '"type":"tool_result","content":"hi-42","is_error":false}]},"parent_tool_use_id":null}'
)
CONTINUE = (
    '{"type":"user","message":{"role":"user","content":[{"type":"text","text":"[Your previous '
    'response had no visible output.]"}]},"parent_tool_use_id":null,"isSynthetic":true}'
)


def assistant(*content: Mapping[str, object], **more: object) -> str:
    """A line of the model's."""
    message = {"id": "msg_0001", "role": "assistant", "content": content, "usage": USED}
    return json.dumps({"type": "assistant", "message": message, "parent_tool_use_id": None, **more})


def said(text: str, **more: object) -> str:
    """A text of the model's."""
    return assistant({"type": "text", "text": text}, **more)


def result(text: str | None = "Hello!", **more: object) -> str:
    """The last line."""
    values: dict[str, object] = {
        **{"type": "result", "subtype": "success", "is_error": False, "api_error_status": None},
        **{"num_turns": 1, "result": text, "session_id": ID, "total_cost_usd": 0.00174},
        **{"usage": USED, "modelUsage": {"claude-haiku-4-5": {}, "claude-opus-4-8[1m]": {}}},
        **{"permission_denials": [], "terminal_reason": "completed"},
    }
    return json.dumps({**values, **more})


def refused(status: int | None, error: str, text: str, **more: object) -> tuple[str, ...]:
    """The lines of a run whose request was refused."""
    synthetic = said(f"API Error: {text}", error=error)
    nothing: dict[str, object] = {"usage": {}, "modelUsage": {}, "total_cost_usd": 0}
    values = {"is_error": True, "api_error_status": status, **nothing, **more}
    return INIT, synthetic, result(text, **values)


def reader(asked: RunRequest | None = None) -> ClaudeReader:
    """A reader at a known time."""
    return Claude(Settings(), lambda: NOW).reader(asked or turn())


def read(
    *lines: str, asked: RunRequest | None = None, end: ChildExit = DONE, errors: str = ""
) -> Reply | Failure | SessionGone:
    """What a run came to that printed this."""
    made = reader(asked)
    for line in lines:
        made.line(line)
    return made.close(end, errors)


def failure(*lines: str, end: ChildExit = FAILED, errors: str = "") -> Failure:
    """How a run failed."""
    found = read(*lines, end=end, errors=errors)
    assert isinstance(found, Failure), found
    return found


def text(*lines: str) -> str:
    """What a run answered."""
    found = read(*lines)
    assert isinstance(found, Reply), found
    return found.text


def test_an_answer_has_its_text_its_session_and_what_it_took() -> None:
    usage = Usage(
        provider="claude",
        model="claude-opus-4-8[1m]",
        input_tokens=123,
        output_tokens=45,
        cost=0.00174,
    )
    assert read(INIT, said("Hello!"), result()) == Reply(
        text="Hello!", session=Session(id=ID), usage=usage
    )


def test_what_it_took_is_of_the_run_also_when_it_was_resumed() -> None:
    before = Session(id=ID, input_tokens=1000, output_tokens=1000, cost=5)
    found = read(INIT, said("Hello!"), result(), asked=turn(session=before))
    assert isinstance(found, Reply)
    assert (found.usage.input_tokens, found.usage.output_tokens) == (123, 45)
    assert found.session_lost is None


def test_all_texts_are_the_answer_and_not_the_last_alone() -> None:
    tool = assistant({"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {}})
    lines = (HOOK, INIT, said("First text."), tool, TOOL_RESULT, said("Done: hi-42"))
    assert text(*lines, result("Done: hi-42")) == "First text.\n\nDone: hi-42"

    several = assistant(*({"type": "text", "text": each} for each in ("One.", "  \n", "Two.")))
    assert text(INIT, several, result("Two.")) == "One.\n\nTwo."


def test_what_a_sub_agent_says_is_not_the_answer() -> None:
    other = said("I found nothing.", parent_tool_use_id="toolu_1")
    assert text(INIT, said("I ask."), other, said("Nothing."), result()) == "I ask.\n\nNothing."


def test_an_answer_without_a_line_of_its_own_is_in_the_result() -> None:
    assert text(INIT, result("Unknown command: /x")) == "Unknown command: /x"


def test_an_empty_answer_is_empty() -> None:
    assert text(INIT, CONTINUE, result("")) == ""


def test_those_who_watch_are_told_the_texts_and_the_tools() -> None:
    made = reader()
    use = {"type": "tool_use", "name": "Bash", "input": {}}
    retry = '{"type":"system","subtype":"api_retry","retry_delay_ms":2000,"error":"rate_limit"}'
    assert made.line(said("I look.")) == "I look."
    assert made.line(assistant({"type": "text", "text": "And"}, use)) == "And\n[Bash]"
    assert made.line(retry) == "retrying after rate_limit (2000 ms)"
    for line in (INIT, HOOK, TOOL_RESULT, said(" "), result(), "no JSON", "[]", '"x"', "{}"):
        assert made.line(line) is None, line


def test_the_label_says_nothing_about_success() -> None:
    lines = (INIT, said("Hello!"))
    assert isinstance(read(*lines, result(subtype="error_during_execution")), Reply)
    assert isinstance(read(*lines, result(subtype="success", is_error=True)), Failure)


def test_an_exit_code_is_a_failure_whatever_was_said_before() -> None:
    found = failure(INIT, said("Your billing is fine."), result("Your billing is fine."))
    assert found.kind is ErrorKind.RETRYABLE
    assert found.error == "claude ended with status 1"
    assert found.usage.output_tokens == 45


def test_an_end_in_peace_without_a_result_is_no_success() -> None:
    found = failure(INIT, said("I begin."), end=DONE)
    assert (found.kind, found.error) == (ErrorKind.RETRYABLE, "claude ended without an answer")


def test_an_interrupted_run_is_no_success() -> None:
    diagnosis = "[ede_diagnostic] result_type=user last_content_type=n/a stop_reason=null"
    more = {"terminal_reason": "aborted_streaming", "errors": [diagnosis]}
    last = result(None, subtype="error_during_execution", is_error=True, **more)
    found = failure(INIT, last, end=DONE)
    assert (found.kind, found.error) == (ErrorKind.RETRYABLE, diagnosis)


def test_what_it_complains_of_is_in_the_error() -> None:
    complaint = "Error: System prompt file not found: /nonexistent\n"
    assert complaint.strip() in failure(errors=complaint).error


GONE = f"No conversation found with session ID: {ID}"
UNKNOWN = json.dumps(
    {
        **{"type": "result", "subtype": "error_during_execution", "is_error": True},
        **{"num_turns": 0, "session_id": ID, "errors": [GONE]},
    }
)


def test_a_session_that_is_unknown_is_lost() -> None:
    assert read(UNKNOWN, asked=RESUMED, end=FAILED, errors=GONE) == SessionGone(GONE)
    assert read(asked=RESUMED, end=FAILED, errors=f"{GONE}\n") == SessionGone(GONE)


def test_a_new_session_cannot_be_lost() -> None:
    assert isinstance(read(UNKNOWN, end=FAILED, errors=GONE), Failure)
    assert isinstance(read(end=FAILED, errors=GONE), Failure)


def test_an_answer_that_speaks_of_lost_sessions_is_an_answer() -> None:
    found = read(INIT, said(GONE), result(GONE), asked=RESUMED, errors=GONE)
    assert isinstance(found, Reply)
    assert found.text == GONE
    for lines in ((INIT, said(GONE), result(GONE, is_error=True)), (INIT, said(GONE))):
        assert isinstance(read(*lines, asked=RESUMED, end=FAILED, errors=GONE), Failure)


def test_a_session_that_has_become_too_long_is_lost_and_a_prompt_that_is_fails() -> None:
    lines = refused(
        *(400, "invalid_request", "Prompt is too long · the request is ~215123 tokens"),
        terminal_reason="prompt_too_long",
    )
    assert isinstance(read(*lines, asked=RESUMED, end=FAILED), SessionGone)
    assert failure(*lines).kind is ErrorKind.PERMANENT


@pytest.mark.parametrize(
    ("status", "error", "said", "kind"),
    [
        (401, "authentication_failed", "Invalid API key · Fix external API key", ErrorKind.AUTH),
        (403, "authentication_failed", "Failed to authenticate. API Error: 403 x", ErrorKind.AUTH),
        (None, "authentication_failed", "Not logged in · Please run /login", ErrorKind.AUTH),
        (400, "billing_error", "Credit balance is too low", ErrorKind.QUOTA),
        (402, "unknown", "API Error: 402 pay", ErrorKind.QUOTA),
        (404, "model_not_found", "There's an issue with the selected model", ErrorKind.PERMANENT),
        (413, "invalid_request", "Request too large (max 32MB).", ErrorKind.PERMANENT),
        (429, "rate_limit", "API Error: Request rejected (429) · x", ErrorKind.RATE_LIMIT),
        (429, "rate_limit", "You've hit your limit · resets 5:57pm", ErrorKind.RATE_LIMIT),
        (500, "server_error", "API Error: 500 <message>. This is", ErrorKind.RETRYABLE),
        (529, "server_error", "API Error: 529 Overloaded.", ErrorKind.RETRYABLE),
        (None, "server_error", "Request timed out", ErrorKind.RETRYABLE),
        (None, "server_error", "API Error: Unable to connect to API", ErrorKind.RETRYABLE),
    ],
)
def test_each_refusal_is_of_its_kind(
    status: int | None, error: str, said: str, kind: ErrorKind
) -> None:
    found = failure(*refused(status, error, said))
    assert (found.kind, found.error) == (kind, said)


def test_a_rate_limit_lasts_as_long_as_it_says() -> None:
    lines = refused(429, "rate_limit", "You've hit your limit")
    assert failure(*lines).retry_after is None
    info = {"status": "rejected", "resetsAt": NOW + 90, "rateLimitType": "five_hour"}
    limit = json.dumps({"type": "rate_limit_event", "rate_limit_info": info})
    assert failure(limit, *lines).retry_after == 90_000
    retry = '{"type":"system","subtype":"api_retry","retry_delay_ms":2000,"error":"rate_limit"}'
    assert failure(retry, *lines).retry_after == 2000


@pytest.mark.parametrize("info", [{"status": "allowed", "resetsAt": NOW + 90}, {"status": "x"}])
def test_a_limit_that_does_not_apply_is_none(info: dict[str, object]) -> None:
    limit = json.dumps({"type": "rate_limit_event", "rate_limit_info": info})
    assert failure(limit, *refused(429, "rate_limit", "limit")).retry_after is None
    assert text(limit, INIT, said("Hello!"), result()) == "Hello!"


@pytest.mark.parametrize(("resets", "after"), [(NOW - 5, None), (1e14, 8 * 24 * 3_600_000)])
def test_a_limit_of_the_past_is_none_and_one_of_years_is_not_believed(
    resets: float, after: int | None
) -> None:
    info = {"status": "rejected", "resetsAt": resets}
    limit = json.dumps({"type": "rate_limit_event", "rate_limit_info": info})
    assert failure(limit, *refused(429, "rate_limit", "limit")).retry_after == after


def test_only_a_rate_limit_says_when_to_try_again() -> None:
    retry = '{"type":"system","subtype":"api_retry","retry_delay_ms":2000,"error":"overloaded"}'
    assert failure(retry, *refused(529, "server_error", "Overloaded")).retry_after is None


@pytest.mark.parametrize(
    "line",
    [
        *("", "Error: x", "{", "[" * 100_000, '{"type":', "\0", "�", '{"type":"result"}x', "1e999"),
        '{"type":["result"]}',
        '{"type":"assistant","message":{"content":[1,null,{"type":"text","text":7},"x"]}}',
        '{"type":"assistant","message":[],"parent_tool_use_id":{}}',
        '{"type":"assistant"}',
        '{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":"soon"}}',
        '{"type":"system","subtype":"api_retry","retry_delay_ms":NaN}',
    ],
)
def test_a_line_that_it_never_printed_changes_nothing(line: str) -> None:
    assert text(line, INIT, line, said("Hello!"), line, result(), line) == "Hello!"


def test_what_cannot_be_stored_is_replaced() -> None:
    found = read(INIT, said("a\0b\ud800c"), result(session_id="x\0y"))
    assert isinstance(found, Reply)
    assert found.text == "a�b?c"
    assert found.session == Session(id="x�y")


@pytest.mark.parametrize("used", [None, [], {"input_tokens": "x", "output_tokens": -5}])
def test_usage_that_makes_no_sense_is_none(used: object) -> None:
    found = read(INIT, said("Hello!"), result(usage=used, total_cost_usd=float("nan")))
    assert isinstance(found, Reply)
    assert (found.usage.input_tokens, found.usage.output_tokens, found.usage.cost) == (0, 0, 0)


def command(asked: RunRequest | None = None, settings: Settings | None = None) -> CliCommand:
    """How it is started."""
    return Claude(settings or Settings()).command(asked or turn(), SYSTEM_FILE)


def test_a_new_session_has_an_id_of_our_choice_and_an_old_one_is_resumed() -> None:
    first, second = command(), command()
    ids = {option(each, "--session-id") for each in (first, second)}
    assert len({uuid.UUID(each) for each in ids}) == 2
    assert "--resume" not in first.argv
    resumed = command(RESUMED)
    assert option(resumed, "--resume") == ID
    assert "--session-id" not in resumed.argv


def test_what_it_is_told_is_told_again_each_time() -> None:
    for asked in (turn(), RESUMED):
        assert option(command(asked), "--append-system-prompt-file") == str(SYSTEM_FILE)


@pytest.mark.parametrize("prompt", ["-rf", "--help", "/cost", "@/etc/hostname", "x" * 300_000])
def test_a_prompt_is_never_an_argument(prompt: str) -> None:
    made = command(turn(prompt=prompt))
    assert not any(prompt in each for each in made.argv)
    assert made.stdin.lstrip("\n") == prompt
    assert not made.stdin.startswith("/"), "which would be a command of its own"
    assert made.environ["CLAUDE_CODE_DISABLE_ATTACHMENTS"] == "1"


def test_the_agents_model_goes_before_the_services() -> None:
    own = custom(Harness.CLAUDE, model="theirs")
    assert "--model" not in command().argv
    assert option(command(turn(custom=own)), "--model") == "theirs"
    asked = turn(agent(model="opus"), custom=own)
    assert option(command(asked), "--model") == "opus"


def test_an_agent_that_works_elsewhere_reaches_its_home() -> None:
    assert "--add-dir" not in command().argv
    assert option(command(turn(directory=Path("/repo"))), "--add-dir") == "/home/coder"


def test_permissions_are_the_agents() -> None:
    read, edit, full = (command(turn(agent(permission=each))) for each in Permission)
    assert option(read, "--permission-mode") == "default"
    assert set(option(read, "--disallowedTools").split(",")) >= {"Bash", "Edit", "Write"}
    assert option(edit, "--permission-mode") == "acceptEdits"
    assert "--dangerously-skip-permissions" in full.argv
    assert {option(each, "--setting-sources") for each in (read, edit, full)} == {"user"}
    for each in (read, edit):
        assert "--dangerously-skip-permissions" not in each.argv
        assert "IS_SANDBOX" not in each.environ
    assert (full.environ.get("IS_SANDBOX") == "1") is (os.geteuid() == 0)


def secrets(made: CliCommand) -> dict[str, str]:
    """The credentials and the address that it is given."""
    names = ("_KEY", "_TOKEN", "_URL")
    return {name: value for name, value in made.environ.items() if name.endswith(names)}


def test_credentials_of_the_settings_go_before_those_of_the_environment() -> None:
    key = command(settings=Settings(anthropic_api_key="key"))
    token = command(settings=Settings(anthropic_api_key="key", anthropic_oauth_token="token"))
    assert secrets(key) == {"ANTHROPIC_API_KEY": "key"}
    assert secrets(token) == {"CLAUDE_CODE_OAUTH_TOKEN": "token"}
    for made in (key, token):
        assert {"ANTHROPIC_AUTH_TOKEN", *secrets(key), *secrets(token)} <= set(made.hidden_env)
    assert command().hidden_env == ()


def test_a_service_of_somebody_elses_gets_its_own_key_and_none_of_ours() -> None:
    settings = Settings(anthropic_api_key="key", anthropic_oauth_token="token")
    made = command(turn(custom=custom(Harness.CLAUDE)), settings)
    assert secrets(made) == {
        "ANTHROPIC_BASE_URL": "https://other.example/v1",
        "ANTHROPIC_AUTH_TOKEN": "own",
    }
    assert not any("own" in each or "example" in each for each in made.argv)
    assert {"ANTHROPIC_*", "CLAUDE_CODE_OAUTH_TOKEN"} <= set(made.hidden_env)
