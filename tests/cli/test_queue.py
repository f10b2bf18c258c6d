"""bullpen send and bullpen queue, without a processor and with one, on both databases."""

from __future__ import annotations

import json
import time

import pytest

from bullpen.core.company import add_agent
from bullpen.core.roster.agents import Agent
from bullpen.core.settings import Settings
from bullpen.core.store.open import open_store
from tests.cli.command import Bullpen
from tests.cli.processor import processor


@pytest.fixture
def ready(on_both: Bullpen) -> Bullpen:
    """The command, where the agent that answers has a lane."""
    store = open_store(Settings.load(on_both.environment()))
    with store.write() as tx:
        add_agent(tx, Agent(id="assistant"))
    store.close()
    return on_both


def test_status_shows_the_queue_in_numbers(ready: Bullpen) -> None:
    ready.ok("send", "hello", "--no-wait")
    found = ready.ok("queue", "status", "--json").json
    assert (found["pending"], found["processing"], found["dead"]) == (1, 0, 0)
    (lane,) = found["lanes"]
    assert (lane["agent"], lane["state"], lane["pending"]) == ("assistant", "active", 1)
    text = ready.ok("queue", "status").out
    assert "1 pending" in text
    assert "assistant" in text


def test_send_without_waiting_prints_the_id_alone(ready: Bullpen) -> None:
    message_id = ready.ok("send", "hello", "--no-wait").out.strip()
    assert message_id.startswith("cli_")
    assert len(message_id) == len("cli_") + 8
    assert ready.ok("send", "hello", "--no-wait", "--json").json.keys() == {"message_id"}


def test_a_message_is_cancelled_once(ready: Bullpen) -> None:
    message_id = ready.ok("send", "hello", "--no-wait").out.strip()
    assert "Cancelled" in ready.ok("queue", "cancel", message_id).out
    assert ready.ok("queue", "status", "--json").json["pending"] == 0
    again = ready("queue", "cancel", message_id)
    assert again.status == 1
    assert "is cancelled" in again.err
    assert "Retried" in ready.ok("queue", "retry", message_id).out
    assert ready.ok("queue", "status", "--json").json["pending"] == 1


def test_a_dropped_message_is_gone(ready: Bullpen) -> None:
    message_id = ready.ok("send", "hello", "--no-wait").out.strip()
    ready.ok("queue", "cancel", message_id)
    ready.ok("queue", "drop", message_id)
    assert ready("queue", "retry", message_id).status == 1


@pytest.mark.parametrize("verb", ["cancel", "retry", "drop"])
def test_a_message_that_does_not_exist_is_said_not_to(ready: Bullpen, verb: str) -> None:
    result = ready("queue", verb, "cli_nosuchid")
    assert result.status == 1
    assert "cli_nosuchid" in result.err


def test_an_agent_that_does_not_exist_is_said_not_to(ready: Bullpen) -> None:
    result = ready("send", "hello", "--agent", "nobody")
    assert result.status == 1
    assert "nobody" in result.err
    assert result.out == ""
    assert ready.ok("queue", "status", "--json").json["pending"] == 0


def test_when_nobody_answers_in_time_the_message_stays_and_it_is_worth_another_try(
    ready: Bullpen,
) -> None:
    began = time.monotonic()
    result = ready("send", "hello", "--timeout", "0.2")
    assert time.monotonic() - began < 60
    assert result.status == 75
    assert result.out == ""
    assert "stays queued" in result.err
    result = ready("send", "hello", "--timeout", "0.2", "--json")
    assert result.status == 75
    assert result.json["answers"] == []
    assert ready.ok("queue", "status", "--json").json["pending"] == 2


@pytest.mark.parametrize("text", [b"\xff\xfe", b"a\0b"], ids=["not UTF-8", "a NUL"])
def test_input_that_is_no_text_is_refused(ready: Bullpen, text: bytes) -> None:
    result = ready("send", "--no-wait", stdin=text)
    assert result.status == 2
    assert "UTF-8" in result.err
    assert ready.ok("queue", "status", "--json").json["pending"] == 0


def test_a_text_over_the_limit_is_refused(ready: Bullpen) -> None:
    result = ready("send", "--no-wait", stdin="x" * 101, BULLPEN_MESSAGE_BYTES="100")
    assert result.status == 2
    assert "100" in result.err


def test_send_waits_for_the_answer(ready: Bullpen) -> None:
    with processor(ready):
        assert ready.ok("send", "hello ☃").out.splitlines()[0] == "@assistant: hello ☃"
        assert ready.ok("send", stdin="from standard input\n").out.startswith(
            "@assistant: from standard input"
        )
        found = ready.ok("send", "!say in JSON", "--json").json
        assert found["answers"] == [{"agent": "assistant", "message": "in JSON", "files": []}]
        assert found["message_id"].startswith("cli_")
    assert ready.ok("queue", "status", "--json").json["outgoing"] == 0


def test_a_dead_message_is_told_and_can_be_retried(ready: Bullpen) -> None:
    with processor(ready):
        told = ready("send", "!fail permanent", "--json")
        message_id = told.json["message_id"]
        assert "failed because of !fail" in told.json["answers"][0]["message"]
        assert ready.ok("queue", "status", "--json").json["dead"] == 1
    assert "Retried" in ready.ok("queue", "retry", message_id).out
    found = ready.ok("queue", "status", "--json").json
    assert (found["dead"], found["pending"]) == (0, 1)


def test_json_is_one_document_on_standard_output(ready: Bullpen) -> None:
    for args in (("queue", "status"), ("send", "hi", "--no-wait")):
        result = ready.ok(*args, "--json")
        assert result.out.count("\n") == 1
        json.loads(result.out)
