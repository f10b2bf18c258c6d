"""bullpen channel setup: ask for the settings of an account, check them live, and start it."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict

import click

from bullpen.cli import completion
from bullpen.cli.channel_check import Finding, check_account, write_findings
from bullpen.cli.channel_questions import Setup, ask, ask_owner, assigned, choose_port
from bullpen.cli.command import (
    Result,
    command,
    json_requested,
    print_notes,
    read_transaction,
    write_transaction,
)
from bullpen.cli.errors import print_error
from bullpen.cli.output import echo, style
from bullpen.cli.setup_prompts import DefaultPrompter, TerminalPrompter
from bullpen.cli.up import failure_reason, wait_for_services
from bullpen.core.channels.chats import list_chats
from bullpen.core.channels.health import Activity, lock_health, report_activity
from bullpen.core.channels.people import check_person_id, find_owner, how_to_pair
from bullpen.core.errors import BadSetting, BullpenError, ServiceFailed
from bullpen.core.inspect.channels import check_client
from bullpen.core.settings import Settings
from bullpen.core.settings.file import SettingsFile, Value
from bullpen.core.settings.parse import load_lenient
from bullpen.ops.doctor.channels import find_shared
from bullpen.ops.services.add import add_new_services
from bullpen.ops.services.launch import STOP_MARGIN_SECONDS, start_lock
from bullpen.ops.services.supervisor import CORE_SERVICES, DOWN_STATES, Supervisor

AGAIN, SAVE, CANCEL = FAILURE_CHOICES = ("again", "save", "cancel")
AFTER_FAILURE = "Enter the settings again, save them anyway, or cancel?"
START_SECONDS = 60.0
STOP_SECONDS = 60.0


@command(name="setup", people_only="set up channels")
@click.argument("name", shell_complete=completion.channels)
@click.option(
    "--set",
    "assignments",
    metavar="NAME VALUE",
    nargs=2,
    multiple=True,
    help="Setting of the channel; the value - reads standard input. Repeatable.",
)
@click.option("--owner", metavar="ID", default="", help="Your id on the channel, for notices.")
@click.option("--probe", is_flag=True, help="Test what the platform supports, in the owner's chat.")
@click.option("--no-check", is_flag=True, help="Save the settings without a connection.")
@click.option("--no-start", is_flag=True, help="Do not start the channel.")
@click.option(
    "--no-input", "--yes", "-y", "no_input", is_flag=True, help="Use options without questions."
)
def setup(
    settings: Settings,
    name: str,
    assignments: tuple[tuple[str, str], ...],
    owner: str,
    probe: bool,
    no_check: bool,
    no_start: bool,
    no_input: bool,
) -> Result:
    """Set up a channel, or a further account of it.

    Asks for the settings that the platform needs, connects to check them, saves them in
    settings.toml and starts the channel. If the check fails, nothing is saved. NAME is a channel or
    an account such as slack-sage. A secret is not accepted as an argument: the command asks for it,
    or reads it from standard input with the value `-`, one line for each.

    \b
    Examples:
      bullpen channel setup telegram
      bullpen channel setup slack-sage --owner U0123456789
      echo "$TOKEN" | bullpen channel setup telegram --set bot_token - --no-input
      bullpen channel setup slack --probe
    """
    info = check_client(name)
    if owner:
        check_person_id(name, owner)
    asks = not no_input and sys.stdin.isatty() and sys.stdout.isatty() and not json_requested()
    work = Setup(settings, info, TerminalPrompter() if asks else DefaultPrompter())
    work.new = assigned(work, assignments)
    with _cancelled(work):
        if asks:
            ask(work, only_missing=bool(assignments))
        choose_port(work)
        _require_complete(work)
        with _stopped(work, needed=probe or not no_check) as stopped:
            findings = [] if no_check else _check(work)
            if _failed(findings) and not _save_anyway(work, findings):
                return _not_saved(work, findings)
            changed, restart = _save(work, owner or ask_owner(work))
            probed = [each for each in _probe(work) if each not in findings] if probe else []
            _print_findings(work, probed)
    started = False if no_start else _start(work, restart=not stopped)
    return Result(
        {
            "channel": name,
            "findings": [asdict(each) for each in (*findings, *probed)],
            "changed": changed,
            "started": started,
            "restart": restart,
        },
        [_conclusion(work, changed, started=started)],
        hints=list(_next_steps(work, started, restart)),
        status=1 if _failed(probed) else 0,
    )


@contextmanager
def _cancelled(work: Setup) -> Iterator[None]:
    """Say what Ctrl-C at a question means."""
    try:
        yield
    except (click.Abort, KeyboardInterrupt):
        if not work.prompter.there:
            raise
        echo("\nCancelled. Nothing was saved.", err=True)
        sys.exit(1)


def _require_complete(work: Setup) -> None:
    missing = work.info.missing(work.values)
    if not missing:
        return
    setting = work.info.setting(missing[0])
    value = "-" if setting is not None and setting.secret else "VALUE"
    raise BadSetting(
        f"{work.name}.{missing[0]} is not set",
        hint=f"Add --set {missing[0]} {value}, or run the command at a terminal.",
    )


def _check(work: Setup) -> list[Finding]:
    """Check the settings: first what needs no connection, then with the platform."""
    if shared := find_shared(work.settings, work.name, work.values):
        what, other = shared
        text, hint = f"{other} has the same {what}", f"Each account needs a {what} of its own."
        findings = [Finding(ok=False, code="same_bot", text=text, hint=hint)]
    else:
        if work.prompter.there:
            work.prompter.say(f"Connecting to {work.info.platform} ...")
        findings = check_account(work.settings, work.name, work.values)
    _print_findings(work, findings)
    return findings


def _save_anyway(work: Setup, findings: list[Finding]) -> bool:
    """Let a person enter the settings again, until the check passes or they save or cancel."""
    while _failed(findings):
        if not work.prompter.there:
            return False
        choice = work.prompter.choose(AFTER_FAILURE, FAILURE_CHOICES, AGAIN)
        if choice != AGAIN:
            return choice == SAVE
        ask(work)
        choose_port(work)
        findings[:] = _check(work)
    return True


def _save(work: Setup, owner: str) -> tuple[list[str], list[str]]:
    """Write the settings; returns the names of the changed ones, and the services to restart."""
    values: dict[str, Value | None] = {f"{work.name}.{each}": work.new[each] for each in work.new}
    if owner:
        values.update(owner_channel=work.name, owner_id=owner)
    file = SettingsFile(work.settings.home, {}, here=True)
    with file.locked():
        changes = file.check(values)
        file.write(changes)
    work.settings, _ = load_lenient(os.environ)
    told = "owner_channel" in changes or "owner_id" in changes
    return sorted(changes), sorted(CORE_SERVICES) if told else []


@contextmanager
def _stopped(work: Setup, *, needed: bool) -> Iterator[bool]:
    """Stop the client meanwhile: two processes with one bot take each other's messages.

    Yields whether it ran; at the end it starts with the settings that are saved by then.
    """
    supervisor = Supervisor(work.settings)
    runs = needed and supervisor.alive() and _runs(supervisor, work.name)
    if runs:
        supervisor.stop(work.name, STOP_SECONDS)
    try:
        yield runs
    finally:
        if runs:
            supervisor.start_nowait(work.name)


def _runs(supervisor: Supervisor, name: str) -> bool:
    return any(
        each["name"] == name and each["state"] not in DOWN_STATES for each in supervisor.services()
    )


def _start(work: Setup, *, restart: bool) -> bool:
    """Start or restart the service of the account; false if Bullpen does not run."""
    supervisor = Supervisor(work.settings)
    if not supervisor.alive():
        return False
    with start_lock(work.settings):
        if work.name not in add_new_services(work.settings, supervisor) and restart:
            seconds = work.settings.grace_seconds + STOP_MARGIN_SECONDS
            with suppress(ServiceFailed):
                supervisor.restart(work.name, seconds, START_SECONDS)
        failed = wait_for_services(work.settings, supervisor)
    if work.name in failed:
        print_notes(failure_reason(work.settings, work.name))
    return work.name not in failed


def _probe(work: Setup) -> list[Finding]:
    """Test what the platform supports in the owner's chat, and keep the answers."""
    chat = _owner_chat(work)
    if not chat:
        text = f"no chat of the owner is known on {work.name}"
        hint = f"Run: bullpen config set owner_channel {work.name} owner_id ID"
        return [Finding(ok=False, code="no_owner", text=text, hint=hint)]
    findings = check_account(work.settings, work.name, {}, probe=chat)
    with write_transaction(work.settings) as tx:
        lock_health(tx, work.name)
        kept = write_findings(findings)
        report_activity(tx, work.name, Activity(findings=kept, last_probe_at=tx.now))
    return findings


def _owner_chat(work: Setup) -> str:
    """The owner's direct chat with the bot; their id if they have not written yet."""
    settings = work.settings
    if settings.owner_channel != work.name or not settings.owner_id:
        return ""
    with write_transaction(settings) as tx:
        for each in list_chats(tx, work.name):
            if each.direct and each.person == settings.owner_id:
                return each.chat
    return settings.owner_id


def _failed(findings: Sequence[Finding]) -> bool:
    return any(not each.ok for each in findings)


def _print_findings(work: Setup, findings: Sequence[Finding]) -> None:
    """Print a line for each finding to standard error, and what to do about a failed one."""
    # Hints are written for an account that runs; here, its settings are asked for.
    command = re.compile(rf"(?:run )?`bullpen config set {re.escape(work.name)}\.(\w+)[^`]*`")
    for each in findings:
        mark = style("ok", fg="green") if each.ok else style("failed", fg="red")
        echo(f"  {mark}  {each.text}", err=True)
        if each.hint:
            hint = command.sub(r"set `\1`", each.hint)
            echo(f"      {hint}", err=True)


def _not_saved(work: Setup, findings: Sequence[Finding]) -> Result:
    wrong = next(each for each in findings if not each.ok)
    if not json_requested():
        text = f"{work.name} was not set up, because a check failed; nothing was saved"
        print_error(text, "To save the settings without a check, add --no-check.", wrong.code)
    document = {
        "channel": work.name,
        "findings": [asdict(each) for each in findings],
        "changed": [],
        "started": False,
        "restart": [],
    }
    return Result(document, status=1)


def _conclusion(work: Setup, changed: Sequence[str], *, started: bool) -> str:
    saved = f"Saved {', '.join(changed)}." if changed else "The settings are unchanged."
    return f"{saved} Started {work.name}." if started else saved


def _has_owner(work: Setup) -> bool:
    """Whether a person can get the message of `bullpen channel test`."""
    with suppress(BullpenError), read_transaction(work.settings) as tx:
        return bool(find_owner(tx, work.name))
    return False


def _next_steps(work: Setup, started: bool, restart: Sequence[str]) -> Iterator[str]:
    if not started and not Supervisor(work.settings).alive():
        yield "Next: bullpen up"
    if restart:
        yield f"The owner's address takes effect after: bullpen restart {' '.join(restart)}"
    if _has_owner(work):
        yield f"To test it: bullpen channel test {work.name}"
    else:
        yield how_to_pair(work.settings, work.name)
