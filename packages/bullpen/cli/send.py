"""bullpen send: a message to an agent or a team, and what is answered."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from bullpen.cli import ids
from bullpen.cli.acting import require_person
from bullpen.cli.asking import SENDER, enqueue_message, open_waiting_store, wait_for_answers
from bullpen.cli.duration import DURATION
from bullpen.cli.output import print_json
from bullpen.cli.response import CLI
from bullpen.cli.screen import Screen
from bullpen.cli.waited import exit_status, print_wait_result, wait_fields
from bullpen.core.answers.files import MAX_FILES as MOST_FILES
from bullpen.core.conversations.following import ConversationFollower
from bullpen.core.conversations.newest import conversation_cost
from bullpen.core.errors import BadText, TextTooLong
from bullpen.core.events.tail import EventTail
from bullpen.core.message import NewMessage, Priority
from bullpen.core.settings import Settings

PRIORITIES = {each.name.lower(): each for each in Priority}


@click.command()
@click.argument("text", required=False)
@click.option(
    "--agent",
    default="",
    shell_complete=ids.agents,
    help="Who gets what addresses nobody; else the setting default_agent.",
)
@click.option(
    "--team", default="", shell_complete=ids.teams, help="Which team gets it: its leader."
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
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document, at the end.")
@click.pass_obj
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
    as_json: bool,
) -> None:
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
    require_person("send messages in a person's name")
    if agent and team:
        raise click.UsageError("Give --agent or --team, not both.")
    if len(files) > MOST_FILES:
        raise click.UsageError(f"{len(files)} files are more than {MOST_FILES}.")
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
            click.echo(conversation) if not as_json else print_json({"message_id": conversation})
            return
        following = ConversationFollower(store, conversation, CLI, EventTail(store, position))
        waited = wait_for_answers(following, Screen(quiet, as_json), timeout)
        if as_json:
            with store.read() as tx:
                print_json(wait_fields(conversation, waited, conversation_cost(tx, conversation)))
    print_wait_result(conversation, waited, Screen(quiet, as_json))
    sys.exit(exit_status(waited))


def _text(settings: Settings, text: str | None, files: bool) -> str:
    """What was given, or what comes on standard input."""
    if text is not None and text != "-":
        return text
    if sys.stdin.isatty():
        if text is None and files:
            return ""
        click.echo("Write your message; Ctrl-D on a line of its own sends it.", err=True)
    data = sys.stdin.buffer.read(settings.message_bytes + 1)
    if len(data) > settings.message_bytes:
        raise TextTooLong(f"standard input has more than {settings.message_bytes} bytes")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise BadText(f"standard input is not UTF-8 at byte {error.start}") from None
