"""bullpen response show, retry and drop: how far an answer came, and what becomes of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from bullpen.core.models import RESPONSES
from bullpen.core.outbox.hold import begin_hold
from bullpen.core.states import ResponseState
from bullpen.core.store.base import Store
from tests.cli.command import Bullpen
from tests.cli.open_store import company, direct
from tests.outbox.outgoing import answer, do, lease, put_into, row_of, rows, status

DEAD, UNKNOWN, PENDING = ResponseState.DEAD, ResponseState.UNKNOWN, ResponseState.PENDING
ACKED = ResponseState.ACKED
MANY = 230


@pytest.fixture
def store(on_both: Bullpen) -> Iterator[Store]:
    """The store of the command, with three agents."""
    company(on_both)
    with direct(on_both) as opened:
        yield opened


def responses_by_state(store: Store) -> dict[str, int]:
    """How many responses are in each state."""
    return dict(Counter(str(row["status"]) for row in rows(store, RESPONSES)))


def test_one_response_is_shown_with_how_far_it_came(on_both: Bullpen, store: Store) -> None:
    dead, unknown, waits = put_into(store, DEAD), put_into(store, UNKNOWN), answer(store)
    shown = on_both.ok("response", "show", str(dead))
    for part in ("@coder", "slack:U1", "answer to slack_1", "what?", "not wanted"):
        assert part in shown.out, part
    assert f"bullpen response retry {dead}" in shown.err
    found = on_both.ok("response", "show", str(unknown), "--json").json
    assert (found["status"], found["message"]) == ("unknown", "answer to slack_1")
    assert "did not confirm the delivery" in found["why"]
    assert "may be delivered twice" in found["next"][0]
    assert "slack client" in on_both.ok("response", "show", str(waits)).out
    do(store, begin_hold, "the backup was restored")
    assert "the backup was restored" in on_both.ok("response", "show", str(waits)).out
    for odd in ("4711", "x", "9" * 40):
        refused = on_both("response", "show", odd, "--json")
        assert refused.status == 1
        assert refused.json["code"] == "unknown_response"


def test_they_are_listed_in_several_states_and_by_time(on_both: Bullpen, store: Store) -> None:
    dead, unknown, waits = put_into(store, DEAD), put_into(store, UNKNOWN), answer(store)

    def listed(*more: str) -> list[int]:
        return [each["id"] for each in on_both.ok("response", "list", *more, "--json").json]

    assert listed() == [waits, unknown, dead]
    assert listed("--state", "dead", "--state", "unknown") == [unknown, dead]
    assert listed("--state", "unknown", "--state", "pending", "--limit", "1") == [waits]
    assert listed("--error", "NOT WANTED") == [dead]
    assert listed("--since", "1h", "--to", "U1", "--channel", "slack") == [waits, unknown, dead]
    assert listed("--before", "1h") == []
    assert listed("--to", "Bob") == []
    assert "bullpen response retry" in on_both.ok("response", "list").err


@pytest.mark.parametrize("verb", ["retry", "drop"])
@pytest.mark.parametrize("more", [(), ("--limit", "1"), ("--yes",), ("--state", "unknown")])
def test_nothing_is_done_to_all_by_accident(
    on_both: Bullpen, store: Store, verb: str, more: tuple[str, ...]
) -> None:
    put_into(store, DEAD)
    put_into(store, UNKNOWN)
    refused = on_both("response", verb, *more)
    assert refused.status == 2
    assert f"bullpen response {verb} --all --dry-run" in refused.err
    assert on_both("response", verb, "--channel", "slack").status == 2  # nobody has agreed
    assert responses_by_state(store) == {"dead": 1, "unknown": 1}


def test_the_dead_are_sent_again_and_the_unknown_only_if_one_says_so(
    on_both: Bullpen, store: Store
) -> None:
    dead, unknown = put_into(store, DEAD), put_into(store, UNKNOWN)
    assert on_both.ok("response", "retry", "--error", "nonsense", "--yes", "--json").json == {
        **{"dry_run": False, "matched": 0, "done": 0, "moved": 0, "failed": 0},
        **{"interrupted": False, "refused": []},
    }
    dry = on_both.ok("response", "retry", "--channel", "slack", "--dry-run", "--json").json
    assert (dry["matched"], dry["first"][0]["response"]) == (1, str(dead))
    assert on_both.ok("response", "retry", "--channel", "slack", "--yes").out == (
        "Retried 1 response.\n"
    )
    assert (status(store, dead), status(store, unknown)) == ("pending", "unknown")
    asked = on_both("response", "retry", "--state", "unknown", "--all")
    assert "may already have been delivered" in asked.err
    on_both.ok("response", "retry", "--state", "unknown", "--all", "--yes")
    assert row_of(store, unknown)["possible_duplicate"]
    assert not row_of(store, dead)["possible_duplicate"]


def test_a_named_one_that_may_be_a_duplicate_is_said_to_be(on_both: Bullpen, store: Store) -> None:
    dead, unknown = put_into(store, DEAD), put_into(store, UNKNOWN)
    done = on_both.ok("response", "retry", str(dead), str(unknown))
    assert done.out == "Retried 2 responses.\n"
    assert f"{unknown}: " in done.err
    assert "possible duplicate" in done.err
    assert f"{dead}: " not in done.err
    again = on_both("response", "retry", str(dead))
    assert again.status == 1
    assert "dead or unknown" in again.err


def test_what_is_set_aside_is_delivered_no_more(on_both: Bullpen, store: Store) -> None:
    unknown, waits = put_into(store, UNKNOWN), answer(store)
    other = answer(store, channel="telegram")
    arrived = put_into(store, ACKED)
    dry = on_both.ok("response", "drop", str(waits), str(arrived), "--dry-run")
    assert "1 response." in dry.err
    assert on_both.ok("response", "drop", "--channel", "slack", "--yes", "--json").json["done"] == 2
    assert [status(store, each) for each in (unknown, waits, other, arrived)] == [
        *("dead", "dead", "pending", "acked")
    ]
    assert lease(store) == []
    done = on_both("response", "drop", str(other), str(arrived))
    assert done.status == 1
    assert f"{arrived}: " in done.err
    assert status(store, other) == "dead"


def test_many_are_done_in_batches(on_both: Bullpen, store: Store) -> None:
    for each in range(MANY):
        answer(store, f"slack_{each}")
    on_both.ok("response", "drop", "--all", "-n", "201", "--yes")
    assert responses_by_state(store) == {"dead": 201, "pending": MANY - 201}
    assert on_both.ok("response", "retry", "--all", "--yes").out.startswith("Retried 201 responses")
    assert responses_by_state(store) == {"pending": MANY}


def test_in_its_run_an_agent_neither_sees_nor_moves_responses(
    on_both: Bullpen, store: Store
) -> None:
    mine = put_into(store, DEAD)
    for words in (("list",), *((verb, str(mine)) for verb in ("show", "retry", "drop"))):
        refused = on_both("response", *words, BULLPEN_RUN="coder.0")
        assert (refused.status, refused.out) == (1, "")
        assert "@coder may not" in refused.err
    assert status(store, mine) == "dead"


def test_what_is_sent_is_told_in_one_document(on_both: Bullpen, store: Store) -> None:
    sent = ("response", "send", "--channel", "telegram", "--to", "4711", "hello", "--json")
    message_id = on_both.ok(*sent).json["message_id"]
    (found,) = on_both.ok("response", "list", "--to", "4711", "--json").json
    assert found["message_id"] == message_id


def test_a_response_that_was_sent_is_found_by_its_number_and_by_its_id(on_both: Bullpen) -> None:
    sent = ("response", "send", "--channel", "telegram", "--to", "4711", "the report is ready")
    shown = on_both.ok(*sent).out
    (listed,) = on_both.ok("response", "list", "-q").out.split()
    assert shown.startswith(f"Enqueued response {listed} to telegram:4711.")
    (found,) = on_both.ok("response", "list", "--json").json
    by_id, by_number = found["message_id"], str(found["id"])
    assert by_id.startswith("proactive_")
    assert on_both.ok("response", "show", by_id).out == on_both.ok("response", "show", listed).out
    assert on_both.ok("response", "drop", by_id, "--yes").out.startswith(f"Dropped {by_id}.")
    assert on_both.ok("response", "retry", by_id).out == f"Retried {by_id}.\n"
    assert on_both.ok("response", "ack", by_id).out == f"Acked {by_id}.\n"
    assert on_both.ok("response", "show", by_number, "--json").json["status"] == "acked"
    assert on_both.ok(*sent, "--json").json["response"] == found["id"] + 1


def test_several_responses_to_one_message_are_told_apart(on_both: Bullpen, store: Store) -> None:
    first = answer(store)
    message_id = str(row_of(store, first)["message_id"])
    row = {**row_of(store, first), "id": first + 1, "seq": 1}
    with store.engine.begin() as connection:
        connection.execute(RESPONSES.insert(), row)
    refused = on_both("response", "show", message_id)
    assert refused.status == 1
    assert f"has 2 responses: {first}, {first + 1}" in refused.err
    assert on_both.ok("response", "show", str(first + 1)).status == 0


def test_a_response_is_sent_only_on_a_channel_that_exists(on_both: Bullpen) -> None:
    refused = on_both("response", "send", "--channel", "telegrm", "--to", "1", "hello")
    assert (refused.status, refused.out) == (2, "")
    assert "channel 'telegrm' does not exist. Did you mean 'telegram'?" in refused.err
    assert on_both.ok("response", "list", "--json").json == []
    on_both.ok("response", "send", "--channel", "slack-sage", "--to", "U1", "hello")
