"""What is given of a provider: its key never as an argument, which others on the machine see."""

from __future__ import annotations

import sys

import click

from bullpen.core.errors import BadProvider
from bullpen.core.roster.custom_providers import CUSTOM_PREFIX, Harness

HARNESSES = click.Choice([each.value for each in Harness])


def prompt_key() -> str:
    """The key, asked for at a terminal, else the first line of standard input."""
    if sys.stdin.isatty():
        key: str = click.prompt("Key", hide_input=True, err=True)
    else:
        key = sys.stdin.readline().strip()
    if not key:
        raise BadProvider("there is no key on standard input", hint="Give it as `... < key`.")
    return key


def custom_id(given: str) -> str:
    """The id of a service that was added, named with `custom:` or without."""
    return given.removeprefix(CUSTOM_PREFIX)
