"""bullpen queue show: all that is known of one message."""

from __future__ import annotations

import json
from dataclasses import asdict

import click

from bullpen.cli import ids
from bullpen.cli.output import as_json, print_json, print_table, read_transaction
from bullpen.cli.queue.lines import count_attempts
from bullpen.cli.queue.reach import require_visible
from bullpen.cli.queue.standing import explain_message, next_steps
from bullpen.cli.span import format_duration
from bullpen.cli.visible import one_line, sanitize
from bullpen.core.clock import SECOND
from bullpen.core.outbox.browse import ResponseRecord
from bullpen.core.queue.attempts import Attempt
from bullpen.core.queue.browse import MessageRecord
from bullpen.core.queue.life import MessageDetail, get_message_detail
from bullpen.core.schedules.when import format_time
from bullpen.core.settings import Settings
from bullpen.core.time_zone import owner_zone_name

RUNS_HEADING = ("BEGAN", "TOOK", "OUTCOME", "WITH", "COST", "ERROR")
ANSWERS_HEADING = ("ANSWER", "TO", "STATE", "TEXT")
ERROR_CHARS = 300
TEXT_CHARS = 100


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
    with read_transaction(settings) as tx:
        found, now = get_message_detail(tx, message_id), tx.now
    message = found.message
    require_visible(message.message_id, message.agent, message.from_agent)
    if as_json:
        print_json({**asdict(found), "why": explain_message(found, now), "next": next_steps(found)})
        return
    zone = owner_zone_name(settings)
    for name, value in _fields(message, found.archived, zone):
        if value:
            click.echo(f"{name:<13} {value}")
    click.echo(f"\n{sanitize(message.message)}\n")
    click.echo(sanitize(explain_message(found, now)))
    _show_runs(found, now)
    _show_answers(found)
    for line in next_steps(found):
        click.echo(f"Next: {line}", err=True)


def _fields(message: MessageRecord, archived: bool, zone: str) -> list[tuple[str, str]]:
    who = message.sender if message.from_agent is None else f"@{message.from_agent}"
    person = f" ({message.sender_id})" if message.sender_id and not message.from_agent else ""
    tried = count_attempts(message)
    begun = message.conversation_id == message.message_id
    return [
        ("message", message.message_id),
        ("state", f"{message.status}, archived" if archived else message.status),
        ("for", f"@{message.agent}"),
        ("from", one_line(f"{who}{person} on {message.channel}", 200)),
        ("conversation", "" if begun else message.conversation_id),
        ("answers", message.parent_id or ""),
        ("team", message.team_id or ""),
        ("written", format_time(message.created_at, zone)),
        ("changed", format_time(message.updated_at, zone)),
        ("due", format_time(message.available_at, zone) if _later(message) else ""),
        ("deadline", format_time(message.deadline, zone) if message.deadline else ""),
        ("failed", f"{tried} times" if tried > 1 else "once" if tried else ""),
        ("files", ", ".join(json.loads(message.files or "[]"))),
    ]


def _later(message: MessageRecord) -> bool:
    return message.available_at > message.created_at + SECOND


def _show_runs(found: MessageDetail, now: int) -> None:
    if not found.runs:
        return
    click.echo()
    print_table([RUNS_HEADING, *(_run(each, now) for each in found.runs)], "")
    cost = sum(each.cost for each in found.runs)
    if len(found.runs) > 1 and cost:
        click.echo(f"{len(found.runs)} runs, ${cost:.4f} in all")


def _run(run: Attempt, now: int) -> tuple[str, ...]:
    kind = f" ({run.error_kind})" if run.error_kind else ""
    with_ = " ".join(each for each in (run.provider, run.model) if each)
    return (
        f"{format_duration(now - run.claimed_at)} ago",
        _took(run.finished_at - run.claimed_at),
        f"{run.outcome}{kind}",
        with_,
        f"${run.cost:.4f}" if run.cost else "",
        one_line(run.error or "", ERROR_CHARS),
    )


def _took(milliseconds: int) -> str:
    return f"{milliseconds} ms" if milliseconds < 2 * SECOND else format_duration(milliseconds)


def _show_answers(found: MessageDetail) -> None:
    if found.answers:
        click.echo()
        print_table([ANSWERS_HEADING, *(_answer(each) for each in found.answers)], "")


def _answer(answer: ResponseRecord) -> tuple[str, ...]:
    to = one_line(f"{answer.channel}:{answer.sender_id or answer.sender}", TEXT_CHARS)
    return str(answer.id), to, answer.status, one_line(answer.message, TEXT_CHARS)
