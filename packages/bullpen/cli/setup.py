"""bullpen setup: a guided first configuration."""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass

import click

from bullpen.cli import completion
from bullpen.cli.command import require_person
from bullpen.cli.output import as_json, print_json
from bullpen.cli.setup_prompts import DefaultPrompter, Prompter, SetupHome, TerminalPrompter
from bullpen.cli.setup_steps import (
    ChosenProvider,
    TrialResult,
    check_agent_name,
    check_provider,
    choose_agent,
    choose_provider,
    choose_team,
    ensure_agent,
    ensure_running,
    ensure_team,
    send_trial,
)
from bullpen.core.roster.agents import ECHO, Agent
from bullpen.core.roster.programs import PROGRAMS, find_programs
from bullpen.core.roster.teams import Team
from bullpen.core.settings import Settings

NO_INPUT_COMMAND = "bullpen setup --no-input --provider claude --agent coder --team dev"


@dataclass(frozen=True, slots=True, kw_only=True)
class SetupOptions:
    """What was said on the command line; empty is not said."""

    provider: str
    model: str
    agent: str
    team: str
    members: tuple[str, ...]
    probe: bool
    start: bool


@click.command()
@click.option("--provider", default="", shell_complete=completion.providers, help="What answers.")
@click.option("--model", default="", shell_complete=completion.models, help="Which model of it.")
@click.option(
    "--agent", default="", shell_complete=completion.agents, help="The first agent's name."
)
@click.option("--team", default="", shell_complete=completion.teams, help="A team's name.")
@click.option(
    "--member", "members", multiple=True, shell_complete=completion.agents, help="One of it."
)
@click.option("--no-probe", is_flag=True, help="Do not ask the provider for a word before.")
@click.option("--no-start", is_flag=True, help="Do not start Bullpen, and send no message.")
@click.option("--no-input", "--yes", "-y", "no_input", is_flag=True, help="Ask no questions.")
@as_json
@click.pass_obj
def setup(
    settings: Settings,
    /,
    provider: str,
    model: str,
    agent: str,
    team: str,
    members: tuple[str, ...],
    no_probe: bool,
    no_start: bool,
    no_input: bool,
    as_json: bool,
) -> None:
    """Ask a few questions, prove each answer, and end with a message that is answered.

    What answers, who the first agent is, a first team, and a message to try it. What is there is
    shown and kept unless you say otherwise. Ctrl-C stops at any question; what was answered before
    it is kept. With --no-input nothing is asked: what is not said is as it is, or usual.

    \b
    Examples:
      bullpen setup
      bullpen setup --no-input --provider claude --agent coder --team dev
      bullpen setup --yes --provider echo --json
    """
    require_person("set Bullpen up")
    given = SetupOptions(
        provider=provider,
        model=model,
        agent=agent.removeprefix("@"),
        team=team.removeprefix("@"),
        members=members,
        probe=not no_probe,
        start=not no_start,
    )
    if no_input:
        _run_unattended(SetupHome(settings, _beside), given, as_json)
        return
    if as_json:
        raise click.UsageError("--json needs --no-input: questions are no document.")
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise click.UsageError(
            f"There is no terminal to ask questions at. Instead: {NO_INPUT_COMMAND}"
        )
    home = SetupHome(settings, click.echo)
    try:
        _run_interactive(home, TerminalPrompter(), given)
    except (click.Abort, KeyboardInterrupt):
        click.echo("\nStopped. The last question has changed nothing.")
        if home.changed:
            _say_what_is_kept(home)
        click.echo("Next: bullpen setup goes on from here")
        sys.exit(1)


def _run_interactive(home: SetupHome, asker: Prompter, given: SetupOptions) -> None:
    click.echo("A few questions. Ctrl-C stops; what was answered before is kept.\n")
    home.look()
    chosen = _provider(home, asker, given)
    click.echo("\n2. Who answers?")
    agent = _agent(home, asker, given, chosen)
    click.echo("\n3. Agents that hand work to each other are a team.")
    team = _team(home, asker, given, agent)
    click.echo("\n4. A message to try it.")
    trial = _trial(home, asker, given, agent)
    _say_what_is_kept(home)
    to = f"@{team.id}" if team is not None else f"@{agent.id}"
    click.echo(f'Next: bullpen send "{to} hello"')
    sys.exit(0 if trial is None else trial.status)


def _provider(home: SetupHome, asker: Prompter, given: SetupOptions) -> ChosenProvider:
    click.echo("1. What answers?")
    if given.provider:
        return check_provider(home, asker, given.provider, given.model, proved=given.probe)
    now = home.agents.get(given.agent or home.settings.default_agent)
    if now is not None:
        model = f" ({now.model})" if now.model else ""
        if asker.yes(f"@{now.id} answers with {now.provider}{model}. Keep that?"):
            return ChosenProvider(now.provider, now.model)
    return choose_provider(home, asker)


def _agent(home: SetupHome, asker: Prompter, given: SetupOptions, chosen: ChosenProvider) -> Agent:
    if given.agent:
        check_agent_name(home, given.agent)
        return ensure_agent(home, given.agent, chosen.provider, chosen.model)
    now = home.agents.get(home.settings.default_agent)
    if now is not None and (now.provider, now.model) == (chosen.provider, chosen.model):
        click.echo(f"  @{now.id} is there, with {now.provider}.")
        return now
    return choose_agent(home, asker, chosen)


def _team(home: SetupHome, asker: Prompter, given: SetupOptions, agent: Agent) -> Team | None:
    if given.team:
        return ensure_team(home, asker, given.team, given.members, agent)
    return choose_team(home, asker, agent)


def _trial(
    home: SetupHome, asker: Prompter, given: SetupOptions, agent: Agent
) -> TrialResult | None:
    if not given.start or not ensure_running(home, asker):
        return None
    if not asker.yes(f"Send a message to @{agent.id}?"):
        return None
    return send_trial(home, agent.id, as_json=False)


def _run_unattended(home: SetupHome, given: SetupOptions, as_json: bool) -> None:
    """Ask nobody: what was not said is as it is, or usual."""
    asker = DefaultPrompter()
    home.look()
    name = given.agent or home.settings.default_agent
    check_agent_name(home, name)
    now = home.agents.get(name)
    if given.provider or now is None:
        wanted = given.provider or _installed_provider()
        chosen = check_provider(home, asker, wanted, given.model, proved=given.probe)
    else:
        chosen = ChosenProvider(now.provider, given.model or now.model)
    agent = ensure_agent(home, name, chosen.provider, chosen.model)
    team = ensure_team(home, asker, given.team, given.members, agent) if given.team else None
    trial = None
    if given.start and ensure_running(home, asker):
        trial = send_trial(home, agent.id, as_json=as_json)
    if as_json:
        print_json(
            {
                "provider": agent.provider,
                "probe": None if chosen.probe is None else asdict(chosen.probe),
                "agent": agent.id,
                "model": agent.model,
                "team": None if team is None else team.id,
                "changed": home.changed,
                "settings": home.new_settings,
                "test": None if trial is None else trial.document,
            }
        )
    else:
        _say_what_is_kept(home)
    sys.exit(0 if trial is None else trial.status)


def _installed_provider() -> str:
    found = find_programs(PROGRAMS)
    return next((each for each in PROGRAMS if found[each].path is not None), ECHO)


def _say_what_is_kept(home: SetupHome) -> None:
    click.echo("Kept:" if home.changed else "Nothing is changed: it was all there.")
    for each in home.changed:
        click.echo(f"  {each}")


def _beside(text: str) -> None:
    click.echo(text, err=True)
