"""people: the messages and conversations of each sender."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bullpen.reports import Chart, ChartKind, Column, Facts, Report, Table, Type, Unit, View
from bullpen.reports import functions as F

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def people(facts: Facts) -> DataFrame:
    """What each sender wrote on each day."""
    from_a_person = (
        (F.col("type") == "message_enqueued")
        & F.col("sender_id").isNotNull()
        & F.col("from_agent").isNull()
    )
    return (
        facts.events.where(from_a_person)
        .groupBy("day", "channel", "sender_id")
        .agg(
            F.max_by("sender", "id").alias("sender"),
            F.count("*").alias("messages"),
            F.count_distinct("conversation_id").alias("conversations"),
            F.min("created_at").alias("first_at"),
            F.max("created_at").alias("last_at"),
        )
    )


MESSAGES = Column("messages", Type.INTEGER, "Messages that they wrote.", Unit.COUNT)
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
            grain=("day", "channel", "sender_id"),
            columns=(
                Column("day", Type.DATE, "The day on which the messages were stored."),
                Column("channel", Type.TEXT, "The channel or account."),
                Column("sender_id", Type.TEXT, "The sender's id on the platform."),
                SENDER,
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
                FROM people GROUP BY channel, sender_id ORDER BY messages DESC, sender
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
                       count(DISTINCT sender_id) AS senders
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
