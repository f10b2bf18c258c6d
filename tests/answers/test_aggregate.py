"""An aggregate: one answer of all parts, when nothing of the conversation moves any more."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bullpen.core.answers.complete import complete
from bullpen.core.clock import MINUTE
from bullpen.core.company import remove_team
from bullpen.core.maintenance.recovery import send_due_aggregates
from bullpen.core.maintenance.retention import run_retention
from bullpen.core.message import ErrorKind, RunOutput
from bullpen.core.models import MESSAGES
from bullpen.core.queue.conversations import resume_conversation
from bullpen.core.queue.manage import cancel, hold
from bullpen.core.roster.teams import DeliveryMode, change_team
from bullpen.core.settings import Settings
from bullpen.core.store.base import Store
from bullpen.core.workspace.safe_files import Root
from tests.answers.beside import beside
from tests.answers.talk import (
    ADA,
    answer,
    children,
    files_of,
    kept,
    said,
    team,
    told,
    write,
)
from tests.conformance.conftest import lanes_tell_the_truth  # noqa: F401
from tests.conformance.verbs import (
    broken_off,
    do,
    dump,
    events,
    failed,
    responses,
    rows,
    take,
    to_archive,
)
from tests.stores import FakeClock, Stores


@pytest.fixture
def settings(stores: Stores, kind: str) -> Settings:
    """A home of its own."""
    made = stores.settings(kind)
    made.files.mkdir()
    return made


@pytest.fixture
def store(store: Store) -> Store:
    """A store with a team that answers as one."""
    team(store, "a", "b", "c", delivery=DeliveryMode.AGGREGATE)
    return store


def _asked(store: Store) -> str:
    """A conversation whose leader has asked two others."""
    root = write(store, "@dev go")
    answer(store, "a", "I ask.\n\n[@b: what?]\n\n[@c: what?]")
    return root


def _one(store: Store) -> dict[str, Any]:
    (row,) = responses(store)
    assert kept(store) == []
    return row


def test_one_answer_when_the_conversation_is_at_rest(store: Store) -> None:
    root = _asked(store)
    answer(store, "b", "yes")
    send_due_aggregates(store)
    assert responses(store) == []
    answer(store, "c", "no")
    row = _one(store)
    assert row["message"] == ("@a: I ask.\n\n@a → @b: what?\n\n@a → @c: what?\n\n@b: yes\n\n@c: no")
    assert (row["message_id"], row["agent"], row["conversation_id"]) == (root, "a", root)
    assert (row["sender_id"], row["reply_to"]) == ("U1", str(ADA["reply_to"]))
    assert send_due_aggregates(store) == "0 answers sent"
    assert len(responses(store)) == 1


def test_one_alone_is_answered_as_it_is(store: Store) -> None:
    write(store, "@dev go")
    answer(store, "a", "done")
    assert told(store) == [("a", "done")]


def test_the_files_of_all_parts_go_along_each_once(store: Store) -> None:
    root = store.settings.files
    for name in ("one", "two"):
        (root / name).write_text(name)
    _asked(store)
    answer(store, "b", "[send_file: one]", roots=[Root(root)])
    answer(store, "c", "see [send_file: two] [send_file: one]", roots=[Root(root)])
    row = _one(store)
    assert files_of(row) == [str(root / "one"), str(root / "two")]
    assert row["message"].endswith("@a → @c: what?\n\n@c: see")


def test_all_parts_together_may_be_too_long_for_a_message(store: Store) -> None:
    _asked(store)
    answer(store, "b", "b" * 3000)
    answer(store, "c", "c" * 3000)
    row = _one(store)
    (file,) = files_of(row)
    assert len(row["message"]) < 4200
    assert "b" * 3000 in Path(file).read_text()
    assert "c" * 3000 in Path(file).read_text()


def test_after_a_while_what_there_is_is_sent(store: Store, clock: FakeClock) -> None:
    _asked(store)
    clock.advance(10 * MINUTE)
    answer(store, "b", "yes")
    clock.advance(20 * MINUTE - 1)
    assert send_due_aggregates(store) == "0 answers sent"
    clock.advance(1)
    assert send_due_aggregates(store) == "1 answer sent"
    assert _one(store)["message"].endswith("@b: yes")
    assert events(store, "team_chain_end") == []
    answer(store, "c", "no")
    assert [text for _, text in told(store)][1:] == ["no"]
    assert responses(store)[1]["agent"] == "c"
    assert len(events(store, "team_chain_end")) == 1


def test_a_crash_in_between_changes_nothing(store: Store) -> None:
    _asked(store)
    answer(store, "b", "yes")
    claim = take(store, "c")
    before = dump(store)
    with broken_off(store.write()) as tx:
        complete(tx, claim, RunOutput(text="no"), ())
    assert dump(store) == before
    said(store, claim, "no")
    assert _one(store)["message"].endswith("@b: yes\n\n@c: no")


def _cancelled(store: Store, rest: str) -> None:
    do(store, cancel, rest)


def _held(store: Store, rest: str) -> None:
    do(store, hold, rest, "wait")


def _dead(store: Store, rest: str) -> None:
    failed(store, take(store, "c").token, ErrorKind.PERMANENT)


@pytest.mark.parametrize("end", [_cancelled, _held, _dead])
def test_it_goes_out_as_well_when_the_rest_will_not_come(store: Store, end: Any) -> None:  # noqa: ANN401
    root = _asked(store)
    answer(store, "b", "yes")
    (rest,) = (row["message_id"] for row in children(store, root) if row["agent"] == "c")
    send_due_aggregates(store)
    end(store, rest)
    assert kept(store) != []
    assert send_due_aggregates(store) == "1 answer sent"
    assert kept(store) == []
    assert told(store)[-1][1].endswith("@b: yes")
    assert len(events(store, "team_chain_end")) == 1


def test_what_was_held_comes_as_a_second_answer(store: Store) -> None:
    with store.write() as tx:
        change_team(tx, "dev", max_hops=0)
    root = _asked(store)
    with store.write() as tx:
        assert resume_conversation(tx, root) == 2
    answer(store, "b", "yes")
    answer(store, "c", "no")
    texts = [row["message"] for row in responses(store) if row["channel"] == "slack"]
    assert texts[-1] == "@b: yes\n\n@c: no"
    assert len([text for text in texts if text.startswith("I ask.")]) == 1


def test_two_that_finish_at_once_give_one_response(store: Store) -> None:
    _asked(store)
    first, second = take(store, "b"), take(store, "c")
    with store.write() as tx:
        complete(tx, first, RunOutput(text="yes"), ())
        other = beside(store, tx, said, store, second, "no")
    other.join(60)
    text = _one(store)["message"]
    assert "@b: yes" in text
    assert "@c: no" in text
    assert len(events(store, "team_chain_end")) == 1


def test_parts_find_their_person_after_the_first_message_went_to_the_archive(store: Store) -> None:
    root = _asked(store)
    answer(store, "b", "yes")
    to_archive(store, root)
    answer(store, "c", "no")
    row = _one(store)
    assert (row["message_id"], row["sender_id"], row["agent"]) == (root, "U1", "a")


def test_parts_of_a_conversation_all_of_which_is_archived_are_sent(
    store: Store, clock: FakeClock
) -> None:
    _asked(store)
    answer(store, "b", "yes")
    claim = take(store, "c")
    clock.advance(25 * 60 * MINUTE)
    run_retention(store, "archive")
    failed(store, claim.token, ErrorKind.PERMANENT)
    assert {row["agent"] for row in rows(store, MESSAGES)} == {"c"}
    send_due_aggregates(store)
    assert told(store)[-1][1].endswith("@b: yes")


def test_parts_without_any_address_are_not_lost(store: Store) -> None:
    root = write(store, "@dev go")
    claim = take(store)
    said(store, claim, "[@b: x]")
    before = kept(store)
    assert len(before) == 1
    do(store, cancel, children(store, root)[0]["message_id"])
    with store.engine.begin() as connection:
        connection.execute(MESSAGES.delete().where(MESSAGES.c.message_id == root))
    send_due_aggregates(store)
    assert (kept(store), responses(store)) == (before, [])


def test_a_team_that_streams_from_now_on_still_sends_what_was_kept(store: Store) -> None:
    _asked(store)
    with store.write() as tx:
        change_team(tx, "dev", delivery=DeliveryMode.STREAM)
    answer(store, "b", "yes")
    assert told(store) == [("b", "yes")]
    answer(store, "c", "no")
    assert kept(store) == []
    assert [agent for agent, _ in told(store)] == ["b", "c", "a"]


def test_a_team_that_is_gone_still_sends_what_was_kept(store: Store) -> None:
    _asked(store)
    do(store, remove_team, "dev")
    answer(store, "b", "yes")
    answer(store, "c", "no")
    send_due_aggregates(store)
    assert [agent for agent, _ in told(store)] == ["b", "c", "a"]
    assert kept(store) == []


def test_a_team_that_streams_answers_one_by_one(store: Store) -> None:
    with store.write() as tx:
        change_team(tx, "dev", delivery=DeliveryMode.STREAM)
    _asked(store)
    answer(store, "b", "yes")
    assert [agent for agent, _ in told(store)] == ["a", "b"]
    answer(store, "c", "no")
    assert [agent for agent, _ in told(store)] == ["a", "b", "c"]


def test_the_chain_of_a_team_has_a_start_and_an_end(store: Store) -> None:
    root = _asked(store)
    kinds = ("team_chain_start", "team_chain_end")
    assert [row["type"] for row in events(store) if row["type"] in kinds] == ["team_chain_start"]
    answer(store, "b", "yes")
    answer(store, "c", "no")
    found = [row for row in events(store) if row["type"] in kinds]
    assert [row["type"] for row in found] == list(kinds)
    assert {row["conversation_id"] for row in found} == {root}
    assert json.loads(found[0]["data"]) == {"team": "dev"}
    assert json.loads(found[1]["data"]) == {"team": "dev", "answers": 3}


def test_conversations_are_gathered_apart(store: Store) -> None:
    _asked(store)
    write(store, "@dev other", sender="Bob", sender_id="U2", reply_to=None)
    answer(store, "a", "for Bob")
    assert told(store) == [("a", "for Bob")]
    assert responses(store)[0]["sender_id"] == "U2"
    assert len(kept(store)) == 1


def test_the_posts_that_an_aggregate_makes_are_waited_for(store: Store) -> None:
    write(store, "@dev go")
    answer(store, "a", "[#dev: hello]")
    answer(store, "b", "[@c: you]")
    assert responses(store) == []
    answer(store, "c", "hi")
    answer(store, "c", "well")
    assert told(store) == [("a", "@a → #dev: hello")]
