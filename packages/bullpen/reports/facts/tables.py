"""FactTable: a table of facts in the store, with its columns and the SQL that selects them.

Spark's data source `bullpen` reads the four tables. The job lands `attempts` and `events` only:
their rows are never changed, and every report is computed from them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bullpen.core.errors import InputError
from bullpen.core.text import describe_unknown
from bullpen.reports.schema import Column, Schema, Type, Unit

REPORT_EVENTS = (
    "message_enqueued",
    "message_dead",
    "message_retried",
    "response_delivered",
    "response_dead",
    "response_unknown",
    "response_retried",
)
"""The types of events that reports are computed from; the job lands no others."""

OLD_ATTEMPT_VALUES = {
    "available_at": "enqueued_at",
    "conversation_at": "enqueued_at",
    "attempt": "retry_count + 1",
}
"""The SQL of the best known value of a column that is NULL in rows from before revision 0009."""

_POSTGRES_TYPES = {
    Type.TEXT: "text",
    Type.INTEGER: "bigint",
    Type.NUMBER: "float8",
    Type.BOOLEAN: "boolean",
    Type.DATE: "date",
}
_SQLITE_TYPES = {Type.TEXT: "TEXT", Type.INTEGER: "INTEGER", Type.NUMBER: "REAL"}


def quote_name(name: str) -> str:
    """A name in SQL, also if it is a word of the language."""
    return f'"{name}"'


@dataclass(frozen=True, slots=True, kw_only=True)
class FactTable:
    """A table of facts. Its rows have ascending ids that are never given again."""

    name: str
    description: str
    columns: Schema
    time: str
    """The column whose UTC date the landed files are partitioned by."""
    stored_in: tuple[str, ...]
    """The tables of the store that its rows are in: the live one, then its archive."""
    fields: tuple[str, ...] = ()
    """Columns that are fields of the JSON object in the column `data`."""
    batch_ids: int = 32_768
    """How many ids one statement reads on SQLite; fewer where rows are large."""
    landed: bool = False
    """Whether the job lands it."""
    not_landed: tuple[str, ...] = ()
    """Columns that the job leaves out."""
    landed_rows: str = ""
    """The condition on the rows that the job lands; empty means all."""

    @property
    def landed_columns(self) -> Schema:
        """The columns that the job lands."""
        return tuple(each for each in self.columns if each.name not in self.not_landed)

    def select_columns(self, names: Sequence[str]) -> Schema:
        """The columns of these names; raises InputError if there is none of a name."""
        known = {each.name: each for each in self.columns}
        for name in names:
            if name not in known:
                text = describe_unknown("column", name, known)
                raise InputError(f"{text} in {self.name}", hint=f"Use some of: {', '.join(known)}.")
        return tuple(known[name] for name in names)

    def select(
        self, dialect: str, names: Sequence[str], first: int, last: int, where: str = ""
    ) -> str:
        """SQL that selects these columns of the rows with these ids.

        `where` is a condition on any columns of the table. All rows come from one statement, and
        so from one moment: a row that is moved to the archive meanwhile is selected once.
        """
        return " UNION ALL ".join(
            self._select_from(each, dialect, names, f"BETWEEN {first} AND {last}", where)
            for each in self.stored_in
        )

    def _select_from(
        self, table: str, dialect: str, names: Sequence[str], ids: str, where: str
    ) -> str:
        # The condition uses the names of the columns. Both databases see through the subquery.
        inner = [each.name for each in self.columns] if where else names
        kinds = {each.name: each for each in self.columns}
        columns = ", ".join(
            f"{self._expression(dialect, kinds[each], table)} AS {quote_name(each)}"
            for each in inner
        )
        source = table
        if dialect == "postgresql" and not set(self.fields).isdisjoint(inner):
            source += self._join_fields()
        sql = f"SELECT {columns} FROM {source} WHERE {table}.id {ids}"  # noqa: S608 - our names
        if not where:
            return sql
        selected = ", ".join(map(quote_name, names))
        # On a line of its own: the condition may end with a comment.
        return f"SELECT {selected} FROM ({sql}) AS facts WHERE ({where}\n)"  # noqa: S608

    def _join_fields(self) -> str:
        """Parses the JSON once, and not once for each field."""
        fields = ", ".join(
            f"{quote_name(each.name)} {_POSTGRES_TYPES[each.type]}"
            for each in self.columns
            if each.name in self.fields
        )
        return f" LEFT JOIN LATERAL json_to_record(data::json) AS field({fields}) ON true"

    def _expression(self, dialect: str, column: Column, table: str) -> str:
        name = column.name
        if name == "archived":
            is_archive = table != self.stored_in[0]
            return str(int(is_archive)) if dialect == "sqlite" else str(is_archive)
        if table == "attempts" and name in OLD_ATTEMPT_VALUES:
            return f"COALESCE({table}.{quote_name(name)}, {OLD_ATTEMPT_VALUES[name]})"
        if name not in self.fields:
            return f"{table}.{quote_name(name)}"
        if dialect == "sqlite":
            return f"CAST(json_extract({table}.data, '$.{name}') AS {_SQLITE_TYPES[column.type]})"
        return f"field.{quote_name(name)}"


def _text(name: str, description: str) -> Column:
    return Column(name, Type.TEXT, description)


def _count(name: str, description: str) -> Column:
    return Column(name, Type.INTEGER, description, Unit.COUNT)


def _time(name: str, description: str) -> Column:
    return Column(name, Type.INTEGER, description, Unit.TIME)


def _yes_no(name: str, description: str) -> Column:
    return Column(name, Type.BOOLEAN, description)


def _id(noun: str) -> Column:
    return Column("id", Type.INTEGER, f"The {noun}'s number; ascending, and never given again.")


ATTEMPTS = FactTable(
    name="attempts",
    description="The finished runs of agents, one row for each. A run answers a batch of messages.",
    time="finished_at",
    stored_in=("attempts",),
    landed=True,
    columns=(
        _id("run"),
        _text("message_id", "The id of the first message of the batch, the primary."),
        _count("messages", "The number of messages in the batch."),
        _text("agent", "The agent."),
        _text("worker", "The process that ran the agent."),
        _text(
            "outcome", "How it ended: `completed`, `failed`, `crashed`, `released` or `cancelled`."
        ),
        _text("error_kind", "The kind of the error; NULL if there was none."),
        _text("error", "The error; NULL if there was none."),
        _text("fingerprint", "Equal for errors that differ only in numbers and ids."),
        _count("retry_count", "The failed runs of the primary before this one that count."),
        _text("provider", "The provider, such as `claude`."),
        _text("model", "The model."),
        Column("input_tokens", Type.INTEGER, "Tokens of the input.", Unit.TOKENS),
        Column("output_tokens", Type.INTEGER, "Tokens of the output.", Unit.TOKENS),
        Column("cost", Type.NUMBER, "The cost that the provider reported.", Unit.DOLLARS),
        _text("conversation_id", "The conversation."),
        _count("hop", "The number of handoffs between the sender and the primary."),
        _text("team_id", "The team; NULL without a team."),
        _text("channel", "The channel or account that the conversation began on."),
        _time("enqueued_at", "When the primary was stored."),
        _time("claimed_at", "When the batch was claimed."),
        _time("started_at", "When the provider was started."),
        _time("finished_at", "When the run finished."),
        _text("sender", "The name of the primary's sender."),
        _text("sender_id", "The sender's id on the platform; NULL if it was not a person."),
        _text("from_agent", "The agent that handed the primary over; NULL if none did."),
        _time("available_at", "When the primary was due: after its delay and its back-off."),
        _count("attempt", "The number of this run of the primary: 1, 2, and so on."),
        _count("dead", "The messages of the batch that became dead letters by this run."),
        Column(
            "wait",
            Type.INTEGER,
            "The back-off before the next run of the primary; NULL without one.",
            Unit.MILLISECONDS,
        ),
        _time("conversation_at", "When the first message of the conversation was stored."),
    ),
)

EVENTS = FactTable(
    name="events",
    description="What happened to messages, responses, agents and services, one row for each"
    " event. Which columns an event has depends on its type.",
    time="created_at",
    stored_in=("events",),
    landed=True,
    not_landed=("data",),
    landed_rows="type IN ({})".format(", ".join(f"'{each}'" for each in REPORT_EVENTS)),
    fields=(
        *("channel", "sender", "sender_id", "from_agent", "parent_id", "hop", "team_id"),
        *("available_at", "kind", "error", "fingerprint", "wait"),
        *("response", "tries", "waited", "parts"),
    ),
    columns=(
        _id("event"),
        _text("type", "The type, such as `message_enqueued`."),
        _text("agent", "The agent; NULL if the event is not about one."),
        _text("conversation_id", "The conversation."),
        _text("message_id", "The message."),
        _time("created_at", "When it happened."),
        _text("channel", "The channel or account."),
        _text("sender", "The name of the message's sender."),
        _text("sender_id", "The sender's id on the platform; NULL if it was not a person."),
        _text("from_agent", "The agent that handed the message over."),
        _text("parent_id", "The message whose run wrote this one."),
        _count("hop", "The number of handoffs between the sender and the message."),
        _text("team_id", "The team."),
        _time("available_at", "When the message was first due."),
        _text("kind", "The kind of the error."),
        _text("error", "The error."),
        _text("fingerprint", "Equal for errors that differ only in numbers and ids."),
        Column("wait", Type.INTEGER, "The back-off of the message.", Unit.MILLISECONDS),
        Column("response", Type.INTEGER, "The id of the response."),
        _count("tries", "How often the delivery was tried."),
        Column(
            "waited",
            Type.INTEGER,
            "The time from storing the response to this event.",
            Unit.MILLISECONDS,
        ),
        _count("parts", "The parts that were sent."),
        _text("data", "All fields of the event, a JSON object."),
    ),
)

MESSAGES = FactTable(
    name="messages",
    description="Messages for agents, also those in the archive. A row changes until its message"
    " is finished, and is deleted after `archive_days`.",
    time="created_at",
    stored_in=("messages", "messages_archive"),
    batch_ids=2_048,
    columns=(
        _id("message"),
        _text("message_id", "The message's id, such as `slack_7f3k2m9x`."),
        _text("channel", "The channel or account."),
        _text("sender", "The sender's name."),
        _text("sender_id", "The sender's id on the platform; NULL if it was not a person."),
        _text("message", "The text."),
        _text("agent", "The agent that it is for."),
        _text("from_agent", "The agent that handed it over."),
        _text("files", "The names of its files, a JSON list."),
        _text("status", "Its state, such as `completed`."),
        _count("retry_count", "Failed runs that count."),
        _count("crash_count", "Runs that ended with a crash of the processor."),
        _text("last_error", "The last error."),
        _text("error_kind", "The kind of the last error."),
        _text("claimed_by", "The process that claimed it."),
        _text("conversation_id", "The conversation."),
        _text("parent_id", "The message whose run wrote this one."),
        _count("hop", "The number of handoffs between the sender and this message."),
        _text("team_id", "The team."),
        _text("reply_to", "The platform's address for the answer."),
        Column("priority", Type.INTEGER, "The priority tier."),
        _time("due_at", "When it was first due."),
        _time("available_at", "When it is due now: after its back-off."),
        _time("deadline", "When it expires; NULL without a deadline."),
        _text("payload", "Data of the program that sent it, JSON."),
        _text("schema", "The name of the payload's schema."),
        _time("created_at", "When it was stored."),
        _time("updated_at", "When its state last changed."),
        _time("written_at", "When it was written, by the platform's clock."),
        _count("runs", "All runs, whatever ended them."),
        _time("conversation_at", "When the first message of the conversation was stored."),
        _yes_no("archived", "Whether the row is in the archive."),
    ),
)

RESPONSES = FactTable(
    name="responses",
    description="Responses to people, also those in the archive. A row changes until its response"
    " is delivered, and is deleted after `archive_days`.",
    time="created_at",
    stored_in=("responses", "responses_archive"),
    batch_ids=2_048,
    columns=(
        _id("response"),
        _text("message_id", "The message that it answers."),
        _text("channel", "The channel or account."),
        _text("sender", "The name of the person who gets it."),
        _text("sender_id", "The person's id on the platform."),
        _text("message", "The text."),
        _text("original_message", "The text that it answers."),
        _text("agent", "The agent that wrote it."),
        _text("files", "The names of its files, a JSON list."),
        _text("metadata", "Data for the channel, JSON."),
        _text("status", "Its state, such as `acked`."),
        _text("conversation_id", "The conversation."),
        _text("reply_to", "The platform's address."),
        Column("seq", Type.INTEGER, "Its place among the responses to the message."),
        _count("delivery_attempts", "How often its delivery was tried."),
        _count("parts_sent", "The parts that were sent."),
        _yes_no("sending", "Whether a part is being sent."),
        _yes_no("possible_duplicate", "Whether it was sent again after an unknown outcome."),
        _text("claimed_by", "The process that delivers it."),
        _time("available_at", "When it is due."),
        _time("expires_at", "When it expires."),
        _text("last_error", "The last error."),
        _time("created_at", "When it was stored."),
        _time("acked_at", "When it was delivered; NULL before."),
        _yes_no("archived", "Whether the row is in the archive."),
    ),
)

FACT_TABLES: Mapping[str, FactTable] = {
    each.name: each for each in (ATTEMPTS, EVENTS, MESSAGES, RESPONSES)
}
"""Every fact table, by name."""


def find_table(name: str) -> FactTable:
    """The fact table of this name; raises InputError if there is none."""
    table = FACT_TABLES.get(name)
    if table is None:
        text = describe_unknown("fact table", name, FACT_TABLES) if name else "no table was named"
        raise InputError(text, hint=f"Use one of: {', '.join(FACT_TABLES)}.")
    return table
