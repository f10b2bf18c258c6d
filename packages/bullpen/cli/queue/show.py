"""bullpen queue show: all that is known of one message."""

from __future__ import annotations

import json
from dataclasses import asdict

import click

from bullpen.cli import ids
from bullpen.cli.output import as_json, reading, show_json, show_table
from bullpen.cli.queue.lines import tries
from bullpen.cli.queue.reach import check_reached
from bullpen.cli.queue.standing import next_steps, standing
from bullpen.cli.span import span
from bullpen.cli.visible import one_line, visible
from bullpen.core.clock import SECOND
from bullpen.core.outbox.browse import SeenResponse
from bullpen.core.queue.attempts import Attempt
from bullpen.core.queue.browse import Seen
from bullpen.core.queue.life import Life, life
from bullpen.core.schedules.when import written
from bullpen.core.settings import Settings
from bullpen.core.time_zone import owner_zone

RUNS = ("BEGAN", "TOOK", "OUTCOME", "WITH", "COST", "ERROR")
ANSWERS = ("ANSWER", "TO", "STATE", "TEXT")
ERROR = 300
TEXT = 100


@click.command()
@click.argument("message_id", shell_complete=ids.messages)
@as_json
@click.pass_obj
def show(settings: Settings, message_id: str, as_json: bool) -> None:
    """Show one message, archived or not: its text, why it stands as it stands, runs and answers.

    \b
    Example:
      bullpen queue show cli_a1b2c3d4
    """
    with reading(settings) as tx:
        found, now = life(tx, message_id), tx.now
    message = found.message
    check_reached(message.message_id, message.agent, message.from_agent)
    if as_json:
        show_json({**asdict(found), "why": standing(found, now), "next": next_steps(found)})
        return
    zone = owner_zone(settings)
    for name, value in _fields(message, found.archived, zone):
        if value:
            click.echo(f"{name:<13} {value}")
    click.echo(f"\n{visible(message.message)}\n")
    click.echo(visible(standing(found, now)))
    _show_runs(found, now)
    _show_answers(found)
    for line in next_steps(found):
        click.echo(f"Next: {line}", err=True)


def _fields(message: Seen, archived: bool, zone: str) -> list[tuple[str, str]]:
    who = message.sender if message.from_agent is None else f"@{message.from_agent}"
    person = f" ({message.sender_id})" if message.sender_id and not message.from_agent else ""
    tried = tries(message)
    begun = message.conversation_id == message.message_id
    return [
        ("message", message.message_id),
        ("state", f"{message.status}, archived" if archived else message.status),
        ("for", f"@{message.agent}"),
        ("from", one_line(f"{who}{person} on {message.channel}", 200)),
        ("conversation", "" if begun else message.conversation_id),
        ("answers", message.parent_id or ""),
        ("team", message.team_id or ""),
        ("written", written(message.created_at, zone)),
        ("changed", written(message.updated_at, zone)),
        ("due", written(message.available_at, zone) if _later(message) else ""),
        ("deadline", written(message.deadline, zone) if message.deadline else ""),
        ("failed", f"{tried} times" if tried > 1 else "once" if tried else ""),
        ("files", ", ".join(json.loads(message.files or "[]"))),
    ]


def _later(message: Seen) -> bool:
    return message.available_at > message.created_at + SECOND


def _show_runs(found: Life, now: int) -> None:
    if not found.runs:
        return
    click.echo()
    show_table([RUNS, *(_run(each, now) for each in found.runs)], "")
    cost = sum(each.cost for each in found.runs)
    if len(found.runs) > 1 and cost:
        click.echo(f"{len(found.runs)} runs, ${cost:.4f} in all")


def _run(run: Attempt, now: int) -> tuple[str, ...]:
    kind = f" ({run.error_kind})" if run.error_kind else ""
    with_ = " ".join(each for each in (run.provider, run.model) if each)
    return (
        f"{span(now - run.claimed_at)} ago",
        _took(run.finished_at - run.claimed_at),
        f"{run.outcome}{kind}",
        with_,
        f"${run.cost:.4f}" if run.cost else "",
        one_line(run.error or "", ERROR),
    )


def _took(milliseconds: int) -> str:
    return f"{milliseconds} ms" if milliseconds < 2 * SECOND else span(milliseconds)


def _show_answers(found: Life) -> None:
    if found.answers:
        click.echo()
        show_table([ANSWERS, *(_answer(each) for each in found.answers)], "")


def _answer(answer: SeenResponse) -> tuple[str, ...]:
    to = one_line(f"{answer.channel}:{answer.sender_id or answer.sender}", TEXT)
    return str(answer.id), to, answer.status, one_line(answer.message, TEXT)
