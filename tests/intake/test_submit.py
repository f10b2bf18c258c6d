"""receive: what a person writes reaches all whom it names, once, or nobody."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bullpen.core.company import remove_agent
from bullpen.core.errors import (
    BadName,
    BadText,
    BullpenError,
    DuplicateMessage,
    LaneClosed,
    LaneFull,
    NameTaken,
    TextTooLong,
    UnknownRecipient,
)
from bullpen.core.intake import post_in_room, submit, submit_to
from bullpen.core.message import Accepted, NewMessage, Priority
from bullpen.core.models import CHAT_MESSAGES, MESSAGES, RECEIPTS
from bullpen.core.queue.lanes import LanePolicy, drain_lane
from bullpen.core.settings import Settings
from bullpen.core.store.base import Store
from tests.answers.beside import beside
from tests.answers.talk import ADA, answer, files_of, posts, team, write, written
from tests.conformance.conftest import lanes_tell_the_truth  # noqa: F401
from tests.conformance.verbs import Row, do, dump, events, hire, message, refused, rows
from tests.stores import Stores

NEW = NewMessage(agent="", message="hello", **ADA)
FAN_OUT = "All of you:\n\n[@coder: one]\n[@dev: two]\n[#dev: three]"


@pytest.fixture
def settings(stores: Stores, kind: str) -> Settings:
    """A home whose default agent is there."""
    return stores.settings(kind, default_agent="reviewer", message_bytes=10_000)


@pytest.fixture
def store(store: Store) -> Store:
    """A store with a team."""
    team(store, "coder", "reviewer")
    return store


def _sent(store: Store) -> list[tuple[str, str]]:
    return [(row["agent"], row["message"]) for row in rows(store, MESSAGES)]


def _refused(store: Store, kind: type[BullpenError], text: str, **more: object) -> BullpenError:
    return refused(store, kind, submit, replace(NEW, message=text, **more))  # type: ignore[arg-type]


def test_the_prefix_is_stripped_and_the_agent_stored(store: Store) -> None:
    root = write(store, " @Coder: fix [@reviewer: it]")
    row = message(store, root)
    assert (row["agent"], row["message"]) == ("coder", "fix [@reviewer: it]")
    assert (row["sender_id"], row["reply_to"]) == ("U1", str(ADA["reply_to"]))
    assert (row["conversation_id"], row["team_id"], row["hop"]) == (root, None, 0)
    (event,) = events(store, "agent_routed")
    assert (event["agent"], event["message_id"]) == ("coder", root)
    assert len(rows(store, MESSAGES)) == 1


def test_a_team_is_reached_by_its_leader_and_remembered(store: Store) -> None:
    root = write(store, "@dev hello")
    row = message(store, root)
    assert (row["agent"], row["team_id"]) == ("coder", "dev")
    (event,) = events(store, "team_chain_start")
    assert (event["agent"], event["conversation_id"]) == ("coder", root)


def test_what_is_addressed_to_nobody_goes_to_the_default(store: Store) -> None:
    write(store, "hello")
    write(store, "hello", agent="coder")
    write(store, "hello", agent="dev")
    assert [(row["agent"], row["team_id"]) for row in rows(store, MESSAGES)] == [
        ("reviewer", None),
        ("coder", None),
        ("coder", "dev"),
    ]


def test_a_default_that_does_not_exist_is_an_error_that_says_who_does(store: Store) -> None:
    error = _refused(store, UnknownRecipient, "hello", agent="nobody")
    assert "@coder" in error.hint


def test_tags_fan_out_in_one_conversation(store: Store) -> None:
    accepted = written(store, FAN_OUT, files=("/f",), priority=Priority.HIGH)
    root = accepted[0].message_id
    assert _sent(store) == [
        ("coder", "All of you:\n\none"),
        ("coder", "All of you:\n\ntwo"),
        ("coder", "All of you:\n\nthree"),
        ("reviewer", "All of you:\n\nthree"),
    ]
    found = rows(store, MESSAGES)
    assert {row["conversation_id"] for row in found} == {root}
    assert found[0]["message_id"] == root
    assert [row["team_id"] for row in found] == [None, "dev", "dev", "dev"]
    assert [row["channel"] for row in found] == ["slack", "slack", "chatroom", "chatroom"]
    assert {row["sender_id"] for row in found} == {"U1"}
    assert [row["reply_to"] is None for row in found] == [False, False, True, True]
    assert all(files_of(row) == ["/f"] for row in found)
    assert {row["priority"] for row in found} == {Priority.HIGH}
    assert [each.message_id for each in accepted] == [root, found[1]["message_id"], root]
    assert posts(store) == [("dev", "Ada", "All of you:\n\nthree")]


@pytest.mark.parametrize("message_id", [None, "client-1"])
def test_a_post_that_comes_first_begins_the_conversation(
    store: Store, message_id: str | None
) -> None:
    accepted = written(store, "[#dev: one]\n[@coder: two]\n[#dev: three]", message_id=message_id)
    found = rows(store, MESSAGES)
    (conversation,) = {row["conversation_id"] for row in found}
    assert [row["message"] for row in found] == ["one", "one", "two", "three", "three"]
    assert [each.message_id for each in accepted] == [
        conversation,
        found[2]["message_id"],
        conversation,
    ]
    assert conversation == message_id or conversation.startswith("chatroom_")
    assert (found[0]["message_id"] == "client-1") is (message_id is not None)


def test_a_conversation_that_is_named_goes_on(store: Store) -> None:
    written(store, "[@coder: one] [@reviewer: two]", conversation_id="before")
    write(store, "@coder three", conversation_id="before")
    assert {row["conversation_id"] for row in rows(store, MESSAGES)} == {"before"}


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("@nobody hello", UnknownRecipient),
        ("[@coder: one] [@nobody: two]", UnknownRecipient),
        ("[#dev: one] [#nowhere: two]", UnknownRecipient),
        ("[@coder,nobody: one]", UnknownRecipient),
        ("@coder", BadText),
        ("@coder:  \n ", BadText),
        ("@dev ", BadText),
        ("", BadText),
        ("a\0b", BadText),
        ("x" * 10_001, TextTooLong),
        ("x" * 5000 + "[@coder,reviewer,dev: y]" * 10, TextTooLong),
    ],
)
def test_what_cannot_reach_all_reaches_nobody(
    store: Store, text: str, kind: type[BullpenError]
) -> None:
    _refused(store, kind, text)


def test_files_need_no_words(store: Store) -> None:
    write(store, "@coder", files=("/f",))
    write(store, "", files=("/f",))
    assert _sent(store) == [("coder", ""), ("reviewer", "")]


@pytest.mark.parametrize("text", ["[@coder: one] [@busy: two]", "[#dev: one] [@busy: two]"])
def test_a_lane_that_takes_nothing_stops_the_whole_message(store: Store, text: str) -> None:
    hire(store, "busy", policy=LanePolicy(max_depth=0))
    _refused(store, LaneFull, text)
    do(store, drain_lane, "busy")
    _refused(store, LaneClosed, text)


@pytest.mark.parametrize("text", ["@coder one", FAN_OUT, "[#dev: hi]", "[#dev: hi][@coder: two]"])
def test_a_redelivery_is_recognised_whatever_the_message_came_to(store: Store, text: str) -> None:
    first = written(store, text, event_ids=("Ev1",))
    before = dump(store)
    again = written(store, text, event_ids=("Ev1",))
    assert again == tuple(Accepted(each.message_id, fresh=False) for each in first)
    assert dump(store) == before
    (receipt,) = rows(store, RECEIPTS)
    assert (receipt["channel"], receipt["event_id"], receipt["message_id"]) == (
        "slack",
        "Ev1",
        first[0].message_id,
    )
    assert written(store, text, event_ids=("Ev1",), channel="telegram")[0].fresh


def test_a_redelivery_is_recognised_after_its_agent_is_gone(store: Store) -> None:
    first = write(store, "@coder hello", event_ids=("Ev1",))
    with store.write() as tx:
        remove_agent(tx, "coder", force=True)
    assert written(store, "@coder hello", event_ids=("Ev1",)) == (Accepted(first, fresh=False),)


def test_a_redelivery_at_the_same_time_waits_and_is_recognised(store: Store) -> None:
    new = replace(NEW, message="[#dev: one] [@coder: two]", event_ids=("Ev1",))

    def again() -> None:
        with store.write() as tx:
            fresh.extend(each.fresh for each in submit(tx, new))

    fresh: list[bool] = []
    with store.write() as tx:
        submit(tx, new)
        other = beside(store, tx, again)
    other.join(60)
    assert fresh == [False, False]
    assert len(rows(store, CHAT_MESSAGES)) == 1


@pytest.mark.parametrize("text", ["@coder one", "[@coder: one] [@dev: two]", "[#dev: one]"])
def test_a_clients_own_id_is_taken_once(store: Store, text: str) -> None:
    assert write(store, text, message_id="mine") == "mine"
    assert message(store, "mine")["conversation_id"] == "mine"
    error = _refused(store, DuplicateMessage, text, message_id="mine")
    assert "mine" in str(error)


def test_two_fan_outs_in_opposite_order_do_not_wait_in_a_circle(store: Store) -> None:
    def backwards() -> None:
        write(store, "[@coder: three] [#dev: four]")

    with store.write() as tx:
        submit(tx, replace(NEW, message="[@reviewer: one] [@coder: two]"))
        other = beside(store, tx, backwards)
    other.join(60)
    assert len(rows(store, MESSAGES)) == 5


def test_a_made_up_id_that_exists_is_made_anew(store: Store) -> None:
    class Twice:
        """Gives an id that is taken first."""

        def __init__(self) -> None:
            self.left = ["taken000", "taken000", "fresh000", "fresh001", "fresh002"]

        def __call__(self) -> str:
            return self.left.pop(0)

    store.ids = type(store.ids)(Twice())
    assert write(store, "@coder one") == "slack_taken000"
    root = write(store, "[@coder: two] [@coder: three]")
    found: list[Row] = rows(store, MESSAGES)
    assert root == "slack_fresh000"
    assert [row["conversation_id"] for row in found[1:]] == [root, root]


def test_a_repeat_is_answered_with_all_that_the_first_came_to(store: Store) -> None:
    new = replace(NEW, message=f"{FAN_OUT}", event_ids=("e1",))
    with store.write() as tx:
        first = submit(tx, new)
    answer(store, "coder", "[@reviewer: look]")
    with store.write() as tx:
        again = submit(tx, new)
    assert [each.message_id for each in again] == [each.message_id for each in first]
    assert not any(each.fresh for each in again)


def test_an_id_of_a_clients_own_is_plain(store: Store, subtests: pytest.Subtests) -> None:
    for id_ in ("x;touch pwned;#", "a b", "a/b", "a\nb", "$(x)", "é", "x" * 201, "", "a\x1b", "'"):
        with subtests.test(id=id_):
            _refused(store, BadName, "hello", message_id=id_)
    for id_ in ("web_1700000000000_a1b2c3", "A.b:c-d_9", "x" * 200):
        with store.write() as tx:
            assert submit(tx, replace(NEW, message_id=id_))[0].message_id == id_


def test_people_speak_in_a_room_under_no_name_of_an_agent_or_of_bullpen(
    store: Store, subtests: pytest.Subtests
) -> None:
    for name in (
        "coder",
        "CODER",
        " @coder ",
        "dev",
        "#dev",
        "bullpen",
        "Bullpen",
        "system",
        "\uff43oder",
    ):
        with subtests.test(name=name):
            _refused(store, NameTaken, "[#dev: I agree]", sender=name)
            refused(store, NameTaken, post_in_room, "dev", "I agree", name)
    for name in ("bullpen", "@Bullpen", "SYSTEM", "\uff42ullpen", "\u200bsystem"):
        with subtests.test(direct=name):
            _refused(store, NameTaken, "hello", sender=name)
            refused(store, NameTaken, submit_to, replace(NEW, agent="coder", sender=name))
    with store.write() as tx:
        submit(tx, replace(NEW, sender="coder"))
        submit(tx, replace(NEW, message="[#dev: hi]", sender="TinyOffice"))


def test_a_senders_name_is_one_line_without_control_characters(store: Store) -> None:
    with store.write() as tx:
        submit(
            tx, replace(NEW, message="[#dev: hi]", sender=" Ann\r\n@coder:\x1b]0;x\x07  yes\u2028z")
        )
        submit(tx, replace(NEW, sender="x" * 5000))
    names = {str(row["sender"]) for row in rows(store, MESSAGES)}
    assert names == {"Ann @coder:�]0;x� yes z", "x" * 200}
    assert {row["from_agent"] for row in rows(store, CHAT_MESSAGES)} == {"Ann @coder:�]0;x� yes z"}
