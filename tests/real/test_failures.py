"""Each failure of a provider does what it must: wait, pause or try again; no message is lost."""

from __future__ import annotations

import time

from bullpen.core.queue.lanes import resume_lane
from tests.conformance.verbs import do, lane_row, message, responses
from tests.processor.working import eventually
from tests.real.clis import Cli
from tests.real.office import Office
from tests.real.reply import Body, Hang, Refuse, Reply, Say


def counted(office: Office, message_id: str) -> tuple[int, int]:
    """How many tries and crashes a message has had."""
    row = message(office.store, message_id)
    return int(row["retry_count"]), int(row["crash_count"])


def test_a_rate_limit_lets_the_lane_wait_and_counts_nothing(office: Office, claude: Cli) -> None:
    office.hire("ann", claude)
    # claude itself waits and tries once more.
    limited = Refuse(429, headers={"retry-after": "2"})
    claude.server.answers(limited, limited, Say("Now."))
    with office.processor():
        asked = office.ask("ann", "hello")
        office.becomes(asked, "completed")
    assert office.answers(asked) == ["Now."]
    assert counted(office, asked) == (0, 0)
    failed, done = office.attempts()
    assert (failed["outcome"], failed["error_kind"]) == ("failed", "rate_limit")
    assert done["claimed_at"] - failed["finished_at"] >= 2000


def test_a_rate_limit_of_codex_lets_the_lane_wait_and_counts_nothing(
    office: Office, codex: Cli
) -> None:
    office.hire("ann", codex)
    codex.server.script = lambda _: Say("Now.") if office.attempts() else Refuse(429)
    with office.processor(retry_base_seconds=1):
        asked = office.ask("ann", "hello")
        office.becomes(asked, "completed")
    assert office.answers(asked) == ["Now."]
    assert counted(office, asked) == (0, 0)
    first, done = office.attempts()
    assert (first["outcome"], first["error_kind"]) == ("failed", "rate_limit")
    assert done["claimed_at"] - first["finished_at"] >= 1000


def test_a_subscription_that_is_used_up_lets_the_lane_wait_until_it_is_renewed(
    office: Office, claude: Cli
) -> None:
    office.hire("ann", claude)
    resets: list[int] = []

    def script(body: Body) -> Reply:
        if resets:
            return Say("Now.")
        resets.append(int(time.time()) + 5)
        limits = {"status": "rejected", "reset": resets[0], "representative-claim": "five_hour"}
        limits |= {"overage-status": "rejected", "5h-status": "rejected", "5h-reset": resets[0]}
        headers = {f"anthropic-ratelimit-unified-{name}": str(it) for name, it in limits.items()}
        return Refuse(429, headers=headers)

    claude.server.script = script
    with office.processor(anthropic_oauth_token="a-subscription"):
        asked = office.ask("ann", "hello")
        office.becomes(asked, "completed")
    assert counted(office, asked) == (0, 0)
    failed, done = office.attempts()
    assert failed["error_kind"] == "rate_limit"
    assert done["claimed_at"] >= resets[0] * 1000
    for request in claude.server.requests:
        assert request.headers["authorization"] == "Bearer a-subscription"
        assert "x-api-key" not in request.headers


def test_a_refused_key_pauses_the_agent_and_the_owner_is_told(office: Office, cli: Cli) -> None:
    office.hire("ann", cli)
    cli.server.script = lambda _: Refuse(401, message="invalid x-api-key")
    with office.processor():
        asked = office.ask("ann", "hello")
        eventually(lambda: lane_row(office.store, "ann")["state"] == "paused", "it is paused")
        assert message(office.store, asked)["status"] == "pending"
        assert counted(office, asked) == (0, 0)
        (told,) = responses(office.store)
        assert (told["channel"], told["sender"]) == ("cli", "owner")
        assert "@ann is paused" in told["message"]
        assert "bullpen agent resume ann" in told["message"]
        assert str(lane_row(office.store, "ann")["reason"]).startswith("auth: ")
        cli.server.answers(Say("Now."))
        do(office.store, resume_lane, "ann")
        office.becomes(asked, "completed")
    assert [each["error_kind"] for each in office.attempts()] == ["auth", None]


def test_an_overload_is_tried_again_by_claude_and_then_by_the_queue(
    office: Office, claude: Cli
) -> None:
    office.hire("ann", claude)
    claude.server.answers(Refuse(529), Say("One."), Refuse(529), Refuse(529), Say("Two."))
    with office.processor(retry_base_seconds=1):
        first = office.ask("ann", "first")
        office.becomes(first, "completed")
        second = office.ask("ann", "second")
        office.becomes(second, "completed")
    assert (office.answers(first), office.answers(second)) == (["One."], ["Two."])
    assert (counted(office, first), counted(office, second)) == ((0, 0), (1, 0))
    _, failed, done = office.attempts()
    assert (failed["outcome"], failed["error_kind"]) == ("failed", "retryable")
    assert done["claimed_at"] - failed["finished_at"] >= 1000


def test_an_overload_of_codex_is_tried_again(office: Office, codex: Cli) -> None:
    office.hire("ann", codex)
    codex.server.script = lambda _: Say("Now.") if office.attempts() else Refuse(503)
    with office.processor():
        asked = office.ask("ann", "hello")
        office.becomes(asked, "completed")
    assert office.answers(asked) == ["Now."]
    assert counted(office, asked) == (1, 0)
    assert [each["error_kind"] for each in office.attempts()] == ["retryable", None]


def test_a_run_that_says_nothing_any_more_is_ended_and_tried_again(
    office: Office, cli: Cli
) -> None:
    office.hire("ann", cli)
    cli.server.answers(Say("One."))
    with office.processor():
        office.answer("ann", "first")
        session = office.session()
    cli.server.script = lambda _: Hang()
    with office.processor(idle_seconds=5):
        asked = office.ask("ann", "second")
        eventually(lambda: len(office.attempts()) > 1, "it is ended")
    # A program that is slow to begin would be ended as well.
    cli.server.script = lambda _: Say("Two.")
    with office.processor():
        office.becomes(asked, "completed")
    assert office.answers(asked) == ["Two."]
    retries, crashes = counted(office, asked)
    assert (retries >= 1, crashes) == (True, 0)
    _, failed, *_ = office.attempts()
    assert (failed["outcome"], failed["error_kind"]) == ("failed", "retryable")
    assert "no output for 5 s" in failed["error"]
    # What was said before is not lost with the run.
    assert office.session() == session


def test_an_empty_answer_is_tried_again(office: Office, cli: Cli) -> None:
    office.hire("ann", cli)
    cli.server.script = lambda _: Say("Now.") if office.attempts() else Say("")
    with office.processor():
        asked = office.ask("ann", "hello")
        office.becomes(asked, "completed")
    assert office.answers(asked) == ["Now."]
    assert counted(office, asked) == (1, 0)


def test_a_model_that_does_not_exist_is_not_asked_again(office: Office, cli: Cli) -> None:
    office.hire("ann", cli)
    text = "The model `ewe-5` does not exist or you do not have access to it."
    cli.server.script = lambda _: Refuse(404, text)
    with office.processor():
        asked = office.ask("ann", "hello")
        office.becomes(asked, "dead")
    (attempt,) = office.attempts()
    assert attempt["error_kind"] == "permanent"
    assert any("ann" in said for said in office.answers(asked))
