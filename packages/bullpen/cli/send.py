"""bullpen send: send a message and print the answers."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from shlex import quote

import click

from bullpen.cli import completion
from bullpen.cli.command import Result, command, json_requested
from bullpen.cli.options import DURATION, Amount
from bullpen.cli.output import echo, print_json
from bullpen.cli.response import CLI
from bullpen.cli.screen import Screen
from bullpen.cli.wait import (
    Wait,
    WaitResult,
    exit_status,
    is_interactive,
    print_wait_result,
    wait_fields,
)
from bullpen.core.answers.attachments import MAX_FILES
from bullpen.core.clock import owner_zone_name, parse_duration, parse_time
from bullpen.core.errors import BadSchedule, BadText, StoreError, TextTooLong
from bullpen.core.events.log import last_event_id
from bullpen.core.events.tail import EventTail
from bullpen.core.inspect.follow import ConversationFollower
from bullpen.core.intake import submit
from bullpen.core.message import NewMessage, Priority
from bullpen.core.queue.conversations import conversation_totals
from bullpen.core.roster.agents import load_address_book
from bullpen.core.roster.teams import get_team
from bullpen.core.routing.address import find_ignored_mention
from bullpen.core.settings import Settings
from bullpen.core.store.base import Store
from bullpen.core.store.open import open_store
from bullpen.core.uploads import SavedUpload, upload_copy

SENDER = "owner"
POLL_SECONDS = 0.02
"""How often a SQLite file is polled: its writers do not know this process."""
WAIT_SECONDS = 300.0

PRIORITIES = {each.name.lower(): each for each in Priority}


@contextmanager
def open_waiting_store(settings: Settings) -> Iterator[Store]:
    """The store for a command that waits; a SQLite file is polled often, which costs little."""
    if settings.url.startswith("sqlite"):  # PostgreSQL notifies every listener
        poll = min(POLL_SECONDS, settings.poll_seconds)
        settings = replace(settings, poll_seconds=poll)
    store = open_store(settings)
    try:
        yield store
    finally:
        store.close()


def enqueue_message(
    store: Store, new: NewMessage, team: str, files: tuple[Path, ...], deadline: str | None
) -> tuple[int, str]:
    """Enqueue the message; returns the last event before it, and its conversation."""
    settings = store.settings
    with store.read() as tx:  # a wrong name fails before files are copied
        position = last_event_id(tx)
        if team:
            get_team(tx, team)
    uploads: list[SavedUpload] = []
    try:
        for file in files:
            uploads.append(upload_copy(file, settings, store.ids))
        with store.write() as tx:
            until = None if deadline is None else _parse_deadline(deadline, tx.now, settings)
            paths = tuple(str(each.path) for each in uploads)
            receipts = submit(tx, replace(new, files=paths, deadline=until))
    except BaseException:
        for each in uploads:
            each.path.unlink(missing_ok=True)
        raise
    return position, receipts[0].message_id


def _parse_deadline(text: str, now: int, settings: Settings) -> int:
    try:
        return now + parse_duration(text)
    except BadSchedule:
        return parse_time(text, owner_zone_name(settings))


def wait_for_answers(
    follower: ConversationFollower, screen: Screen, timeout: float | None, *, asks: bool = True
) -> WaitResult:
    """Wait for the answers; without a timeout 300 s, and at a terminal without a limit."""
    if timeout is None:
        timeout = math.inf if is_interactive() else WAIT_SECONDS
    try:
        return Wait(follower, screen, time.monotonic() + timeout, asks).wait()
    except (StoreError, OSError):
        # The caller reports the error.
        screen.note(f"{follower.conversation_id} was sent and stays queued.")
        raise


@command(
    people_only="send messages as a person",
    json_help="Print one JSON document at the end.",
)
@click.argument("words", metavar="[TEXT]...", nargs=-1)
@click.option(
    "--agent",
    metavar="AGENT",
    default="",
    show_default="the setting default_agent",
    shell_complete=completion.agents,
    help="Recipient if the text has no @name.",
)
@click.option(
    "--team",
    metavar="TEAM",
    default="",
    shell_complete=completion.teams,
    help="Send to a team: its leader gets the message.",
)
@click.option(
    "--file",
    "files",
    metavar="PATH",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Attach a file. Repeatable.",
)
@click.option(
    "--priority",
    type=click.Choice(list(PRIORITIES)),
    default="normal",
    show_default=True,
    help="Priority, for agents whose queue is ordered by it.",
)
@click.option("--delay", type=DURATION, help="Start no earlier than DURATION from now (20m).")
@click.option(
    "--deadline",
    metavar="DURATION|TIME",
    help="Expire after a duration (2h) or at a time (2026-12-24T18:00).",
)
@click.option("--no-wait", is_flag=True, help="Print the message's id and do not wait.")
@click.option(
    "--timeout",
    type=Amount(),
    show_default="300, and no limit at a terminal",
    help="Wait at most N seconds.",
)
@click.option("--quiet", "-q", is_flag=True, help="Print answers only, no progress.")
def send(
    settings: Settings,
    /,
    words: tuple[str, ...],
    agent: str,
    team: str,
    files: tuple[Path, ...],
    priority: str,
    delay: int | None,
    deadline: str | None,
    no_wait: bool,
    timeout: float | None,
    quiet: bool,
) -> Result:
    """Send a message and wait for the answers.

    The message is TEXT, or standard input. A name at its start (@coder, @dev) or a tag
    ([@coder: ...], [#dev: ...]) addresses an agent, a team or a room; without one it goes to the
    default agent. The command also waits for the agents to which the work is handed on.

    Answers are printed to standard output, progress to standard error. Ctrl-C asks whether to stop
    the work. Quote the message if the shell would change it.

    The exit status is 0 if everything was answered, 1 if something failed, and 75 if it is not
    finished.

    \b
    Examples:
      bullpen send hello
      bullpen send @coder fix the login --file screenshot.png
      echo "hello" | bullpen send --agent assistant
      bullpen send "@dev plan the release" --priority high --no-wait
    """
    if agent and team:
        raise click.UsageError("give --agent or --team, not both")
    if len(files) > MAX_FILES:
        raise click.UsageError(f"{len(files)} files are more than the limit of {MAX_FILES}")
    new = NewMessage(
        agent=agent or team,
        message=_text(settings, words, bool(files)),
        channel=CLI,
        sender=SENDER,
        priority=PRIORITIES[priority],
        delay=delay or 0,
    )
    with open_waiting_store(settings) as store:
        position, conversation = enqueue_message(store, new, team, files, deadline)
        if not quiet:
            _print_ignored_mention(store, new)
        if no_wait:
            return Result({"message_id": conversation}, conversation)
        screen = Screen(quiet, silent=json_requested())
        follower = ConversationFollower(store, conversation, CLI, EventTail(store, position))
        result = wait_for_answers(follower, screen, timeout)
        if json_requested():
            with store.read() as tx:
                cost = conversation_totals(tx, conversation).cost
            print_json(wait_fields(conversation, result, cost))
    print_wait_result(conversation, result, screen)
    sys.exit(exit_status(result))


def _print_ignored_mention(store: Store, new: NewMessage) -> None:
    """Say that the default agent got the message although its text names another recipient."""
    if new.agent or "@" not in new.message:
        return
    with store.read() as tx:
        mention = find_ignored_mention(new.message, load_address_book(tx))
    default = store.settings.default_agent
    if mention is not None and mention.casefold() != default.casefold():
        echo(
            f"Note: sent to @{default}, the default agent: the message does not begin with "
            f"@{mention}.\n  To address @{mention}: bullpen send {quote(f'@{mention} ...')}",
            err=True,
        )


def _text(settings: Settings, words: tuple[str, ...], files: bool) -> str:
    """The arguments, or standard input."""
    if words not in ((), ("-",)):
        return " ".join(words)
    if sys.stdin.isatty():
        if not words and files:
            return ""
        echo("Write your message. Ctrl-D on an empty line sends it.", err=True)
    data = sys.stdin.buffer.read(settings.message_bytes + 1)
    if len(data) > settings.message_bytes:
        raise TextTooLong(f"standard input has more than {settings.message_bytes} bytes")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise BadText(f"standard input is not UTF-8 at byte {error.start}") from None
