"""Writes the pages of docs/ that follow from the code: settings, commands, routes, events and
states.

`python -m tests.docs.render` brings them up to date; a test fails while they are not.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path

import click

from bullpen.api.description import describe
from bullpen.cli.lazy import walk_commands
from bullpen.cli.main import cli
from bullpen.core.events.base import EventField
from bullpen.core.events.vocabulary import EVENT_TYPES
from bullpen.core.settings import ENVIRONMENT_PREFIX, Settings
from bullpen.core.settings.file import FIXED_SETTINGS
from bullpen.core.states import LANE_STATES, MESSAGE_STATES, RESPONSE_STATES, State, StateInfo

DOCS = Path(__file__).resolve().parents[2] / "docs"


def settings() -> str:
    """Every setting, its name in the environment, its default and what it is for."""
    lines = [
        "# Settings",
        "",
        "Each is a line of `settings.toml` in the home, or a variable of the environment, which",
        "wins. `bullpen config list` shows them all, `bullpen config set` changes them and keeps",
        "the file's comments, and `bullpen config check` says which lines are bad, and why.",
        "",
        "A line that is bad costs only itself: it is named with its number, its default counts,",
        "and all else goes on. What runs agents does not start with it, though, since limits such",
        "as `max_cost` are not to fall back to a default; nor is a `database_url` that is bad ever",
        "taken for the default's database. A name that no setting has is only warned of. A bad",
        "variable of the environment is an error at once.",
        "",
        "| setting | in the environment | default | |",
        "|---|---|---|---|",
    ]
    for each in fields(Settings):
        default = str(each.default) or "(empty)"
        name = ENVIRONMENT_PREFIX + each.name.upper()
        lines.append(f"| `{each.name}` | `{name}` | {default} | {each.metadata['doc']} |")
    lines += [
        "",
        "## Over the API",
        "",
        "`PUT /api/settings` changes all but these, and writes them to `settings.toml`; what was",
        "there before is in `settings.toml.bak`. What the environment says cannot be changed so.",
        "`bullpen config set` on the machine itself changes these too, but for `home`.",
        "",
        *(f"* `{name}`: {reason}" for name, reason in FIXED_SETTINGS.items()),
    ]
    return "\n".join(lines) + "\n"


def commands() -> str:
    """Every command's help, as it prints it."""
    parts = ["# Commands", "", "What each prints with `--help`."]
    for path, command in walk_commands(cli, "bullpen"):
        name = " ".join(path)
        with click.Context(command, info_name=name) as context:
            parts += ["", f"## {name}", "", "```", command.get_help(context), "```"]
    return "\n".join(parts) + "\n"


def routes() -> str:
    """Every route of the API, what it needs and what it does."""
    document = describe()
    rows: dict[str, list[str]] = {}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            scope = re.search(r"the scope `(\w+)`", operation.get("description", ""))
            row = f"| {method.upper()} | `{path}` | {scope[1] if scope else ''} |"
            rows.setdefault(operation["tags"][0], []).append(f"{row} {operation['summary']} |")
    lines = [
        "# Routes",
        "",
        "Each with the scope that a key needs for it; the fields are at `/openapi/swagger` of a",
        "running API, and in `/openapi/openapi.json`. How to use them: [the API](api.md).",
    ]
    for tag in document["tags"]:
        lines += ["", f"## {tag['name']}", "", tag["description"], ""]
        lines += ["| | path | scope | |", "|---|---|---|---|", *rows[tag["name"]]]
    return "\n".join(lines) + "\n"


def events() -> str:
    """Every event, what happened, and the keys of its data."""
    lines = [
        "# Events",
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
    """Every state of messages, responses and lanes, what it means and where it leads."""
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


PAGES = {
    "reference/settings.md": settings,
    "reference/commands.md": commands,
    "reference/routes.md": routes,
    "reference/events.md": events,
    "reference/states.md": states,
}

if __name__ == "__main__":
    for page, render in PAGES.items():
        (DOCS / page).write_text(render(), encoding="utf-8")
