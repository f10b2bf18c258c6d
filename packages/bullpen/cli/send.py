"""bullpen send: send a message and print the answer."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import click

from bullpen.cli import completion
from bullpen.cli.command import Result, command, json_requested
from bullpen.cli.options import DURATION
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
from bullpen.core.roster.teams import get_team
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
    """The store for a command that waits: a SQLite file is polled often, which costs nothing."""
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
    """Enqueue the message; returns the position in the events before it, and its conversation."""
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
    """Wait for the answers; with no timeout, without end at a terminal and else 300 s."""
    if timeout is None:
        timeout = math.inf if is_interactive() else WAIT_SECONDS
    try:
        return Wait(follower, screen, time.monotonic() + timeout, asks).wait()
    except (StoreError, OSError):
        # The caller reports the error.
        screen.note(f"{follower.conversation_id} is in the queue all the same.")
        raise


@command(
    people_only="send messages in a person's name",
    json_help="Print one JSON document, at the end.",
)
@click.argument("text", required=False)
@click.option(
    "--agent",
    default="",
    shell_complete=completion.agents,
    help="Who gets what addresses nobody; else the setting default_agent.",
)
@click.option(
    "--team", default="", shell_complete=completion.teams, help="Which team gets it: its leader."
)
@click.option(
    "--file",
    "files",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A file that goes along; as often as you like.",
)
@click.option(
    "--priority",
    type=click.Choice(list(PRIORITIES)),
    default="normal",
    show_default=True,
    help="How soon, for agents whose order is priority.",
)
@click.option("--delay", type=DURATION, help="Not before so long, as 20m.")
@click.option("--deadline", help="Of no use after so long, as 2h, or after 2026-12-24T18:00.")
@click.option("--no-wait", is_flag=True, help="Print the message's id and do not wait.")
@click.option(
    "--timeout",
    type=click.FloatRange(0),
    help="Seconds to wait; if not said, 300, and at a terminal as long as it takes.",
)
@click.option("--quiet", "-q", is_flag=True, help="Print answers alone, and no progress.")
def send(
    settings: Settings,
    /,
    text: str | None,
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
    """Send TEXT, or what comes on standard input, and wait for the answers.

    It goes to the default agent, or to whom it addresses: @coder, @team, [@coder: ...],
    [#dev: ...]. What agents hand on to each other is waited for as well. Answers go to standard
    output, what is done meanwhile to standard error. Ctrl-C asks whether the work is to be stopped.

    The exit status is 0 when it was answered, 1 when something of it failed, 75 when it is still
    under way or waits for somebody.

    \b
    Examples:
      bullpen send "hello"
      bullpen send "@coder fix the login" --file screenshot.png
      echo "hello" | bullpen send --agent assistant
      bullpen send "@dev plan the release" --priority high --no-wait
    """
    if agent and team:
        raise click.UsageError("Give --agent or --team, not both.")
    if len(files) > MAX_FILES:
        raise click.UsageError(f"{len(files)} files are more than {MAX_FILES}.")
    new = NewMessage(
        agent=agent or team,
        message=_text(settings, text, bool(files)),
        channel=CLI,
        sender=SENDER,
        priority=PRIORITIES[priority],
        delay=delay or 0,
    )
    with open_waiting_store(settings) as store:
        position, conversation = enqueue_message(store, new, team, files, deadline)
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


def _text(settings: Settings, text: str | None, files: bool) -> str:
    """The argument, or what standard input has."""
    if text is not None and text != "-":
        return text
    if sys.stdin.isatty():
        if text is None and files:
            return ""
        echo("Write your message; Ctrl-D on a line of its own sends it.", err=True)
    data = sys.stdin.buffer.read(settings.message_bytes + 1)
    if len(data) > settings.message_bytes:
        raise TextTooLong(f"standard input has more than {settings.message_bytes} bytes")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise BadText(f"standard input is not UTF-8 at byte {error.start}") from None
