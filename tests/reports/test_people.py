"""The report people, with numbers that were counted by hand."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING

from bullpen.reports.built_in.people import PEOPLE
from tests.reports.transforms import Row, answer, at, given_facts, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MIDNIGHT = at("2026-11-20 00:00:00")


def message(when: int, id_: str, conversation: str = "", **more: str | None) -> Row:
    return {
        "created_at": when,
        "message_id": id_,
        "conversation_id": conversation or id_,
        "sender": "Ann",
        "sender_id": "U1",
        **more,
    }


MESSAGES = [
    message(MIDNIGHT - 1, "slack_1"),
    message(MIDNIGHT, "slack_2"),
    # To two agents: one conversation, two messages.
    message(MIDNIGHT + 1, "slack_3"),
    message(MIDNIGHT + 1, "slack_4", "slack_3"),
    # A post in a room with two members.
    message(MIDNIGHT + 2, "chatroom_1", "chatroom_9", channel="chatroom"),
    message(MIDNIGHT + 2, "chatroom_2", "chatroom_9", channel="chatroom"),
    message(MIDNIGHT + 3, "cli_1", channel="cli", sender="owner", sender_id=None),
    # Not written by a person.
    message(MIDNIGHT + 4, "slack_5", "slack_2", from_agent="coder"),
    message(MIDNIGHT + 4, "heartbeat_1", channel="heartbeat", sender="heartbeat", sender_id=None),
    message(MIDNIGHT + 4, "schedule_1"),
    message(MIDNIGHT + 4, "slack_2", type="message_dead"),
    # An event of an older version.
    message(MIDNIGHT + 4, "slack_6", channel=None, sender=None, sender_id=None),
]


def test_messages_and_conversations_of_people_by_local_day(spark: SparkSession) -> None:
    rows = rows_of(PEOPLE.tables[0], given_facts(spark, (), MESSAGES))
    assert [tuple(row.values()) for row in rows] == [
        (date(2026, 11, 19), "slack", "U1", "Ann", 1, 1, MIDNIGHT - 1, MIDNIGHT - 1),
        (date(2026, 11, 20), "chatroom", "U1", "Ann", 2, 1, MIDNIGHT + 2, MIDNIGHT + 2),
        (date(2026, 11, 20), "cli", None, "owner", 1, 1, MIDNIGHT + 3, MIDNIGHT + 3),
        (date(2026, 11, 20), "slack", "U1", "Ann", 3, 2, MIDNIGHT, MIDNIGHT + 1),
    ]


def test_senders_are_told_apart_by_id_and_without_one_by_name(spark: SparkSession) -> None:
    facts = given_facts(
        spark,
        (),
        [
            message(MIDNIGHT, "slack_1"),
            message(MIDNIGHT + 1, "slack_2", sender="Ann B."),
            message(MIDNIGHT + 2, "slack_3", sender_id="U2"),
            message(MIDNIGHT + 3, "slack_4", sender_id=None, sender="Cleo"),
            message(MIDNIGHT + 3, "slack_5", sender_id=None, sender="Dan"),
        ],
    )
    assert answer(PEOPLE, "people", facts) == [
        ("slack", "Ann B.", 2, 2, MIDNIGHT + 1),
        ("slack", "Ann", 1, 1, MIDNIGHT + 2),
        ("slack", "Cleo", 1, 1, MIDNIGHT + 3),
        ("slack", "Dan", 1, 1, MIDNIGHT + 3),
    ]
    assert answer(PEOPLE, "days", facts) == [(date(2026, 11, 20), "slack", 5, 4)]
