"""codex: how it is started, and what its lines mean. The lines are its own, shortened."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest

from bullpen.core.message import ErrorKind, Failure, Usage
from bullpen.core.roster.agents import Permission
from bullpen.core.roster.providers import Harness
from bullpen.core.roster.sessions import Session
from bullpen.core.settings import Settings
from bullpen.processor.children.child import ChildExit, ExitReason
from bullpen.processor.providers.base import CliCommand, Reply, RunRequest, SessionGone
from bullpen.processor.providers.codex import Codex, instructions_hash
from tests.processor.turns import SYSTEM, agent, custom, option, turn

THREAD = "01a1ef62-2bd0-7463-acab-63f912314ba7"
OTHER = "01a1ef64-0000-7463-acab-63f912314ba7"
SYSTEM_FILE = Path("/run/prompts/coder.md")
DONE = ChildExit(ExitReason.EXITED, 0)
FAILED = ChildExit(ExitReason.EXITED, 1)
LONG = "é☃" * 50_000
"""More than an argument may have."""

TURN = '{"type":"turn.started"}'
WARNING = (
    '{"type":"item.completed","item":{"id":"item_0","type":"error","message":"Model metadata for '
    '`gpt-5-codex` not found. Defaulting to fallback metadata; this can degrade performance."}}'
)
TOOL = (
    '{"type":"item.%s","item":{"id":"item_2","type":"command_execution","command":'
    '"/bin/bash -lc \'echo hi\'","aggregated_output":"hi\\n","exit_code":0}}'
)


def started(thread: str = THREAD) -> str:
    """The first line."""
    return json.dumps({"type": "thread.started", "thread_id": thread})


def said(text: str) -> str:
    """A text of the model's."""
    item = {"id": "item_1", "type": "agent_message", "text": text}
    return json.dumps({"type": "item.completed", "item": item})


def completed(read: int = 123, written: int = 45) -> str:
    """The last line, with what the thread has used in all."""
    usage = {"input_tokens": read, "cached_input_tokens": 7, "output_tokens": written}
    return json.dumps({"type": "turn.completed", "usage": usage})


def refused(message: str) -> tuple[str, ...]:
    """The lines of a run whose request was refused."""
    reconnecting = {"type": "error", "message": f"Reconnecting... 1/1 ({message})"}
    lines = (
        reconnecting,
        {"type": "error", "message": message},
        {"type": "turn.failed", "error": {"message": message}},
    )
    return (started(), WARNING, TURN, *(json.dumps(line) for line in lines))


def resumed(read: int = 0, written: int = 0, told: str = SYSTEM) -> RunRequest:
    """A turn of a thread that has used so much already."""
    session = Session(
        id=THREAD, input_tokens=read, output_tokens=written, told=instructions_hash(told)
    )
    return turn(agent(provider="codex"), session=session)


def read(
    *lines: str, asked: RunRequest | None = None, end: ChildExit = DONE, errors: str = ""
) -> Reply | Failure | SessionGone:
    """What a run came to that printed this."""
    made = Codex(Settings()).reader(asked or turn(agent(provider="codex")))
    for line in lines:
        made.line(line)
    return made.close(end, errors)


def reply(*lines: str, asked: RunRequest | None = None) -> Reply:
    """What a run answered."""
    found = read(*lines, asked=asked)
    assert isinstance(found, Reply), found
    return found


def failure(*lines: str, end: ChildExit = FAILED, errors: str = "") -> Failure:
    """How a run failed."""
    found = read(*lines, end=end, errors=errors)
    assert isinstance(found, Failure), found
    return found


def test_an_answer_has_its_text_its_thread_and_what_it_took() -> None:
    assert read(started(), WARNING, TURN, said("Hello!"), completed()) == Reply(
        text="Hello!",
        session=Session(
            id=THREAD, input_tokens=123, output_tokens=45, told=instructions_hash(SYSTEM)
        ),
        usage=Usage(provider="codex", input_tokens=123, output_tokens=45),
    )


def test_all_texts_are_the_answer_and_not_the_last_alone() -> None:
    lines = (started(), TURN, said("First."), TOOL % "started", TOOL % "completed", said("Last."))
    assert reply(*lines, completed()).text == "First.\n\nLast."


def test_an_empty_answer_is_empty() -> None:
    assert reply(started(), TURN, said(" "), completed()).text == ""


@pytest.mark.parametrize(
    ("before", "now", "used"),
    [
        ((123, 45), (323, 50), (200, 5)),
        ((0, 0), (323, 50), (323, 50)),
        ((323, 50), (323, 50), (0, 0)),
        # It was compacted, or is another's: what it has used is all that is known.
        ((323, 50), (100, 60), (100, 60)),
        ((323, 50), (400, 10), (400, 10)),
    ],
)
def test_what_a_run_took_is_what_its_thread_took_more(
    before: tuple[int, int], now: tuple[int, int], used: tuple[int, int]
) -> None:
    found = reply(started(), TURN, said("Hello!"), completed(*now), asked=resumed(*before))
    assert (found.usage.input_tokens, found.usage.output_tokens) == used
    assert found.session is not None
    assert (found.session.input_tokens, found.session.output_tokens) == now
    assert found.session_lost is None


def test_another_thread_than_was_asked_for_is_a_loss_and_counts_from_nothing() -> None:
    lines = (started(OTHER), TURN, said("Hello!"), completed(323, 50))
    found = reply(*lines, asked=resumed(123, 45))
    assert found.session_lost
    assert found.text == "Hello!"
    assert found.session is not None
    assert found.session.id == OTHER
    assert (found.usage.input_tokens, found.usage.output_tokens) == (323, 50)


def test_a_new_thread_in_place_of_the_one_that_was_asked_for_knows_its_instructions() -> None:
    asked = resumed()
    found = reply(started(OTHER), TURN, said("Hello!"), completed(), asked=asked)
    assert found.session is not None
    assert found.session.id == OTHER
    assert command(turn(asked.agent, session=found.session)).stdin == "hello"


def test_those_who_watch_are_told_the_texts_and_the_commands() -> None:
    made = Codex(Settings()).reader(turn())
    assert made.line(said("I look.")) == "I look."
    assert made.line(TOOL % "started") == "[/bin/bash -lc 'echo hi']"
    for line in (started(), TURN, WARNING, TOOL % "completed", completed(), "no JSON", said(" ")):
        assert made.line(line) is None, line


UNKNOWN = (
    "Error: thread/resume: thread/resume failed: no rollout found for thread id "
    f"{THREAD} (code -32600)\n"
)
BUSY = (
    f"Error: thread/resume: thread/resume failed: thread {THREAD} already has an active writer "
    "(code -32600)\n"
)


def test_a_thread_that_is_unknown_is_lost() -> None:
    found = read(asked=resumed(), end=FAILED, errors=UNKNOWN)
    assert isinstance(found, SessionGone)
    assert "no rollout found" in found.why


def test_a_thread_that_is_in_use_is_not_lost() -> None:
    found = read(asked=resumed(), end=FAILED, errors=BUSY)
    assert isinstance(found, Failure)
    assert found.kind is ErrorKind.RETRYABLE
    assert "active writer" in found.error


def test_a_new_thread_cannot_be_lost() -> None:
    assert failure(errors=UNKNOWN).kind is ErrorKind.RETRYABLE


def test_a_complaint_after_the_thread_began_is_no_loss() -> None:
    errors = f"ERROR codex_core::session: failed to record rollout items: thread {THREAD} not found"
    found = read(started(), TURN, asked=resumed(), end=FAILED, errors=errors)
    assert isinstance(found, Failure)


@pytest.mark.parametrize(
    "message",
    [
        "Codex ran out of room in the model's context window. Start a new thread.",
        '{"error":{"code":"context_length_exceeded","message":"Your input exceeds it."}}',
    ],
)
def test_a_thread_that_has_become_too_long_is_lost_and_a_prompt_that_is_fails(message: str) -> None:
    assert read(*refused(message), asked=resumed(), end=FAILED) == SessionGone(message)
    assert failure(*refused(message)).kind is ErrorKind.PERMANENT


@pytest.mark.parametrize("end", [FAILED, ChildExit(ExitReason.EXITED, -9)])
def test_an_exit_code_is_a_failure_whatever_was_said_before(end: ChildExit) -> None:
    assert failure(started(), TURN, said("Hello!"), completed(), end=end).error


def test_an_end_in_peace_without_a_completed_turn_is_no_success() -> None:
    found = failure(started(), TURN, said("I begin."), end=DONE)
    assert (found.kind, found.error) == (ErrorKind.RETRYABLE, "codex ended without an answer")


def test_a_connection_that_was_found_again_is_no_failure() -> None:
    lost = json.dumps({"type": "error", "message": "Reconnecting... 1/5 (unexpected status 401)"})
    assert reply(started(), TURN, lost, said("Hello!"), completed()).text == "Hello!"


URL = ", url: http://127.0.0.1:44417/v1/responses"


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        (f"unexpected status 401 Unauthorized: Incorrect API key: dummy.{URL}", ErrorKind.AUTH),
        (f"unexpected status 403 Forbidden: no{URL}", ErrorKind.AUTH),
        (f"unexpected status 404 Not Found: no such model{URL}", ErrorKind.PERMANENT),
        ("The model `x` does not exist or you do not have access to it.", ErrorKind.PERMANENT),
        ("exceeded retry limit, last status: 429 Too Many Requests", ErrorKind.RATE_LIMIT),
        ("Quota exceeded. Check your plan and billing details.", ErrorKind.QUOTA),
        ("You’ve hit your usage limit. Try again later.", ErrorKind.RATE_LIMIT),
        (
            "To use Codex with your ChatGPT plan, upgrade to Plus: https://chatgpt.com/explore.",
            ErrorKind.QUOTA,
        ),
        ("We’re currently experiencing high demand.", ErrorKind.RETRYABLE),
        ("Selected model is at capacity. Please try a different model.", ErrorKind.RETRYABLE),
        ("rate limit exceeded: Rate limit reached for gpt-5.", ErrorKind.RATE_LIMIT),
        ("stream disconnected before completion: stream closed", ErrorKind.RETRYABLE),
        ("Connection failed: error sending request", ErrorKind.RETRYABLE),
        (f"unexpected status 503 Service Unavailable: x{URL}", ErrorKind.RETRYABLE),
        ("Missing environment variable: `BULLPEN_CUSTOM_KEY`.", ErrorKind.AUTH),
    ],
)
def test_each_refusal_is_of_its_kind(message: str, kind: ErrorKind) -> None:
    found = failure(*refused(message))
    assert (found.kind, found.error) == (kind, message)


@pytest.mark.parametrize(
    ("again", "after"),
    [
        ("in 11.054s.", 11_054),
        ("in 20ms.", 20),
        ("in 1m23.5s.", 83_500),
        ("in 2h15m", 8_100_000),
        ("in 3 days 1 hour 5 minutes.", 263_100_000),
        ("in 90 seconds", 90_000),
        ("in 900 days", 8 * 24 * 3_600_000),
        ("later.", None),
        ("in a while", None),
        ("at 6:01 PM.", None),
    ],
)
def test_a_rate_limit_lasts_as_long_as_it_says(again: str, after: int | None) -> None:
    found = failure(*refused(f"You’ve hit your usage limit. Try again {again}"))
    assert (found.kind, found.retry_after) == (ErrorKind.RATE_LIMIT, after)


@pytest.mark.parametrize(
    "line", ["", "{", "[" * 100_000, '{"type":7}', '{"type":"item.completed"}', '{"item":[]}', "\0"]
)
def test_a_line_that_it_never_printed_changes_nothing(line: str) -> None:
    lines = (line, started(), line, said("Hello!"), line, completed(), line)
    assert reply(*lines).text == "Hello!"


def command(asked: RunRequest | None = None, settings: Settings | None = None) -> CliCommand:
    """How it is started."""
    return Codex(settings or Settings()).command(asked or turn(), SYSTEM_FILE)


def config(made: CliCommand) -> dict[str, object]:
    """What its `-c` arguments say, read as it reads them."""
    values = (made.argv[at + 1] for at, each in enumerate(made.argv) if each == "-c")
    return tomllib.loads("\n".join(values))


def instructions(made: CliCommand) -> object:
    """What its profile tells it, read as it reads that."""
    profile = made.files[f"{option(made, '--profile')}.config.toml"]
    return tomllib.loads(profile)["developer_instructions"]


def test_a_thread_is_resumed_by_its_id_after_all_options() -> None:
    assert command().argv[-1] == "-"
    assert "resume" not in command().argv
    assert command(resumed()).argv[-3:] == ("resume", THREAD, "-")


@pytest.mark.parametrize("prompt", ["-rf", "--help", "/cost", "$imagegen", "x" * 300_000])
def test_a_prompt_is_never_an_argument(prompt: str) -> None:
    made = command(turn(prompt=prompt))
    assert not any(prompt in each for each in made.argv)
    assert made.stdin == prompt


@pytest.mark.parametrize(
    "system",
    [
        *(SYSTEM, 'a "quoted" \\ word\n\ttab\r\n', "true", "[1, 2]", "= #", "'''", '"""'),
        *("🐑 ☃ é", "\x00\x01\x1b\x7f\x85\u2028", ""),
    ],
)
def test_what_it_is_told_arrives_word_for_word(system: str) -> None:
    assert instructions(command(turn(system=system))) == system


def test_what_it_is_told_is_not_told_twice() -> None:
    assert command(turn()).stdin == "hello"
    assert command(resumed()).stdin == "hello"


def test_what_it_is_told_now_is_told_to_a_thread_that_knows_it_otherwise() -> None:
    stdin = command(resumed(told="You are the wolf.")).stdin
    assert SYSTEM in stdin
    assert stdin.endswith("\n\nhello")


@pytest.mark.parametrize("system", [LONG, "\n" * 60_000, "🐑" * 20_000, "secret"])
def test_its_instructions_are_in_a_file_of_its_own_and_not_in_its_arguments(system: str) -> None:
    made = command(turn(system=system))
    assert instructions(made) == system
    assert made.stdin == "hello"
    assert system not in " ".join(made.argv)


def test_a_codex_that_is_too_old_for_profiles_is_a_matter_of_setup() -> None:
    told = "Error: Error loading configuration: config profile `bullpen-1-coder` not found"
    found = failure(errors=told)
    assert (found.kind, "too old" in found.error) == (ErrorKind.SETUP, True)


def test_agents_and_homes_have_profiles_of_their_own() -> None:
    settings = [Settings(home=Path(each)) for each in ("/one", "/two")]
    names = [option(command(turn(), each), "--profile") for each in settings]
    names += [option(command(turn(agent("tester")), each), "--profile") for each in settings]
    assert len(set(names)) == 4
    assert all(re.fullmatch(r"bullpen-[0-9a-f]{8}-(coder|tester)", each) for each in names)


def test_permissions_are_the_agents() -> None:
    read, edit, full = (command(turn(agent(permission=each))).argv for each in Permission)
    assert read[read.index("--sandbox") + 1] == "read-only"
    assert edit[edit.index("--sandbox") + 1] == "workspace-write"
    flag = "--dangerously-bypass-approvals-and-sandbox"
    assert [flag in each for each in (read, edit, full)] == [False, False, True]


def test_the_agents_model_goes_before_the_services() -> None:
    own = custom(Harness.CODEX, model="theirs")
    assert "-m" not in command().argv
    for asked, model in ((turn(custom=own), "theirs"), (turn(agent(model="m"), custom=own), "m")):
        argv = command(asked).argv
        assert argv[argv.index("-m") + 1] == model


def test_the_key_of_the_settings_is_given_in_the_environment() -> None:
    made = command(settings=Settings(openai_api_key="key"))
    assert made.environ == {"OPENAI_API_KEY": "key", "CODEX_API_KEY": "key"}
    assert "key" not in made.argv
    assert command().environ == {}


@pytest.mark.parametrize("name", ["other", "openai", "ollama", "x-1_y"])
def test_a_service_of_somebody_elses_gets_its_own_key_and_none_of_ours(name: str) -> None:
    made = command(turn(custom=custom(Harness.CODEX, name)), Settings(openai_api_key="key"))
    found = config(made)
    chosen = found["model_provider"]
    providers = found["model_providers"]
    assert isinstance(providers, dict)
    assert chosen not in ("openai", "ollama"), "which nobody may redefine"
    assert providers.keys() == {chosen}
    assert providers[chosen]["base_url"] == "https://other.example/v1"
    assert made.environ == {providers[chosen]["env_key"]: "own"}
    assert not any("own" in each.split('"') for each in made.argv)
    assert {"OPENAI_*", "CODEX_API_KEY"} <= set(made.hidden_env)


def test_a_connection_that_does_not_come_is_not_waited_for_for_ever() -> None:
    found = config(command())
    assert found["features"] == {"unbounded_connection_retries": False}


def test_its_commands_find_what_the_processor_finds() -> None:
    assert config(command())["allow_login_shell"] is False
