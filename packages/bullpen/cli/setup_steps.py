"""The steps of bullpen setup: provider, agent, team and a trial run."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from bullpen.cli.command import print_notes
from bullpen.cli.down import restart_services, stop_all
from bullpen.cli.output import sanitize
from bullpen.cli.probe import ProbeResult, probe
from bullpen.cli.response import CLI
from bullpen.cli.screen import Screen
from bullpen.cli.send import SENDER, enqueue_message, open_waiting_store, wait_for_answers
from bullpen.cli.setup_prompts import Prompter, SetupHome
from bullpen.cli.up import failure_reason, start_services
from bullpen.cli.wait import exit_status, print_wait_result, wait_fields
from bullpen.core.company import add_agent, change_agent
from bullpen.core.errors import BadName, BadProvider, BullpenError, NameTaken
from bullpen.core.events.tail import EventTail
from bullpen.core.ids import check_name
from bullpen.core.inspect.follow import ConversationFollower
from bullpen.core.message import ErrorKind, NewMessage
from bullpen.core.queue.conversations import conversation_totals
from bullpen.core.registry import PROVIDERS
from bullpen.core.roster.agents import ECHO, HTTP, Agent
from bullpen.core.roster.programs import PROGRAMS, Program, probe_versions
from bullpen.core.roster.providers import (
    BUILT_IN_PROVIDERS,
    CUSTOM_PREFIX,
    PROVIDER_ALIASES,
    CustomProvider,
    Harness,
    add_custom_provider,
    change_custom_provider,
)
from bullpen.core.roster.teams import Team, add_team
from bullpen.core.settings import Settings
from bullpen.core.settings.file import services_reading
from bullpen.core.settings.parse import SETTINGS_FILE
from bullpen.core.store.open import open_store
from bullpen.core.store.transaction import Transaction
from bullpen.ops.services.supervisor import Supervisor

CUSTOM = "custom"
AGAIN, OTHER, ANYWAY = "again", "other", "anyway"
HARNESSES = tuple(each.value for each in Harness)


@dataclass(frozen=True, slots=True)
class ChosenProvider:
    """What answers, and what came of asking it; None if it was there before, or is no program."""

    provider: str
    model: str = ""
    probe: ProbeResult | None = None


def choose_provider(home: SetupHome, asker: Prompter) -> ChosenProvider:
    """Ask for a provider until one answers, or its owner goes on all the same."""
    programs = probe_versions(PROGRAMS)
    usual = _default_provider(home, programs)
    _show(home, asker, programs)
    choices = [*PROGRAMS, ECHO, *(CUSTOM_PREFIX + each for each in home.services), CUSTOM]
    while True:
        name = asker.choose("Provider", choices, usual)
        found = _choose_custom(home, asker) if name == CUSTOM else _known(home, asker, name)
        if found is not None:
            return found
        usual = ECHO


def check_provider(
    home: SetupHome, asker: Prompter, given: str, model: str, *, proved: bool
) -> ChosenProvider:
    """The provider that was named on the command line; one that does not answer is refused."""
    name = PROVIDER_ALIASES.get(given, given)
    known = (
        *BUILT_IN_PROVIDERS,
        *PROVIDERS.plugin_names(),
        *(CUSTOM_PREFIX + each for each in home.services),
    )
    if name not in known:
        raise BadProvider(
            f"there is no provider {name[:60]!r}", hint=f"There are {', '.join(known)}."
        )
    if name == HTTP or not proved:
        return ChosenProvider(name, model)
    found = probe_provider(home.settings, asker, name, model)
    if not found.ok:
        raise BullpenError(
            f"{name} does not answer: {found.error}",
            hint="Mend that, choose another one, or go on all the same with --no-probe.",
        )
    return ChosenProvider(name, model, found)


def probe_provider(
    settings: Settings, asker: Prompter, provider: str, model: str = ""
) -> ProbeResult:
    """Ask it for one word, and tell what came of it."""
    with_model = f" with {model}" if model else ""
    asker.say(f"  {provider}{with_model} is asked for one word ...")
    found = probe(settings, provider, model)
    took = f"{found.seconds:.1f} s"
    if found.ok:
        said = " ".join(sanitize(found.answer).split())[:60]
        asker.say(f"  It answers: {said} ({took})")
    else:
        kind = f" ({found.kind})" if found.kind else ""
        asker.say(f"  It does not answer{kind}: {sanitize(found.error)}")
    return found


def _default_provider(home: SetupHome, programs: dict[str, Program]) -> str:
    return next((each for each in PROGRAMS if programs[each].path is not None), ECHO)


def _show(home: SetupHome, asker: Prompter, programs: dict[str, Program]) -> None:
    for name, program in programs.items():
        there = program.version or "installed"
        asker.say(f"  {name:<10} {there if program.path is not None else 'is not installed'}")
    asker.say(f"  {ECHO:<10} built in: repeats what it is told, needs no account")
    for service in home.services.values():
        asker.say(f"  {CUSTOM_PREFIX + service.id:<10} {service.base_url}")
    asker.say(f"  {CUSTOM:<10} another service of yours, behind claude or codex")


def _known(home: SetupHome, asker: Prompter, name: str) -> ChosenProvider | None:
    """One that is known: with a key, if its owner has one."""
    while True:
        settings, keep = _with_key(home, asker, name)
        found = probe_provider(settings, asker, name)
        decision = "" if found.ok else _what_now(asker, found)
        if decision == OTHER:
            return None
        if decision != AGAIN:
            keep()
            return ChosenProvider(name, probe=found)


def _with_key(home: SetupHome, asker: Prompter, name: str) -> tuple[Settings, Callable[[], None]]:
    """The settings with the key that was typed, and what keeps it once it is proved."""
    now = home.settings
    info = PROVIDERS.built_in.get(name)
    if info is None or info.login is None:
        return now, _nothing
    usual = (
        "the one in the settings" if info.login.configured(now) else "as it has signed in by itself"
    )
    key = asker.secret(f"Key for {name} (empty: {usual})")
    if not key:
        return now, _nothing
    keys = info.login.assign(key)
    what = f"the key for {name}, in {now.home / SETTINGS_FILE}"
    proved = type(now)(**{**vars(now), **{each: value or "" for each, value in keys.items()}})
    return proved, lambda: home.save_settings(what, keys)


def _nothing() -> None:
    """Nothing is to be kept."""


def _what_now(asker: Prompter, found: ProbeResult) -> str:
    if found.kind == ErrorKind.AUTH and found.provider in PROGRAMS:
        asker.say(f"  Log in with `{found.provider}` in another terminal, or give a key.")
    asker.say("  again: once more; other: another provider; anyway: go on with this one")
    return asker.choose("What now", _CHOICES, OTHER)


_CHOICES = (AGAIN, OTHER, ANYWAY)


def _choose_custom(home: SetupHome, asker: Prompter) -> ChosenProvider | None:
    """A service of one's own: it is proved in a home that is gone afterwards."""
    while True:
        try:
            service = _asked_service(asker)
            found = _probe_isolated(home.settings, asker, service)
        except BullpenError as error:
            asker.say(f"  {error}", *([f"  {error.hint}"] if error.hint else []))
            continue
        decision = "" if found.ok else _what_now(asker, found)
        if decision == OTHER:
            return None
        if decision != AGAIN:
            home.keep(
                CUSTOM_PREFIX + service.id,
                partial(_save_provider, service, service.id in home.services),
            )
            return ChosenProvider(CUSTOM_PREFIX + service.id, probe=found)


def _asked_service(asker: Prompter) -> CustomProvider:
    return CustomProvider(
        id=asker.text("Its name, for `custom:NAME`", "own"),
        harness=Harness(
            asker.choose(
                "Which command line speaks to it", [each.value for each in Harness], "claude"
            )
        ),
        base_url=asker.text("Its address, as http://127.0.0.1:8000"),
        api_key=asker.secret("Its key"),
        model=asker.text("Model (empty: its own choice)"),
    )


def _probe_isolated(settings: Settings, asker: Prompter, service: CustomProvider) -> ProbeResult:
    from bullpen.core.store import migrate  # only here: Alembic takes its time

    with tempfile.TemporaryDirectory(prefix="bullpen-setup-") as name:
        apart = replace(settings, home=Path(name), database_url="")
        with closing(open_store(apart, check=False)) as store:
            migrate.upgrade(store)
            with store.write() as tx:
                add_custom_provider(tx, service)
        return probe_provider(apart, asker, CUSTOM_PREFIX + service.id, service.model)


def _save_provider(service: CustomProvider, known: bool, tx: Transaction) -> None:
    if known:
        change_custom_provider(
            tx,
            service.id,
            harness=service.harness,
            base_url=service.base_url,
            api_key=service.api_key,
            model=service.model,
        )
    else:
        add_custom_provider(tx, service)


def choose_agent(home: SetupHome, asker: Prompter, chosen: ChosenProvider) -> Agent:
    """Ask who it is to be, and see to it that it is there with this provider."""
    while True:
        name = asker.text("The first agent's name", _default_agent(home))
        try:
            check_agent_name(home, name)
        except (BadName, NameTaken) as error:
            asker.say(f"  {error}", f"  {error.hint}")
            continue
        return ensure_agent(home, name, chosen.provider, _model(home, asker, chosen, name))


def check_agent_name(home: SetupHome, name: str) -> None:
    """Refuse a name that an agent cannot have."""
    check_name(name)
    if name in home.teams:
        raise NameTaken(f"{name} is a team")


def ensure_agent(home: SetupHome, name: str, provider: str, model: str) -> Agent:
    """Have an agent of this name that this answers for; what is so already stays untouched."""
    now = home.agents.get(name)
    if now is None:
        new = Agent(id=name, provider=provider, model=model)
        home.keep(f"@{name}, with {provider}", lambda tx: add_agent(tx, new))
    elif (now.provider, now.model) != (provider, model):
        home.keep(
            f"@{name} answers with {provider} now",
            lambda tx: change_agent(tx, name, provider=provider, model=model),
        )
    if home.settings.default_agent not in home.agents:
        what = f"what names nobody goes to @{name}"
        home.save_settings(what, {"default_agent": name})
    return home.agents[name]


def _default_agent(home: SetupHome) -> str:
    if not home.agents or home.settings.default_agent in home.agents:
        return home.settings.default_agent
    return next(iter(home.agents))


def _model(home: SetupHome, asker: Prompter, chosen: ChosenProvider, name: str) -> str:
    """The model, proved if it is another one than was."""
    now = home.agents.get(name)
    usual = now.model if now is not None and now.provider == chosen.provider else ""
    while True:
        model = asker.text(f"Model (empty: {usual or 'its own choice'})") or usual
        if model in ("", usual) or chosen.provider == HTTP:
            return model
        if probe_provider(home.settings, asker, chosen.provider, model).ok:
            return model
        if asker.choose("Another model, or go on", (OTHER, ANYWAY), OTHER) == ANYWAY:
            return model


def choose_team(home: SetupHome, asker: Prompter, first: Agent) -> Team | None:
    """Ask for its name and its members; nothing said is no team."""
    if home.teams:
        asker.say(f"  There {_are(list(home.teams))}.")
    while True:
        name = asker.text("A team's name (empty: none for now)")
        if not name or name in home.teams:
            return home.teams.get(name)
        members = asker.text("Its members", first.id).replace(",", " ").split()
        try:
            return ensure_team(home, asker, name, tuple(members), first)
        except (BadName, NameTaken) as error:
            asker.say(f"  {error}", f"  {error.hint}")


def ensure_team(
    home: SetupHome, asker: Prompter, name: str, members: tuple[str, ...], first: Agent
) -> Team | None:
    """Have a team of this name; members that are not there are taken on as the first agent was."""
    if name in home.teams:
        return home.teams[name]
    members = tuple(dict.fromkeys(each.removeprefix("@") for each in members)) or (first.id,)
    check_name(name)
    if name in home.agents:
        raise NameTaken(f"{name} is an agent")
    new = [each for each in members if each not in home.agents]
    for each in new:
        check_agent_name(home, each)
    if new and not asker.yes(f"There is no {_named(new)}. Take on with {first.provider}?"):
        return None
    leader = first.id if first.id in members else members[0]

    def put(tx: Transaction) -> None:
        for each in new:
            add_agent(tx, Agent(id=each, provider=first.provider, model=first.model))
        add_team(tx, Team(id=name, leader=leader, members=members))

    home.keep(f"the team @{name} of {_named(list(members))}, led by @{leader}", put)
    return home.teams[name]


def _named(names: list[str]) -> str:
    return ", ".join(f"@{each}" for each in names)


def _are(names: list[str]) -> str:
    return f"is the team {_named(names)}" if len(names) == 1 else f"are the teams {_named(names)}"


TRIAL_TEXT = "Say hello in one short sentence."
TRIAL_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class TrialResult:
    """What came of the message."""

    status: int
    document: dict[str, object]


def ensure_running(home: SetupHome, asker: Prompter) -> bool:
    """Start Bullpen, or what of it has to see the new settings; false if it does not run."""
    supervisor = Supervisor(home.settings)
    if not supervisor.alive():
        if not asker.yes("Bullpen does not run. Start it?"):
            return False
        _start(home)
        asker.say("  It runs. `bullpen down` stops it, `bullpen status` shows it.")
        return True
    concerned = services_reading(
        home.new_settings, [each["name"] for each in supervisor.services()]
    )
    if home.new_settings and concerned:
        names = ", ".join(concerned)
        if asker.yes(f"Bullpen runs, and sees the new settings after a restart. Restart {names}?"):
            for name in restart_services(home.settings, concerned):
                print_notes(failure_reason(home.settings, name))
    return True


def send_trial(home: SetupHome, agent: str, *, as_json: bool) -> TrialResult:
    """Send a message to this agent, and show what it answers."""
    new = NewMessage(agent=agent, message=TRIAL_TEXT, channel=CLI, sender=SENDER)
    screen = Screen(quiet=as_json, silent=as_json)
    with open_waiting_store(home.settings) as store:
        position, conversation = enqueue_message(store, new, "", (), None)
        following = ConversationFollower(store, conversation, CLI, EventTail(store, position))
        waited = wait_for_answers(following, screen, TRIAL_SECONDS)
        with store.read() as tx:
            cost = conversation_totals(tx, conversation).cost
    print_wait_result(conversation, waited, screen)
    return TrialResult(exit_status(waited), wait_fields(conversation, waited, cost))


def _start(home: SetupHome) -> None:
    try:
        _, failed = start_services(home.settings)
    except KeyboardInterrupt:
        stop_all(home.settings)  # it was not there before
        raise
    for name in failed:
        print_notes(failure_reason(home.settings, name))
