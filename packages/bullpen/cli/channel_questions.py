"""The questions of `bullpen channel setup`, and the values of its --set options."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import click

from bullpen.cli.config_set import STANDARD_INPUT, read_secret, read_value
from bullpen.cli.errors import UsageError
from bullpen.cli.setup_prompts import Prompter
from bullpen.core.channels.people import check_person_id
from bullpen.core.errors import BadPlace, BadSetting
from bullpen.core.message import PULL_CHANNELS
from bullpen.core.registry import CHANNELS, ChannelInfo, ChannelSetting
from bullpen.core.settings import Settings
from bullpen.core.settings.accounts import parse_account_setting
from bullpen.core.text import MASK, describe_unknown

PORT_STEP = 10
"""From the port of a platform to that of its next account."""


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


def assigned(work: Setup, assignments: Sequence[tuple[str, str]]) -> dict[str, str]:
    """The values of --set; a secret is asked for, or read from standard input."""
    found: dict[str, str] = {}
    for name, value in assignments:
        short = name.removeprefix(f"{work.name}.")
        setting = work.info.setting(short)
        if setting is None:
            names = [each.name for each in work.info.all_settings]
            raise BadSetting(
                describe_unknown("setting", name, names),
                hint=f"Settings of {work.name}: {', '.join(names)}.",
            )
        if short in found:
            raise click.UsageError(f"{short} is given twice")
        full = f"{work.name}.{short}"
        found[short] = parse_account_setting(full, _given(setting, full, value))
    return found


def _given(setting: ChannelSetting, name: str, value: str) -> str:
    if value == STANDARD_INPUT:
        return read_secret(name) if setting.secret else read_value(name)
    if setting.secret:
        raise UsageError(
            f"{name} is a secret and cannot be given as an argument, because it would be in the "
            "shell's history and in the list of processes",
            f"Use --set {setting.name} - to give it on standard input, or run the command at a "
            "terminal without --set.",
        )
    return value


def ask(work: Setup, *, only_missing: bool = False) -> None:
    """Ask for each setting that the account needs; Enter keeps the present value."""
    if work.info.manifest and not only_missing:
        work.prompter.say(f"To create the app: bullpen channel manifest {work.name}")
    for setting in work.info.settings:
        missing = setting.name in work.info.missing(work.values)
        if missing if only_missing else _is_asked(setting, work):
            value = _ask_one(work, setting)
            if value:
                work.new[setting.name] = value


def _is_asked(setting: ChannelSetting, work: Setup) -> bool:
    """Whether setup asks for it: it is required or wanted, or decides what else is."""
    decides = any(each.when and each.when[0] == setting.name for each in work.info.settings)
    return setting.applies(work.values) and (setting.required or setting.asked or decides)


def _ask_one(work: Setup, setting: ChannelSetting) -> str:
    now = work.values[setting.name]
    # The example of a URL ends in the platform's name; each account has a URL of its own.
    doc = setting.doc.replace(f"/{work.info.platform}`", f"/{work.name}`")
    question = f"{setting.name}: {doc.rstrip('.').replace('`', '')}"
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
        work.prompter.say("  It is required. Press Ctrl-C to cancel.")


def ask_owner(work: Setup) -> str:
    """The owner's id on this channel, if notices do not go to another one."""
    if work.settings.owner_channel not in PULL_CHANNELS or not work.prompter.there:
        return ""
    question = f"Your id on {work.name}, to get notices and questions there (empty = after pairing)"
    while True:
        owner = work.prompter.text(question)
        try:
            if owner:
                check_person_id(work.name, owner)
        except BadPlace as error:
            work.prompter.say(f"  {str(error).capitalize()}. {error.hint}")
            continue
        return owner


def choose_port(work: Setup) -> None:
    """Give the listener of a further account a port that no other account has."""
    port = work.info.setting("port")
    if port is None or "port" in work.new or not port.applies(work.values):
        return
    used = {work.settings.account(each).get("port") for each in _other_accounts(work)}
    free = int(work.values["port"])
    while str(free) in used:
        free += PORT_STEP
    if str(free) != work.values["port"]:
        work.new["port"] = str(free)


def _other_accounts(work: Setup) -> Iterator[str]:
    """The platforms, whose ports are reserved, and the further accounts that are set up."""
    for name in {*CHANNELS.built_in, *work.settings.accounts.names()} - {work.name}:
        info = CHANNELS.find(name)
        if not isinstance(info, ChannelInfo):
            continue
        if not info.account_of or not info.missing(work.settings.account(name)):
            yield name
