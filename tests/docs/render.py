"""Writes the pages of docs/ that are generated from the code: settings, commands, routes,
events, states, reports and the picture of the architecture.

`python -m tests.docs.render` updates them; a test fails if a page is out of date.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import click

from bullpen.api.description import describe
from bullpen.cli.lazy import walk_commands
from bullpen.cli.main import cli
from bullpen.core.events.base import EventField
from bullpen.core.events.vocabulary import EVENT_TYPES
from bullpen.core.registry import CHANNELS, ChannelSetting
from bullpen.core.registry.channel_settings import COMMON_SETTINGS
from bullpen.core.settings import FIELDS
from bullpen.core.settings.file import FIXED_SETTINGS
from bullpen.core.states import LANE_STATES, MESSAGE_STATES, RESPONSE_STATES, State, StateInfo
from bullpen.reports.facts.tables import FACT_TABLES, REPORT_EVENTS, FactTable
from tests.docs import architecture, reports

DOCS = Path(__file__).resolve().parents[2] / "docs"


SETTINGS_BEGIN = """# Settings

Bullpen takes the value of each setting from the first of these that has one:

1. the environment variable, such as `BULLPEN_MAX_HOPS=5` for `max_hops`;
2. `settings.toml` in the home, such as `max_hops = 5`;
3. the default in the tables below.

```
bullpen config list --changed        # the settings that differ from their defaults
bullpen config set max_hops 5        # change settings.toml; comments are kept
bullpen config unset max_hops        # back to the default
bullpen config check                 # report invalid and unknown settings
```

A channel has a table of its own. `slack.bot_token` is `bot_token` in the table `[slack]`, and
`BULLPEN_SLACK_BOT_TOKEN` in the environment. A further account of a platform has the platform's
name and a name of its own: `slack-sage.bot_token`, `[slack-sage]`, `BULLPEN_SLACK_SAGE_BOT_TOKEN`.

A change takes effect when the services that read the setting restart. `config set` prints the
command, such as `bullpen restart processor`.

An invalid line in `settings.toml` is reported with its line number; its default is used, and all
other settings apply. Two exceptions: with an invalid line the processor does not start, because a
default could replace a limit such as `max_cost`; and with an invalid `database_url` no database is
used. An unknown setting is only a warning. An invalid environment variable is always an error.
"""

EVERY_CHANNEL = """Each channel has these settings as well, for example `slack.mentions`.
"""

SETTINGS_END = """
## Settings that the API cannot change

`PUT /api/settings` changes `settings.toml` and keeps the old file as `settings.toml.bak`. It cannot
change a setting that an environment variable overrides. The following settings can only be changed
on the machine itself, with `bullpen config set` (`home`: with `BULLPEN_HOME`).

| setting | reason |
|---|---|
"""


def settings() -> str:
    """Every setting, its default and its purpose."""
    lines = [SETTINGS_BEGIN]
    for each in FIELDS.values():
        if section := each.metadata["section"]:
            head = "| setting | default | description |\n|---|---|---|"
            lines += [f"{'' if len(lines) == 1 else chr(10)}## {section}\n", head]
        default = str(each.default) or "(empty)"
        lines.append(f"| `{each.name}` | {default} | {each.metadata['doc']} |")
    for channel in CHANNELS.built_in.values():
        if channel.settings:
            lines += [f"\n## Channel {channel.name}\n", "| setting | default | description |"]
            lines += ["|---|---|---|"]
            lines += [_channel_setting(channel.name, each) for each in channel.settings]
    lines += ["\n## Every channel\n", EVERY_CHANNEL]
    lines += ["| setting | default | description |", "|---|---|---|"]
    lines += [_channel_setting("CHANNEL", each) for each in COMMON_SETTINGS]
    reasons = [f"| `{name}` | {reason} |" for name, reason in FIXED_SETTINGS.items()]
    return "\n".join([*lines, SETTINGS_END + "\n".join(reasons)]) + "\n"


def _channel_setting(channel: str, setting: ChannelSetting) -> str:
    when = f" Only with `{setting.when[0]} = {setting.when[1]}`." if setting.when else ""
    required = "(required)" if setting.required else "(empty)"
    name = f"`{channel}.{setting.name}`"
    return f"| {name} | {setting.default or required} | {setting.doc}{when} |"


def commands() -> str:
    """The help of every command."""
    parts = ["# Commands", "", "The help of every command, as `--help` prints it."]
    for path, command in walk_commands(cli, "bullpen"):
        name = " ".join(path)
        with click.Context(command, info_name=name, help_option_names=["-h", "--help"]) as context:
            parts += ["", f"## {name}", "", "```", command.get_help(context), "```"]
    return "\n".join(parts) + "\n"


ROUTES_BEGIN = """# Routes

Every route of the API, and the scope that a key needs for it. A running API documents the fields of
each request and response at `/openapi/swagger` and in `/openapi/openapi.json`. [The API](api.md)
explains how to use it."""


def routes() -> str:
    """Every route of the API, the scope that it needs and what it does."""
    document = describe()
    rows: dict[str, list[str]] = {}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            scope = re.search(r"the scope `(\w+)`", operation.get("description", ""))
            row = f"| {method.upper()} | `{path}` | {scope[1] if scope else ''} |"
            rows.setdefault(operation["tags"][0], []).append(f"{row} {operation['summary']} |")
    lines = [ROUTES_BEGIN]
    for tag in document["tags"]:
        lines += [f"\n## {tag['name']}\n", f"{tag['description']}\n"]
        lines += [
            "| method | path | scope | description |",
            "|---|---|---|---|",
            *rows[tag["name"]],
        ]
    return "\n".join(lines) + "\n"


def events() -> str:
    """Every event, its meaning, and the keys of its data."""
    lines = [
        "# Events",
        "",
        "An event records something that happened, such as `message_enqueued`. `bullpen events`"
        " prints",
        "events; programs read them as [live events](streams.md).",
        "",
        "Each event is a row of the table `events`, written in the transaction of the change. Its",
        "columns are `id` (ascending, never reused), `type`, `agent`, `conversation_id`,",
        "`message_id`, `data` (a JSON object) and `created_at` (milliseconds, UTC).",
        "",
        "`EventTail` in `bullpen.core.events.tail` follows the events from any position without",
        "loss. On PostgreSQL it waits for transactions that have not committed yet.",
        "",
        "| type | what happened | keys of `data` |",
        "|---|---|---|",
    ]
    for name, event in EVENT_TYPES.items():
        keys = ", ".join(map(_event_key, (each for each in event.fields if each.required)))
        optional = ", ".join(map(_event_key, (each for each in event.fields if not each.required)))
        if optional:
            keys = f"{keys}, optional: {optional}".removeprefix(", ")
        lines.append(f"| `{name}` | {event.__doc__} | {keys} |".replace("|  |", "| |"))
    return "\n".join(lines) + "\n"


def _event_key(field: EventField) -> str:
    return f"{field.name} ({field.note})" if field.note else field.name


def states() -> str:
    """Every state of messages, responses and lanes, its meaning and the states that follow."""
    lines = [
        "# States",
        "",
        "Why a message or response changes its state: [the queue](../explanation/queue.md).",
    ]
    lines += _state_table("Messages", MESSAGE_STATES)
    lines += _state_table("Responses", RESPONSE_STATES)
    lines += _state_table("Lanes", LANE_STATES)
    return "\n".join(lines) + "\n"


def _state_table(title: str, table: Mapping[State, StateInfo[State]]) -> list[str]:
    lines = ["", f"## {title}", "", "| state | meaning | can become |", "|---|---|---|"]
    for state, info in table.items():
        targets = ", ".join(f"`{each}`" for each in table if each in info.moves_to)
        lines.append(f"| `{state}` | {info.label} | {targets} |".replace("|  |", "| |"))
    return lines


FACTS_BEGIN = """# Fact tables

Reports are computed from facts: rows of the store about runs and events.
[Spark](../how-to/query-in-spark.md) reads these tables from the store. The Parquet files of the
reports have `attempts` and `events`, one directory for each date.

Times are milliseconds since 1970, UTC. In rows that an earlier version of Bullpen wrote, columns
that it did not know are NULL."""


def facts() -> str:
    """Every fact table, its columns and what they mean."""
    lines = [FACTS_BEGIN]
    for table in FACT_TABLES.values():
        lines += [f"\n## {table.name}\n", f"{table.description}\n"]
        if table.landed:
            lines += [f"In Parquet by the UTC date of `{table.time}`. {_landed(table)}\n"]
        lines += ["| column | type | unit | description |", "|---|---|---|---|"]
        for each in table.columns:
            row = f"| `{each.name}` | {each.type} | {each.unit or ''} | {each.description} |"
            lines.append(row.replace("|  |", "| |"))
    return "\n".join(lines) + "\n"


def _landed(table: FactTable) -> str:
    kept = ""
    if table.landed_rows:
        types = ", ".join(f"`{each}`" for each in REPORT_EVENTS)
        kept = f"Only the types {types} are kept there"
        kept += "".join(f", without the column `{each}`" for each in table.not_landed) + "."
    return kept or "All rows and columns are kept there."


PAGES = {
    "reference/settings.md": settings,
    "reference/commands.md": commands,
    "reference/routes.md": routes,
    "reference/events.md": events,
    "reference/states.md": states,
    "reference/reports.md": reports.describe,
    "reference/facts.md": facts,
    "pictures/architecture.svg": architecture.draw,
}

if __name__ == "__main__":
    for page, render in PAGES.items():
        (DOCS / page).write_text(render(), encoding="utf-8")
