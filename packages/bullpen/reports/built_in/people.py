"""people: the messages and conversations of each sender."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bullpen.core.message import HEARTBEAT, ROOM, SCHEDULE
from bullpen.reports import Chart, ChartKind, Column, Facts, Report, Table, Type, Unit, View
from bullpen.reports import functions as F

if TYPE_CHECKING:
    from pyspark.sql import Column as Expression
    from pyspark.sql import DataFrame


def people(facts: Facts) -> DataFrame:
    """What each sender wrote on each day."""
    in_a_room = F.col("conversation_id").startswith(f"{ROOM}_")
    begins = ~in_a_room & (F.col("message_id") == F.col("conversation_id"))
    return (
        facts.events.where(_is_from_a_person())
        .select(
            *("day", "channel", "sender_id", "sender", "created_at"),
            begins.cast("int").alias("begins"),
            # Every member of the team gets a copy of a post, and none has the conversation's id.
            F.when(in_a_room, F.col("conversation_id")).alias("posted"),
        )
        .groupBy("day", "channel", "sender_id", "sender")
        .agg(
            F.count("*").alias("messages"),
            (F.sum("begins") + F.count_distinct("posted")).alias("conversations"),
            F.min("created_at").alias("first_at"),
            F.max("created_at").alias("last_at"),
        )
    )


def _is_from_a_person() -> Expression:
    is_automatic = F.col("channel").isin(HEARTBEAT, SCHEDULE) | F.col("message_id").startswith(
        f"{SCHEDULE}_"
    )
    return (F.col("type") == "message_enqueued") & F.col("from_agent").isNull() & ~is_automatic


MESSAGES = Column(
    "messages",
    Type.INTEGER,
    "Messages that they wrote. A message to three agents counts three times.",
    Unit.COUNT,
)
CONVERSATIONS = Column("conversations", Type.INTEGER, "Conversations that they began.", Unit.COUNT)
SENDER = Column("sender", Type.TEXT, "The name that they had last.")

PEOPLE = Report(
    name="people",
    title="People",
    question="Who writes, how much, and on which channel?",
    facts=("events",),
    tables=(
        Table(
            name="people",
            grain=("day", "channel", "sender_id", "sender"),
            columns=(
                Column("day", Type.DATE, "The day on which the messages were stored."),
                Column("channel", Type.TEXT, "The channel or account."),
                Column(
                    "sender_id",
                    Type.TEXT,
                    "The sender's id on the platform; NULL on channels without ids.",
                ),
                Column("sender", Type.TEXT, "The sender's name."),
                MESSAGES,
                CONVERSATIONS,
                Column("first_at", Type.INTEGER, "When the first one was stored.", Unit.TIME),
                Column("last_at", Type.INTEGER, "When the last one was stored.", Unit.TIME),
            ),
            transform=people,
        ),
    ),
    views=(
        View(
            name="people",
            title="Messages by sender",
            sql="""
                SELECT channel, max_by(sender, last_at) AS sender, sum(messages) AS messages,
                       sum(conversations) AS conversations, max(last_at) AS last_at
                FROM people
                GROUP BY channel, sender_id, CASE WHEN sender_id IS NULL THEN sender END
                ORDER BY messages DESC, sender, channel
            """,
            columns=(
                Column("channel", Type.TEXT, "The channel or account."),
                SENDER,
                MESSAGES,
                CONVERSATIONS,
                Column("last_at", Type.INTEGER, "When they last wrote.", Unit.TIME),
            ),
            chart=Chart(kind=ChartKind.BAR, x="sender", y=("messages",)),
        ),
        View(
            name="days",
            title="Messages by day and channel",
            sql="""
                SELECT day, channel, sum(messages) AS messages,
                       count(DISTINCT coalesce(sender_id, sender)) AS senders
                FROM people GROUP BY day, channel ORDER BY day, channel
            """,
            columns=(
                Column("day", Type.DATE, "The day."),
                Column("channel", Type.TEXT, "The channel or account."),
                MESSAGES,
                Column("senders", Type.INTEGER, "People who wrote.", Unit.COUNT),
            ),
            chart=Chart(kind=ChartKind.STACKED, x="day", y=("messages",), series="channel"),
        ),
    ),
    filters=("channel",),
)
