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
from bullpen.core.ids import check_new_name
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

TRIAL_TEXT = "Say hello in one short sentence."
TRIAL_SECONDS = 300.0


AGAIN, OTHER, ANYWAY = "again", "other", "anyway"


@dataclass(frozen=True, slots=True)
class ChosenProvider:
    """The provider, and the result of its probe; None if it was not probed."""

    provider: str
    model: str = ""
    probe: ProbeResult | None = None


def choose_provider(home: SetupHome, prompter: Prompter) -> ChosenProvider:
    """Ask for a provider until one passes its test, or the person continues without."""
    programs = probe_versions(PROGRAMS)
    default = _default_provider(home, programs)
    _show(home, prompter, programs)
    choices = [*PROGRAMS, ECHO, *(CUSTOM_PREFIX + each for each in home.services), CUSTOM]
    while True:
        name = prompter.choose("Provider", choices, default)
        result = _choose_custom(home, prompter) if name == CUSTOM else _known(home, prompter, name)
        if result is not None:
            return result
        default = ECHO


def check_provider(
    home: SetupHome, prompter: Prompter, named: str, model: str, *, probes: bool
) -> ChosenProvider:
    """The provider of the command line; raises an error if it does not answer."""
    name = PROVIDER_ALIASES.get(named, named)
    known = (
        *BUILT_IN_PROVIDERS,
        *PROVIDERS.plugin_names(),
        *(CUSTOM_PREFIX + each for each in home.services),
    )
    if name not in known:
        raise BadProvider(
            f"provider {name[:60]!r} does not exist", hint=f"There are {', '.join(known)}."
        )
    if name == HTTP or not probes:
        return ChosenProvider(name, model)
    result = probe_provider(home.settings, prompter, name, model)
    if not result.ok:
        raise BullpenError(
            f"{name} does not answer: {result.error}",
            hint="Fix this, choose another provider, or skip the test with --no-probe.",
        )
    return ChosenProvider(name, model, result)


def probe_provider(
    settings: Settings, prompter: Prompter, provider: str, model: str = ""
) -> ProbeResult:
    """Test the provider with a one-word prompt, and print the result."""
    with_model = f" with {model}" if model else ""
    prompter.say(f"  Testing {provider}{with_model} ...")
    result = probe(settings, provider, model)
    took = f"{result.seconds:.1f} s"
    if result.ok:
        said = " ".join(result.answer.split())[:60]
        prompter.say(f"  OK, it answered in {took}: {said}")
    else:
        kind = f" ({result.kind})" if result.kind else ""
        prompter.say(f"  Failed{kind}: {result.error}")
    return result


def _default_provider(home: SetupHome, programs: dict[str, Program]) -> str:
    return next((each for each in PROGRAMS if programs[each].path is not None), ECHO)


def _show(home: SetupHome, prompter: Prompter, programs: dict[str, Program]) -> None:
    for name, program in programs.items():
        there = program.version or "installed"
        prompter.say(f"  {name:<10} {there if program.path is not None else 'not installed'}")
    prompter.say(f"  {ECHO:<10} built in; repeats its input, needs no account")
    for service in home.services.values():
        prompter.say(f"  {CUSTOM_PREFIX + service.id:<10} {service.base_url}")
    prompter.say(f"  {CUSTOM:<10} your own endpoint, used through claude or codex")


def _known(home: SetupHome, prompter: Prompter, name: str) -> ChosenProvider | None:
    """A known provider, with an API key if the person has one."""
    while True:
        settings, save = _with_key(home, prompter, name)
        result = probe_provider(settings, prompter, name)
        decision = "" if result.ok else _next_choice(prompter, result)
        if decision == OTHER:
            return None
        if decision != AGAIN:
            save()
            return ChosenProvider(name, probe=result)


def _with_key(
    home: SetupHome, prompter: Prompter, name: str
) -> tuple[Settings, Callable[[], None]]:
    """The settings with the typed key, and the function that saves it."""
    now = home.settings
    info = PROVIDERS.built_in.get(name)
    if info is None or info.login is None:
        return now, _save_nothing
    default = "keep the present key" if info.login.configured(now) else "use its own login"
    key = prompter.secret(f"API key for {name} (leave empty to {default})")
    if not key:
        return now, _save_nothing
    keys = info.login.assign(key)
    what = f"API key for {name} in {now.home / SETTINGS_FILE}"
    proved = type(now)(**{**vars(now), **{each: value or "" for each, value in keys.items()}})
    return proved, lambda: home.save_settings(what, keys)


def _save_nothing() -> None:
    """Save nothing."""


def _next_choice(prompter: Prompter, result: ProbeResult) -> str:
    if result.kind == ErrorKind.AUTH and result.provider in PROGRAMS:
        prompter.say(f"  Log in with `{result.provider}` in another terminal, or give a key.")
    prompter.say("  again: test again; other: choose another provider; anyway: keep this one")
    return prompter.choose("Next step", (AGAIN, OTHER, ANYWAY), OTHER)


def _choose_custom(home: SetupHome, prompter: Prompter) -> ChosenProvider | None:
    """A custom provider, tested in a temporary home before it is saved."""
    while True:
        try:
            service = _asked_service(prompter)
            result = _probe_isolated(home.settings, prompter, service)
        except BullpenError as error:
            prompter.say(f"  {error}", *([f"  {error.hint}"] if error.hint else []))
            continue
        decision = "" if result.ok else _next_choice(prompter, result)
        if decision == OTHER:
            return None
        if decision != AGAIN:
            home.save(
                CUSTOM_PREFIX + service.id,
                partial(_save_provider, service, service.id in home.services),
            )
            return ChosenProvider(CUSTOM_PREFIX + service.id, probe=result)


def _asked_service(prompter: Prompter) -> CustomProvider:
    return CustomProvider(
        id=prompter.text("Name of the provider, used as `custom:NAME`", "own"),
        harness=Harness(
            prompter.choose("Program that calls it", [each.value for each in Harness], "claude")
        ),
        base_url=prompter.text("Base URL, for example http://127.0.0.1:8000"),
        api_key=prompter.secret("API key"),
        model=prompter.text("Model (leave empty for the default)"),
    )


def _probe_isolated(settings: Settings, prompter: Prompter, service: CustomProvider) -> ProbeResult:
    from bullpen.core.store import migrate  # only here: Alembic loads slowly

    with tempfile.TemporaryDirectory(prefix="bullpen-setup-") as name:
        apart = replace(settings, home=Path(name), database_url="")
        with closing(open_store(apart, check=False)) as store:
            migrate.upgrade(store)
            with store.write() as tx:
                add_custom_provider(tx, service)
        return probe_provider(apart, prompter, CUSTOM_PREFIX + service.id, service.model)


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


def choose_agent(home: SetupHome, prompter: Prompter, chosen: ChosenProvider) -> Agent:
    """Ask for the first agent's name, and add or change it."""
    while True:
        name = prompter.text("Name of the first agent", _default_agent(home))
        try:
            check_agent_name(home, name)
        except (BadName, NameTaken) as error:
            prompter.say(f"  {error}", f"  {error.hint}")
            continue
        return ensure_agent(home, name, chosen.provider, _model(home, prompter, chosen, name))


def check_agent_name(home: SetupHome, name: str) -> None:
    """Raise an error if no agent can have this name."""
    check_new_name(name)
    if name in home.teams:
        raise NameTaken(f"team {name!r} already exists")


def ensure_agent(home: SetupHome, name: str, provider: str, model: str) -> Agent:
    """Create the agent, or change its provider and model if they differ."""
    now = home.agents.get(name)
    if now is None:
        new = Agent(id=name, provider=provider, model=model)
        home.save(f"agent @{name} (provider: {provider})", lambda tx: add_agent(tx, new))
    elif (now.provider, now.model) != (provider, model):
        home.save(
            f"provider of @{name}: {provider}",
            lambda tx: change_agent(tx, name, provider=provider, model=model),
        )
    if home.settings.default_agent not in home.agents:
        what = f"default agent: @{name}"
        home.save_settings(what, {"default_agent": name})
    return home.agents[name]


def _default_agent(home: SetupHome) -> str:
    if not home.agents or home.settings.default_agent in home.agents:
        return home.settings.default_agent
    return next(iter(home.agents))


def _model(home: SetupHome, prompter: Prompter, chosen: ChosenProvider, name: str) -> str:
    """Ask for the model, and test it if it changes."""
    now = home.agents.get(name)
    default = now.model if now is not None and now.provider == chosen.provider else ""
    while True:
        model = prompter.text(f"Model (leave empty for {default or 'the default'})") or default
        if model in ("", default) or chosen.provider == HTTP:
            return model
        if probe_provider(home.settings, prompter, chosen.provider, model).ok:
            return model
        if (
            prompter.choose("other: another model; anyway: keep this one", (OTHER, ANYWAY), OTHER)
            == ANYWAY
        ):
            return model


def choose_team(home: SetupHome, prompter: Prompter, first: Agent) -> Team | None:
    """Ask for a team and its members; an empty answer means no team."""
    if home.teams:
        prompter.say(f"  Existing teams: {_named(list(home.teams))}.")
    while True:
        name = prompter.text("Name of the team (leave empty for none)")
        if not name or name in home.teams:
            return home.teams.get(name)
        members = prompter.text("Members, separated by blanks", first.id).replace(",", " ").split()
        try:
            return ensure_team(home, prompter, name, tuple(members), first)
        except (BadName, NameTaken) as error:
            prompter.say(f"  {error}", f"  {error.hint}")


def ensure_team(
    home: SetupHome, prompter: Prompter, name: str, members: tuple[str, ...], first: Agent
) -> Team | None:
    """Create the team, and its new members with the provider of the first agent."""
    if name in home.teams:
        return home.teams[name]
    members = tuple(dict.fromkeys(each.removeprefix("@") for each in members)) or (first.id,)
    check_new_name(name)
    if name in home.agents:
        raise NameTaken(f"agent {name!r} already exists")
    new = [each for each in members if each not in home.agents]
    for each in new:
        check_agent_name(home, each)
    if new and not prompter.yes(f"Create {_named(new)} (provider: {first.provider})?"):
        return None
    leader = first.id if first.id in members else members[0]

    def save(tx: Transaction) -> None:
        for each in new:
            add_agent(tx, Agent(id=each, provider=first.provider, model=first.model))
        add_team(tx, Team(id=name, leader=leader, members=members))

    home.save(f"team @{name}: {_named(list(members))} (leader: @{leader})", save)
    return home.teams[name]


def _named(names: list[str]) -> str:
    return ", ".join(f"@{each}" for each in names)


@dataclass(frozen=True, slots=True)
class TrialResult:
    """The exit status of the test message, and its JSON document."""

    status: int
    document: dict[str, object]


def ensure_running(home: SetupHome, prompter: Prompter) -> bool:
    """Start Bullpen, or restart services with new settings; False if it is not running."""
    supervisor = Supervisor(home.settings)
    if not supervisor.alive():
        if not prompter.yes("Bullpen is not running. Start it?"):
            return False
        _start(home)
        prompter.say("  Started Bullpen. Status: bullpen status. Stop: bullpen down")
        return True
    concerned = services_reading(
        home.new_settings, [each["name"] for each in supervisor.services()]
    )
    if home.new_settings and concerned:
        names = ", ".join(concerned)
        if prompter.yes(f"New settings take effect after a restart. Restart {names}?"):
            for name in restart_services(home.settings, concerned):
                print_notes(failure_reason(home.settings, name))
    return True


def send_trial(home: SetupHome, agent: str, *, as_json: bool) -> TrialResult:
    """Send a message to this agent, and show the answer."""
    new = NewMessage(agent=agent, message=TRIAL_TEXT, channel=CLI, sender=SENDER)
    screen = Screen(quiet=as_json, silent=as_json)
    with open_waiting_store(home.settings) as store:
        position, conversation = enqueue_message(store, new, "", (), None)
        follower = ConversationFollower(store, conversation, CLI, EventTail(store, position))
        result = wait_for_answers(follower, screen, TRIAL_SECONDS)
        with store.read() as tx:
            cost = conversation_totals(tx, conversation).cost
    print_wait_result(conversation, result, screen)
    return TrialResult(exit_status(result), wait_fields(conversation, result, cost))


def _start(home: SetupHome) -> None:
    try:
        _, failed = start_services(home.settings)
    except KeyboardInterrupt:
        stop_all(home.settings)  # it did not run before
        raise
    for name in failed:
        print_notes(failure_reason(home.settings, name))
