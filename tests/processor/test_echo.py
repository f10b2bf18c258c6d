"""echo: repeats what it was told, follows its orders, and never raises, whatever the text."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bullpen.core.message import ErrorKind, Failure
from bullpen.processor.children.child import Stop
from bullpen.processor.providers.base import Reply
from bullpen.processor.providers.echo import ORDERS, Echo
from tests.processor.turns import agent, ignore, turn
from tests.processor.working import SOON


@pytest.fixture
def stop() -> Iterator[Stop]:
    """A word that may come."""
    made = Stop()
    yield made
    made.close()


def run(*texts: str, stop: Stop, hint_for: str = "") -> Reply | Failure | None:
    """What echo makes of these texts."""
    return Echo(hint_for).run(turn(agent("coder", "echo"), texts=texts), stop, ignore)


def said(*texts: str, hint_for: str = "") -> str:
    """The one answer to these texts."""
    stop = Stop()
    found = run(*texts, stop=stop, hint_for=hint_for)
    stop.close()
    assert isinstance(found, Reply)
    return found.text


def failure(*texts: str) -> Failure:
    """How these texts fail."""
    stop = Stop()
    found = run(*texts, stop=stop)
    stop.close()
    assert isinstance(found, Failure)
    return found


def test_what_it_was_told_is_repeated() -> None:
    assert said("hello\nyou ☃") == "hello\nyou ☃"


def test_all_messages_of_a_batch_are_answered_at_once() -> None:
    assert said("one", "two", "three") == "one\n\ntwo\n\nthree"


@pytest.mark.parametrize("text", ["hi", "  two  spaces ", "[@writer: do it]", "!say !say x", "é ☃"])
def test_say_answers_exactly_its_text(text: str) -> None:
    assert said(f"!say {text}") == text


def test_several_orders_are_followed_in_order() -> None:
    assert said("!say one\n!sleep 0\n!say two") == "one\n\ntwo"


def test_an_empty_text_has_an_answer_all_the_same() -> None:
    assert said("")
    assert said("!say")
    assert said("!sleep 0")


@pytest.mark.parametrize("text", ["!hello", "!", " !say hi", "!SAY hi", "a !say hi"])
def test_what_is_not_an_order_is_repeated(text: str) -> None:
    assert said(text) == text


@pytest.mark.parametrize("kind", ErrorKind)
def test_fail_fails_with_its_kind(kind: ErrorKind) -> None:
    found = failure(f"!fail {kind}")
    assert found.kind is kind
    assert found.error


def test_fail_alone_is_retryable() -> None:
    assert failure("!fail").kind is ErrorKind.RETRYABLE


def test_after_a_failure_no_further_order_is_followed() -> None:
    assert failure("!fail permanent\n!fail retryable\n!sleep 3600").kind is ErrorKind.PERMANENT


def test_usage_is_reported_with_the_answer_and_with_a_failure(stop: Stop) -> None:
    found = run("!usage 120 0.25\n!say hi", stop=stop)
    assert isinstance(found, Reply)
    assert (found.usage.output_tokens, found.usage.cost) == (120, 0.25)
    assert found.usage.provider == "echo"
    assert failure("!usage 7 0.5\n!fail").usage.output_tokens == 7


@pytest.mark.parametrize(
    "text",
    [
        *("!sleep", "!sleep soon", "!sleep inf", "!sleep 1e400", "!sleep 1e300"),
        *("!fail nonsense", "!fail Permanent", "!fail  permanent"),
        *("!usage", "!usage 5", "!usage 1 2 3", "!usage a b", "!usage 1.5 1", "!usage 5 x"),
        *("!usage 5 nan", "!usage 5 inf", "!usage 99999999999999999999 1"),
    ],
)
def test_a_bad_argument_is_a_permanent_failure_that_names_it(text: str) -> None:
    found = failure(text)
    assert found.kind is ErrorKind.PERMANENT
    assert text.partition(" ")[0] in found.error


def test_sleep_takes_its_time_and_ends_when_it_is_stopped(stop: Stop) -> None:
    ended: list[Reply | Failure | None] = []
    thread = threading.Thread(target=lambda: ended.append(run("!sleep 3600\n!say hi", stop=stop)))
    thread.start()
    assert not ended
    stop.set()
    thread.join(SOON)
    assert ended == [None]


def test_a_negative_sleep_is_none() -> None:
    assert said("!sleep -5\n!say hi") == "hi"


def test_the_agent_that_is_named_says_how_to_get_a_real_answer() -> None:
    text = said("hello", hint_for="coder")
    assert text.startswith("hello\n\n")
    assert "bullpen agent set coder --provider claude" in text


def test_no_other_agent_says_so() -> None:
    assert said("hello", hint_for="assistant") == "hello"


@pytest.mark.parametrize("order", ["!say hi", "!usage 1 1\n!say hi", "hello\n!say hi"])
def test_an_answer_that_was_ordered_has_no_hint(order: str) -> None:
    assert said(order, hint_for="coder") == "hi"


SAFE = sorted(ORDERS.keys() - {"!crash", "!sleep"})
lines = st.one_of(
    st.text(max_size=40),
    st.builds("{} {}".format, st.sampled_from(SAFE), st.text(max_size=20)),
    st.builds("!usage {} {}".format, st.integers(), st.floats()),
    st.builds(
        "!sleep {}".format,
        st.one_of(
            st.floats(max_value=0.0),
            st.floats(min_value=1e12),
            st.just(math.nan),
            st.text(alphabet="abc .-", max_size=5),
        ),
    ),
)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.lists(lines, max_size=4).map("\n".join), min_size=1, max_size=3))
def test_any_text_has_an_outcome_or_a_failure_and_no_exception(texts: list[str]) -> None:
    if any(line.partition(" ")[0] == "!crash" for text in texts for line in text.splitlines()):
        return
    stop = Stop()
    stop.set()  # a sleep of a million years is over at once
    found = run(*texts, stop=stop)
    stop.close()
    match found:
        case Reply():
            assert found.text
            assert math.isfinite(found.usage.cost)
        case Failure():
            assert found.error
        case None:
            assert any("!sleep" in text for text in texts)


def test_a_heartbeat_is_answered_silently_and_its_commands_are_executed() -> None:
    stop = Stop()
    for text, answer in (("Look around.", "HEARTBEAT_OK"), ("!say it is red", "it is red")):
        asked = replace(turn(agent("coder", "echo"), texts=(text,)), heartbeat=True)
        found = Echo("coder").run(asked, stop, ignore)
        assert isinstance(found, Reply)
        assert found.text == answer
    stop.close()
