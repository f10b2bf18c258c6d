"""Writes the pages of docs/ that follow from the code: settings and commands.

`python -m tests.docs.render` brings them up to date; a test fails while they are not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import click

from bullpen.cli.main import cli
from bullpen.core.settings import PREFIX, Settings

DOCS = Path(__file__).resolve().parents[2] / "docs"


def settings() -> str:
    """Every setting, its name in the environment, its default and what it is for."""
    lines = [
        "# Settings",
        "",
        "Each is a line of `settings.toml` in the home, or a variable of the environment, which",
        "wins. An unknown name, or a value that cannot be read, stops the start and says why.",
        "",
        "| setting | in the environment | default | |",
        "|---|---|---|---|",
    ]
    for each in fields(Settings):
        default = str(each.default) or "(empty)"
        name = PREFIX + each.name.upper()
        lines.append(f"| `{each.name}` | `{name}` | {default} | {each.metadata['doc']} |")
    return "\n".join(lines) + "\n"


def commands() -> str:
    """Every command's help, as it prints it."""
    parts = ["# Commands", "", "What each prints with `--help`."]
    for path, command in walk(cli, "bullpen"):
        with click.Context(command, info_name=path) as context:
            parts += ["", f"## {path}", "", "```", command.get_help(context), "```"]
    return "\n".join(parts) + "\n"


def walk(command: click.Command, path: str) -> Iterator[tuple[str, click.Command]]:
    """The command and all below it."""
    yield path, command
    if isinstance(command, click.Group):
        for name in sorted(command.commands):
            yield from walk(command.commands[name], f"{path} {name}")


PAGES = {"settings.md": settings, "commands.md": commands}

if __name__ == "__main__":
    for page, render in PAGES.items():
        (DOCS / page).write_text(render(), encoding="utf-8")
