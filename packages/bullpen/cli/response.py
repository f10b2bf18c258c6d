"""bullpen response: what goes out to people."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from contextlib import suppress

import click

from bullpen.cli.acting import only_people
from bullpen.cli.output import MOST, as_json, how_many, reading, show_json, show_table, writing
from bullpen.core.answers.files import Refused, allowed
from bullpen.core.errors import BadText, IllegalMove
from bullpen.core.message import UNSENT
from bullpen.core.outbox.browse import SeenResponse, WantedResponses, browse_responses, to_send
from bullpen.core.outbox.person import mark_read
from bullpen.core.outbox.proactive import write_to
from bullpen.core.outcome import Answer
from bullpen.core.schedules.when import written
from bullpen.core.settings import Settings
from bullpen.core.states import ResponseState
from bullpen.core.time_zone import owner_zone

CLI = "cli"
"""The channel of whoever sits here; the owner is told things there unless the settings say else."""

SHOWN = 60
STATES = click.Choice([each.value for each in ResponseState])


@click.group()
def response() -> None:
    """Read what agents wrote to you, look at what goes out, write to people.

    \b
    Examples:
      bullpen response read
      bullpen response send --channel telegram --to 4711 "the report is ready"
    """


@response.command()
@click.option(
    "--channel",
    type=click.Choice(sorted(UNSENT)),
    default=CLI,
    show_default=True,
    help="Where it lies until somebody reads it.",
)
@as_json
@click.pass_obj
def read(settings: Settings, channel: str, as_json: bool) -> None:
    """Show what waits to be read, the oldest first; afterwards it has been read.

    It is what came to you unasked, or after you had stopped waiting: notices of Bullpen's, answers
    of schedules, what heartbeats had to say.

    \b
    Example:
      bullpen response read
    """
    only_people("read what is for people")
    with reading(settings) as tx:
        found = to_send(tx, channel, 0, MOST)
    if as_json:
        show_json(found)
    elif found:
        _show(found, owner_zone(settings))
    else:
        click.echo("There is nothing that you have not read.")
    with writing(settings) as tx:  # now that it was shown
        for each in found:
            with suppress(IllegalMove):  # somebody else was quicker
                mark_read(tx, each.id)
    if len(found) == MOST:
        click.echo("There is more. Next: bullpen response read", err=True)


@response.command(name="list")
@click.option("--channel", help="Only what goes to this channel.")
@click.option("--agent", help="Only what this agent said.")
@click.option("--state", type=STATES, help="Only what is in this state.")
@how_many()
@as_json
@click.pass_obj
def list_(
    settings: Settings,
    channel: str | None,
    agent: str | None,
    state: str | None,
    limit: int,
    as_json: bool,
) -> None:
    """List what goes out and what went out within the last day, the newest first.

    \b
    Example:
      bullpen response list --channel telegram --state dead
    """
    wanted = WantedResponses(
        status=None if state is None else ResponseState(state), channel=channel, agent=agent
    )
    with reading(settings) as tx:
        found = browse_responses(tx, wanted, None, limit)
    if as_json:
        show_json(found)
        return
    here = owner_zone(settings)
    rows: list[tuple[str, ...]] = [("RESPONSE", "WHEN", "FROM", "TO", "STATE", "TEXT", "WHY")]
    rows += [_row(each, here) for each in found]
    show_table(rows, "There is none like that.")


@response.command()
@click.argument("text")
@click.option("--channel", required=True, help="Where the person is.")
@click.option("--to", "sender_id", required=True, help="The person's id on that channel.")
@click.option("--file", "files", multiple=True, help="A file that goes along.")
@click.pass_obj
def send(
    settings: Settings, text: str, channel: str, sender_id: str, files: tuple[str, ...]
) -> None:
    """Send a person a message that answers nothing.

    \b
    Example:
      bullpen response send --channel telegram --to 4711 "the report is ready"
    """
    agent = os.environ.get("BULLPEN_AGENT", "")
    roots = (settings.workspace / agent, settings.files) if agent else (settings.files,)
    found = [allowed(file, roots) for file in files]
    for each in found:
        if isinstance(each, Refused):
            raise BadText(str(each), hint="Copy it to a place from where files may leave.")
    with writing(settings) as tx:
        message_id = write_to(
            tx,
            Answer(message=text, files=tuple(str(each) for each in found)),
            channel=channel,
            sender=sender_id,
            sender_id=sender_id,
            agent=agent,
        )
    click.echo(f"{message_id} is on its way")


def _show(found: Sequence[SeenResponse], here: str) -> None:
    for each in found:
        files = [f"[file: {file}]" for file in json.loads(each.files or "[]")]
        text = "\n".join([*([each.message] if each.message else []), *files])
        click.echo(f"{written(each.created_at, here)}  {_author(each)}: {text}")


def _author(seen: SeenResponse) -> str:
    return f"@{seen.agent}" if seen.agent else "Bullpen"


def _row(seen: SeenResponse, here: str) -> tuple[str, ...]:
    text = " ".join(seen.message.split())
    return (
        str(seen.id),
        written(seen.created_at, here),
        _author(seen),
        f"{seen.channel}:{seen.sender_id or seen.sender}",
        seen.status,
        text if len(text) <= SHOWN else f"{text[:SHOWN]}…",
        seen.last_error or "",
    )
