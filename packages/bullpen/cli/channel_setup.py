"""bullpen channel setup: ask for the settings of an account, check them live, and start it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field

import click

from bullpen.cli import completion
from bullpen.cli.channel_check import Finding, check_account, write_findings
from bullpen.cli.command import (
    Result,
    command,
    json_requested,
    print_notes,
    read_transaction,
    write_transaction,
)
from bullpen.cli.config_set import parse_assignments
from bullpen.cli.errors import print_error
from bullpen.cli.output import echo, style
from bullpen.cli.setup_prompts import DefaultPrompter, Prompter, TerminalPrompter
from bullpen.cli.up import failure_reason, wait_for_services
from bullpen.core.channels.chats import list_chats
from bullpen.core.channels.health import Activity, lock_health, report_activity
from bullpen.core.channels.people import find_owner
from bullpen.core.errors import BadSetting, BullpenError, ServiceFailed
from bullpen.core.inspect.channels import check_client
from bullpen.core.message import PULL_CHANNELS
from bullpen.core.registry import CHANNELS, ChannelInfo, ChannelSetting
from bullpen.core.settings import Settings
from bullpen.core.settings.accounts import parse_account_setting
from bullpen.core.settings.file import SettingsFile, Value
from bullpen.core.settings.parse import load_lenient
from bullpen.core.text import MASK
from bullpen.ops.services.add import add_new_services
from bullpen.ops.services.launch import STOP_MARGIN_SECONDS, start_lock
from bullpen.ops.services.supervisor import CORE_SERVICES, DOWN_STATES, Supervisor

START_SECONDS = 60.0
STOP_SECONDS = 60.0


@dataclass(slots=True)
class Setup:
    """An account that is being set up."""

    settings: Settings
    info: ChannelInfo
    prompter: Prompter
    new: dict[str, str] = field(default_factory=dict)
    """New values by the short name, such as `bot_token`."""

    @property
    def name(self) -> str:
        """The name of the account."""
        return self.info.name

    @property
    def values(self) -> dict[str, str]:
        """The present values with the new ones, and the defaults."""
        return {**self.settings.account(self.name), **self.new}


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
    asks = not no_input and sys.stdin.isatty() and sys.stdout.isatty() and not json_requested()
    work = Setup(settings, info, TerminalPrompter() if asks else DefaultPrompter())
    work.new = _assigned(work, assignments)
    if asks and not assignments:
        _ask(work)
    _choose_port(work)
    if missing := info.missing(work.values):
        setting = info.setting(missing[0])
        value = "-" if setting is not None and setting.secret else "VALUE"
        raise BadSetting(
            f"{name}.{missing[0]} is not set",
            hint=f"Add --set {missing[0]} {value}, or run the command at a terminal.",
        )
    with _stopped(work, needed=probe or not no_check) as stopped:
        findings = [] if no_check else check_account(settings, name, work.values)
        _print_findings(findings)
        if _failed(findings) and not (asks and work.prompter.yes("Save anyway?", default=False)):
            return _not_saved(work, findings)
        changed, restart = _save(work, owner or _ask_owner(work))
        probed = [each for each in _probe(work) if each not in findings] if probe else []
        _print_findings(probed)
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


def _assigned(work: Setup, assignments: Sequence[tuple[str, str]]) -> dict[str, str]:
    """The values of --set; a secret is read from standard input."""
    words = [f"{work.name}.{name}={value}" for name, value in assignments]
    file = SettingsFile(work.settings.home, {}, here=True)
    found = parse_assignments(words, file)
    return {
        name.partition(".")[2]: parse_account_setting(name, value) for name, value in found.items()
    }


def _ask(work: Setup) -> None:
    """Ask for each setting that the account needs; Enter keeps the present value."""
    if work.info.manifest:
        work.prompter.say(f"To create the app: bullpen channel manifest {work.name}")
    for setting in work.info.settings:
        if _is_asked(setting, work):
            value = _ask_one(work, setting)
            if value:
                work.new[setting.name] = value


def _choose_port(work: Setup) -> None:
    """Give the listener of a further account a port that no other account has."""
    port = work.info.setting("port")
    if port is None or "port" in work.new or not port.applies(work.values):
        return
    others = {*CHANNELS.built_in, *work.settings.accounts.names()} - {work.name}
    used = {work.settings.account(each).get("port") for each in others}
    free = int(work.values["port"])
    while str(free) in used:
        free += 1
    if str(free) != work.values["port"]:
        work.new["port"] = str(free)


def _is_asked(setting: ChannelSetting, work: Setup) -> bool:
    """Whether setup asks for it: it is required or wanted, or decides what else is."""
    decides = any(each.when and each.when[0] == setting.name for each in work.info.settings)
    return setting.applies(work.values) and (setting.required or setting.asked or decides)


def _ask_one(work: Setup, setting: ChannelSetting) -> str:
    now = work.values[setting.name]
    question = f"{setting.name}: {setting.doc.rstrip('.').replace('`', '')}"
    if not (now or setting.required):
        question += " (empty = none)"
    while True:
        if setting.secret:
            kept = f"{question} [{MASK}]" if now else question
            value = work.prompter.secret(kept)
        elif setting.choices:
            value = work.prompter.choose(question, setting.choices, now or setting.choices[0])
        else:
            value = work.prompter.text(question, now)
        try:
            value = setting.check(value)
        except ValueError as error:
            work.prompter.say(f"  It {error}.")
            continue
        if value or now or not setting.required:
            return value
        work.prompter.say("  It is required. Ctrl-C stops; nothing was saved.")


def _ask_owner(work: Setup) -> str:
    """The owner's id on this channel, if notices do not go to another one."""
    if work.settings.owner_channel not in PULL_CHANNELS or not work.prompter.there:
        return ""
    return work.prompter.text(
        f"Your id on {work.name}, to get notices and questions there (empty = after pairing)"
    )


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


def _print_findings(findings: Sequence[Finding]) -> None:
    """Print a line for each finding to standard error, and what to do about a failed one."""
    for each in findings:
        mark = style("ok", fg="green") if each.ok else style("failed", fg="red")
        echo(f"  {mark}  {each.text}", err=True)
        if each.hint:
            echo(f"      {each.hint}", err=True)


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
        yield "Write to the bot, then: bullpen pairing approve CODE --tier owner"
