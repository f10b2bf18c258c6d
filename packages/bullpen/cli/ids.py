"""What a shell completes: the ids that are there now, by `shell_complete=` of an argument."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from typing import TypeAlias

import click
from click.shell_completion import CompletionItem

from bullpen.cli.output import reading
from bullpen.core.errors import BullpenError
from bullpen.core.settings import DEFAULTS, Settings
from bullpen.core.settings_problems import load_what_can_be
from bullpen.core.states import MessageState, ResponseState
from bullpen.core.store.file import database_file
from bullpen.core.store.transaction import Transaction

Complete: TypeAlias = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]
Found: TypeAlias = Iterable[tuple[str, str]]
"""Each id, and a word on it for shells that show one."""

PATIENCE_SECONDS = 1
"""Who presses a key does not wait for a database that is busy."""

MOST = 200
HELP_LENGTH = 60


def among(find: Callable[[Transaction], Found]) -> Complete:
    """Complete what `find` finds in the store; nothing where the store cannot be read."""

    def complete(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
        with suppress(BullpenError, OSError):
            settings = _settings()
            file = database_file(settings)
            if file is None or file.exists():  # to open it would make it
                with reading(settings) as tx:
                    return _items(find(tx), incomplete)
        return []

    return complete


def _settings() -> Settings:
    found, _ = load_what_can_be(os.environ)
    return replace(found, busy_seconds=PATIENCE_SECONDS)


def _items(found: Found, incomplete: str) -> list[CompletionItem]:
    return [
        CompletionItem(id_, help=" ".join(word.split())[:HELP_LENGTH] or None)
        for id_, word in found
        if id_.startswith(incomplete)
    ]


# What each needs is imported when it is asked: the command line begins without.


def _agents(tx: Transaction) -> Found:
    from bullpen.core.roster.find import list_agents

    return ((each.id, each.name) for each in list_agents(tx))


def _teams(tx: Transaction) -> Found:
    from bullpen.core.roster.teams import list_teams

    return ((each.id, each.name) for each in list_teams(tx))


def _providers(tx: Transaction) -> Found:
    from bullpen.core.roster.custom_providers import list_custom_providers
    from bullpen.core.roster.provider_names import BUILT_IN

    yield from ((name, "") for name in sorted(BUILT_IN))
    yield from ((f"custom:{each.id}", each.name) for each in list_custom_providers(tx))


def _custom_providers(tx: Transaction) -> Found:
    from bullpen.core.roster.custom_providers import list_custom_providers

    return ((each.id, each.name) for each in list_custom_providers(tx))


def _models(tx: Transaction) -> Found:
    from bullpen.core.roster.find import list_agents

    return ((each, "") for each in sorted({agent.model for agent in list_agents(tx)} - {""}))


def _messages(*states: MessageState) -> Callable[[Transaction], Found]:
    def find(tx: Transaction) -> Found:
        from bullpen.core.queue.newest import newest
        from bullpen.core.queue.selection import Selection

        for state in states or (None,):
            for each in newest(tx, Selection(), state, MOST):
                yield each.message_id, f"@{each.agent}: {each.message}"

    return find


def _responses(*states: ResponseState) -> Callable[[Transaction], Found]:
    def find(tx: Transaction) -> Found:
        from bullpen.core.outbox.browse import WantedResponses, browse_responses

        for state in states or (None,):
            for each in browse_responses(tx, WantedResponses(status=state), None, MOST):
                yield str(each.id), f"{each.channel}: {each.message}"

    return find


def _conversations(tx: Transaction) -> Found:
    from bullpen.core.conversations.newest import conversations

    return ((each.first.message_id, each.first.message) for each in conversations(tx, {}, None, 50))


def _schedules(tx: Transaction) -> Found:
    from bullpen.core.schedules.find import list_schedules

    return ((each.label or each.id, each.message) for each in list_schedules(tx))


def _keys(tx: Transaction) -> Found:
    from bullpen.core.access.keys import list_keys

    return ((each.id, each.name) for each in list_keys(tx))


agents = among(_agents)
teams = among(_teams)
providers = among(_providers)
custom_providers = among(_custom_providers)
models = among(_models)
messages = among(_messages())
open_messages = among(_messages(MessageState.PROCESSING, MessageState.HELD, MessageState.PENDING))
dead_messages = among(_messages(MessageState.DEAD))
held_messages = among(_messages(MessageState.HELD))
responses = among(_responses())
lost_responses = among(_responses(ResponseState.DEAD, ResponseState.UNKNOWN))
undelivered_responses = among(_responses(ResponseState.PENDING, ResponseState.UNKNOWN))
begun = among(_conversations)
schedules = among(_schedules)
keys = among(_keys)


def settings(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete the name of a setting."""
    return _items(((name, "") for name in DEFAULTS), incomplete)
