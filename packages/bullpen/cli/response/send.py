"""bullpen response send: write to a person."""

from __future__ import annotations

import os

import click

from bullpen.cli.output import as_json, print_result, write_transaction
from bullpen.core.answers.files import RefusedFile, resolve_allowed
from bullpen.core.errors import BadText
from bullpen.core.outbox.proactive import send_to_person
from bullpen.core.outcome import Answer
from bullpen.core.settings import Settings


@click.command()
@click.argument("text")
@click.option("--channel", required=True, help="Where the person is.")
@click.option("--to", "sender_id", required=True, help="The person's id on that channel.")
@click.option("--file", "files", multiple=True, help="A file that goes along.")
@as_json
@click.pass_obj
def send(
    settings: Settings,
    text: str,
    channel: str,
    sender_id: str,
    files: tuple[str, ...],
    as_json: bool,
) -> None:
    """Send a person a message that answers nothing.

    \b
    Example:
      bullpen response send --channel telegram --to 4711 "the report is ready"
    """
    agent = os.environ.get("BULLPEN_AGENT", "")
    roots = (settings.workspace / agent, settings.files) if agent else (settings.files,)
    found = [resolve_allowed(file, roots) for file in files]
    for each in found:
        if isinstance(each, RefusedFile):
            raise BadText(str(each), hint="Copy it to a place from where files may leave.")
    with write_transaction(settings) as tx:
        message_id = send_to_person(
            tx,
            Answer(message=text, files=tuple(str(each) for each in found)),
            channel=channel,
            sender=sender_id,
            sender_id=sender_id,
            agent=agent,
        )
    print_result(as_json, {"message_id": message_id}, f"{message_id} is on its way")
