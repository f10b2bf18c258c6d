"""Shell completion: scripts, and completion of ids."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, TypeAlias

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    add_completion_class,
    get_completion_class,
)

from bullpen.cli.lazy import COMPLETE_VARIABLE
from bullpen.cli.output import echo
from bullpen.core.errors import BullpenError
from bullpen.core.settings import Settings
from bullpen.core.settings.parse import load_lenient
from bullpen.core.states import (
    OPEN_RESPONSE_STATES,
    UNDELIVERED_STATES,
    MessageState,
    ResponseState,
)

if TYPE_CHECKING:
    from bullpen.core.store.transaction import Transaction

SHELLS = click.Choice(["bash", "zsh", "fish"])
PROGRAM = "bullpen"

STORE_TIMEOUT_SECONDS = 1
"""The lock timeout: a key press does not wait for a busy database."""
MAX_CANDIDATES = 200
HELP_CHARS = 60


@click.command()
@click.argument("shell", metavar="SHELL", type=SHELLS)
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print a completion script for bash, zsh or fish.

    The script completes commands, options, agents, teams and other ids.

    \b
    Examples for bash, to repeat after an upgrade:
      bullpen completion bash > ~/.bullpen-completion.bash
      echo '. ~/.bullpen-completion.bash' >> ~/.bashrc
    For zsh, in a directory of $fpath:
      bullpen completion zsh > ~/.zfunc/_bullpen
    For fish:
      bullpen completion fish > ~/.config/fish/completions/bullpen.fish
    """
    kind = get_completion_class(shell)
    assert kind is not None
    script = kind(context.find_root().command, {}, PROGRAM, COMPLETE_VARIABLE)
    # Not source(): that of bash starts a bash to check its version.
    echo(script.source_template % script.source_vars())


class BashCompletion(BashComplete):
    """Completion for bash, which splits words at colons: they are joined before completing."""

    _before = ""
    """The part of the word, up to the last colon, that bash keeps."""

    def get_completion_args(self) -> tuple[list[str], str]:
        """The complete words, and the incomplete one."""
        args, incomplete = super().get_completion_args()
        words: list[str] = []
        together = False
        for each in (*(each for each in args if each != "="), incomplete):
            colons = each != "" and set(each) == {":"}
            if words and (colons or together):
                words[-1] += each
            else:
                words.append(each)
            together = colons
        if not incomplete or words[-1] != incomplete:
            self._before = words[-1][: words[-1].rfind(":") + 1]
        return words[:-1], words[-1]

    def format_completion(self, item: CompletionItem[str]) -> str:
        """The line that the script of the shell reads."""
        return f"{item.type},{item.value.removeprefix(self._before)}"


def install_bash_completion() -> None:
    """Replace click's completion for bash in this process."""
    add_completion_class(BashCompletion)


Completer: TypeAlias = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]
Candidates: TypeAlias = Iterable[tuple[str, str]]
"""Each id with a short help, for shells that show one."""


def complete_from(find: Callable[[Transaction], Candidates]) -> Completer:
    """Complete what `find` reads from the store; nothing if the store cannot be read."""

    def complete(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
        # Imported here: names of commands are completed without the store, which is slow to load.
        from bullpen.cli.command import read_transaction
        from bullpen.core.store.open import database_file

        with suppress(BullpenError, OSError):
            settings = _settings()
            file = database_file(settings)
            if file is None or file.exists():  # opening would create it
                with read_transaction(settings) as tx:
                    return _items(find(tx), incomplete)
        return []

    return complete


def _settings() -> Settings:
    settings, _ = load_lenient(os.environ)
    return replace(settings, busy_seconds=STORE_TIMEOUT_SECONDS)


def _items(candidates: Candidates, incomplete: str) -> list[CompletionItem]:
    return [
        CompletionItem(id_, help=" ".join(word.split())[:HELP_CHARS] or None)
        for id_, word in candidates
        if id_.startswith(incomplete)
    ]


# Each imports what it needs when it is called: the command line starts without.


def _agents(tx: Transaction) -> Candidates:
    from bullpen.core.roster.agents import list_agents

    return ((each.id, each.name) for each in list_agents(tx))


def _teams(tx: Transaction) -> Candidates:
    from bullpen.core.roster.teams import list_teams

    return ((each.id, each.name) for each in list_teams(tx))


def _providers(tx: Transaction) -> Candidates:
    from bullpen.core.roster.providers import BUILT_IN_PROVIDERS, list_custom_providers

    yield from ((name, "") for name in sorted(BUILT_IN_PROVIDERS))
    yield from ((f"custom:{each.id}", each.name) for each in list_custom_providers(tx))


def _custom_providers(tx: Transaction) -> Candidates:
    from bullpen.core.roster.providers import list_custom_providers

    return ((each.id, each.name) for each in list_custom_providers(tx))


def _models(tx: Transaction) -> Candidates:
    from bullpen.core.registry import PROVIDERS
    from bullpen.core.roster.agents import list_agents

    used = {agent.model for agent in list_agents(tx)} - {""}
    suggested = {model for info in PROVIDERS.built_in.values() for model in info.models}
    return ((each, "") for each in sorted(used | suggested))


def _messages(*states: MessageState) -> Callable[[Transaction], Candidates]:
    def find(tx: Transaction) -> Candidates:
        from bullpen.core.inspect.messages import newest_messages
        from bullpen.core.store.scan import Selection

        for state in states or (None,):
            for each in newest_messages(tx, Selection(), state, MAX_CANDIDATES):
                yield each.message_id, f"@{each.agent}: {each.message}"

    return find


def _responses(*states: ResponseState) -> Callable[[Transaction], Candidates]:
    def find(tx: Transaction) -> Candidates:
        from bullpen.core.inspect.responses import ResponseFilter, list_responses

        for state in states or (None,):
            for each in list_responses(tx, ResponseFilter(status=state), None, MAX_CANDIDATES):
                yield str(each.id), f"{each.channel}: {each.message}"

    return find


def _conversations(tx: Transaction) -> Candidates:
    from bullpen.core.inspect.conversations import list_conversations

    return (
        (each.first.message_id, each.first.message) for each in list_conversations(tx, {}, None, 50)
    )


def _schedules(tx: Transaction) -> Candidates:
    from bullpen.core.schedules.model import list_schedules

    return ((each.label or each.id, each.message) for each in list_schedules(tx))


def _keys(tx: Transaction) -> Candidates:
    from bullpen.core.access.keys import list_keys

    return ((each.id, each.name) for each in list_keys(tx))


def _channels(tx: Transaction) -> Candidates:
    from bullpen.core.inspect.channels import client_names, list_channels

    return ((each.channel, each.state) for each in list_channels(tx, client_names()))


def _pairing_codes(tx: Transaction) -> Candidates:
    from bullpen.core.channels.people import list_waiting_pairings

    return ((each.code or "", f"{each.channel}: {each.name}") for each in list_waiting_pairings(tx))


def senders(context: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete the id of a person or a group on the channel that was typed."""

    def find(tx: Transaction) -> Candidates:
        from bullpen.core.channels.people import list_pairings, list_waiting_pairings

        channel = str(context.params.get("channel") or "")
        found = [each for each in list_waiting_pairings(tx) if each.channel == channel]
        found += list_pairings(tx, channel, MAX_CANDIDATES)
        return ((each.id, each.name) for each in found)

    return complete_from(find)(context, _, incomplete)


channels = complete_from(_channels)
pairing_codes = complete_from(_pairing_codes)
agents = complete_from(_agents)
teams = complete_from(_teams)
providers = complete_from(_providers)
custom_providers = complete_from(_custom_providers)
models = complete_from(_models)
messages = complete_from(_messages())
open_messages = complete_from(
    _messages(MessageState.PROCESSING, MessageState.HELD, MessageState.PENDING)
)
dead_messages = complete_from(_messages(MessageState.DEAD))
resumable = complete_from(lambda tx: chain(_messages(MessageState.HELD)(tx), _agents(tx)))
responses = complete_from(_responses())
lost_responses = complete_from(_responses(*UNDELIVERED_STATES))
undelivered_responses = complete_from(_responses(*OPEN_RESPONSE_STATES))
conversation_ids = complete_from(_conversations)
schedules = complete_from(_schedules)
keys = complete_from(_keys)


def settings(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete the name of a setting; those of channels after the first letters of the channel."""
    from bullpen.core.settings.file import SettingsFile

    file = SettingsFile(load_lenient(os.environ)[0].home, os.environ)
    names = (name for name in file.names() if incomplete or "." not in name)
    return _items(((name, "") for name in names), incomplete)
