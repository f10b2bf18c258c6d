"""Query: a SELECT that a person wrote, with the tables and columns that it names.

DuckDB parses it, and the tree of the statement is checked before it runs. That there is one
statement of the type SELECT is not enough: in DuckDB 2.0 `WITH x AS (COPY … TO 'file')` and
`WITH x AS (INSERT …)` are SELECTs as well, and table functions read files and change settings.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bullpen.core.errors import BadQuery
from bullpen.core.strict_json import Json
from bullpen.core.text import describe_unknown, format_count

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

MAX_SQL_CHARS = 100_000

QUERY_NODES = frozenset({"SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"})
"""Nodes that only read; others are INSERT, UPDATE, DELETE and COPY."""

TABLE_FUNCTIONS = frozenset(
    {"generate_series", "json_each", "json_tree", "range", "repeat_row", "unnest"}
)
"""Table functions that read nothing but their arguments."""

REFUSED_FUNCTIONS = frozenset({"current_setting", "getvariable", "nextval", "setval", "write_log"})
"""Functions that show or change the state of the database."""

DESCRIPTIONS = frozenset({"DESCRIBE", "SUMMARY"})


@dataclass(frozen=True, slots=True)
class Query:
    """A checked SELECT."""

    sql: str
    tables: frozenset[str]
    """The tables that it names, in lower case."""
    words: frozenset[str]
    """Every text in it, in lower case: the columns that it names are among them."""
    all_columns: bool
    """Whether it names columns in a way that may mean all of them, such as `*`."""

    def columns(self, known: Collection[str]) -> list[str]:
        """Which of the columns of a table it may use."""
        if self.all_columns:
            return list(known)
        return [each for each in known if each.lower() in self.words]


def parse_query(database: DuckDBPyConnection, sql: str, known: Collection[str]) -> Query:
    """The query, if it is one SELECT that reads only the `known` tables and its own WITH."""
    if len(sql) > MAX_SQL_CHARS:
        raise BadQuery(f"the query is longer than {MAX_SQL_CHARS} characters")
    if "\0" in sql:
        raise BadQuery("the query has a NUL character")
    tree = _parse(database, sql)
    objects = list(_objects(tree))
    for each in objects:
        _check_object(each)
    own = {str(key).lower() for each in objects for key in _common_tables(each)}
    named = {
        str(each["table_name"]).lower() for each in objects if each.get("type") == "BASE_TABLE"
    }
    by_lower = {each.lower() for each in known}
    for name in sorted(named - own - by_lower):
        raise BadQuery(
            describe_unknown("table", name, known),
            hint="Run `bullpen report sql --tables` to see all tables.",
        )
    return Query(
        sql=sql,
        tables=frozenset(named & by_lower),
        words=frozenset(each.lower() for each in _texts(tree)),
        all_columns=any(map(_names_all_columns, objects)) or _names_rows(objects),
    )


def _parse(database: DuckDBPyConnection, sql: str) -> list[Json]:
    """The trees of the statement."""
    found = database.execute("SELECT json_serialize_sql(?::VARCHAR)", [sql]).fetchone()
    assert found is not None
    try:
        # Not read_json: positions that are not known have 64 bits without a sign.
        document: Json = json.loads(str(found[0]))
    except RecursionError:
        raise BadQuery("the query is nested too deeply") from None
    match document:
        case {"error": False, "statements": [statement]}:
            return [statement]
        case {"error": False, "statements": list(statements)}:
            raise BadQuery(f"the query has {format_count(len(statements), 'statement')}")
        case {"error_type": "not implemented"}:
            raise BadQuery("the query is not a SELECT")
        case {"error_message": str(message)}:
            raise BadQuery(f"the query cannot be parsed: {message}")
    raise BadQuery("the query cannot be parsed")


def _objects(value: Json) -> Iterator[dict[str, Json]]:
    """Every object in the tree."""
    waiting = [value]
    while waiting:
        match waiting.pop():
            case dict() as found:
                yield found
                waiting += found.values()
            case list() as values:
                waiting += values


def _texts(value: Json) -> Iterator[str]:
    """Every text in the tree that is not the name of a field."""
    waiting = [value]
    while waiting:
        match waiting.pop():
            case str() as text:
                yield text
            case dict() as found:
                waiting += found.values()
            case list() as values:
                waiting += values


def _check_object(node: dict[str, Json]) -> None:
    """Refuse what does more than read tables."""
    kind = str(node.get("type", ""))
    if kind.endswith("_NODE") and kind not in QUERY_NODES:
        raise BadQuery(f"the query has a {kind.split('_')[0]}, which is not a SELECT")
    if kind == "TABLE_FUNCTION":
        match node.get("function"):
            case {"function_name": str(name)} if name.lower() in TABLE_FUNCTIONS:
                pass
            case {"function_name": str(name)}:
                raise BadQuery(f"the table function {name} is not allowed")
            case _:
                raise BadQuery("the query has a table function that is not allowed")
    if kind == "SHOW_REF" and node.get("show_type") not in DESCRIPTIONS:
        raise BadQuery("SHOW is not allowed")
    if kind == "BASE_TABLE" and _path(node) != [node.get("table_name")]:
        raise BadQuery("the query names a schema; use the name of the table alone")
    name = str(node.get("function_name", "")).lower()
    if name in REFUSED_FUNCTIONS or name.startswith("__"):
        raise BadQuery(f"the function {name} is not allowed")


def _path(node: dict[str, Json]) -> Json:
    match node.get("qualified_name"):
        case {"path": path}:
            return path
    return None


def _common_tables(node: dict[str, Json]) -> Iterator[Json]:
    """The names in the WITH of a node."""
    match node.get("cte_map"):
        case {"map": list(entries)}:
            for entry in entries:
                if isinstance(entry, dict):
                    yield entry.get("key")
    if node.get("type") in ("RECURSIVE_CTE_NODE", "CTE_NODE"):
        yield node.get("ctename") or node.get("cte_name")


def _names_all_columns(node: dict[str, Json]) -> bool:
    """Whether it is `*`, `COLUMNS(…)`, a column by its position, or a whole table."""
    return (
        node.get("class") in ("STAR", "POSITIONAL_REFERENCE")
        or node.get("ref_type") == "NATURAL"
        or node.get("type") == "SHOW_REF"
        or bool(node.get("column_name_alias"))
    )


def _names_rows(objects: Collection[dict[str, Json]]) -> bool:
    """Whether a column may be a whole row, as in `SELECT a FROM attempts a`."""
    tables = {
        str(each.get(key, "")).lower()
        for each in objects
        if each.get("type") == "BASE_TABLE"
        for key in ("alias", "table_name")
    }
    for each in objects:
        match each.get("column_names"):
            case [str(name)] if name.lower() in tables:
                return True
    return False
