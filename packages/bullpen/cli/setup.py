"""bullpen setup: a guided first configuration: provider, agent, team, test message."""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass

import click

from bullpen.cli import completion
from bullpen.cli.command import Result, command, json_requested
from bullpen.cli.output import echo
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
    """The options of the command line; empty if not given."""

    provider: str
    model: str
    agent: str
    team: str
    members: tuple[str, ...]
    probe: bool
    start: bool


@command(people_only="set Bullpen up")
@click.option(
    "--provider",
    default="",
    shell_complete=completion.providers,
    help="Provider of the first agent.",
)
@click.option(
    "--model", default="", shell_complete=completion.models, help="Model of the provider."
)
@click.option(
    "--agent", default="", shell_complete=completion.agents, help="Name of the first agent."
)
@click.option("--team", default="", shell_complete=completion.teams, help="Name of a team.")
@click.option(
    "--member",
    "members",
    multiple=True,
    shell_complete=completion.agents,
    help="Member of the team. Repeatable.",
)
@click.option("--no-probe", is_flag=True, help="Do not test the provider first.")
@click.option("--no-start", is_flag=True, help="Do not start Bullpen or send a test message.")
@click.option(
    "--no-input",
    "--yes",
    "-y",
    "no_input",
    is_flag=True,
    help="Use options and defaults without questions.",
)
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
) -> Result | None:
    """Set up a provider, an agent and a team.

    Asks for a provider, a first agent and a team, tests each answer, and sends a test message.
    Existing agents and teams are kept. Ctrl-C stops at any question; earlier answers are kept.
    With --no-input there are no questions: options that are not given keep their present value or
    get the default.

    \b
    Examples:
      bullpen setup
      bullpen setup --no-input --provider claude --agent coder --team dev
      bullpen setup --yes --provider echo --json
    """
    options = SetupOptions(
        provider=provider,
        model=model,
        agent=agent.removeprefix("@"),
        team=team.removeprefix("@"),
        members=members,
        probe=not no_probe,
        start=not no_start,
    )
    if no_input:
        return _run_unattended(SetupHome(settings, _print_note), options)
    if json_requested():
        raise click.UsageError("--json needs --no-input")
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise click.UsageError(
            f"setup asks questions and needs a terminal; without one, use `{NO_INPUT_COMMAND}`"
        )
    home = SetupHome(settings, echo)
    try:
        return _run_interactive(home, TerminalPrompter(), options)
    except (click.Abort, KeyboardInterrupt):
        echo("\nStopped. The unanswered question changed nothing.")
        for line in _changes(home) if home.changed else ():
            echo(line)
        echo("Next: bullpen setup")
        sys.exit(1)


def _run_interactive(home: SetupHome, prompter: Prompter, options: SetupOptions) -> Result:
    echo("Press Enter to accept a default. Ctrl-C stops; earlier answers are kept.\n")
    home.load()
    chosen = _provider(home, prompter, options)
    echo("\n2. First agent")
    agent = _agent(home, prompter, options, chosen)
    echo("\n3. Team: agents that can hand work to each other (optional)")
    team = _team(home, prompter, options, agent)
    echo("\n4. Test message")
    trial = _trial(home, prompter, options, agent)
    to = f"@{team.id}" if team is not None else f"@{agent.id}"
    return Result(
        None,
        [*_changes(home), f'Next: bullpen send "{to} hello"'],
        status=0 if trial is None else trial.status,
    )


def _provider(home: SetupHome, prompter: Prompter, options: SetupOptions) -> ChosenProvider:
    echo("1. Provider: the program or service that runs the agents")
    if options.provider:
        return check_provider(home, prompter, options.provider, options.model, probes=options.probe)
    now = home.agents.get(options.agent or home.settings.default_agent)
    if now is not None:
        model = f" ({now.model})" if now.model else ""
        if prompter.yes(f"@{now.id} uses the provider {now.provider}{model}. Keep it?"):
            return ChosenProvider(now.provider, now.model)
    return choose_provider(home, prompter)


def _agent(
    home: SetupHome, prompter: Prompter, options: SetupOptions, chosen: ChosenProvider
) -> Agent:
    if options.agent:
        check_agent_name(home, options.agent)
        return ensure_agent(home, options.agent, chosen.provider, chosen.model)
    now = home.agents.get(home.settings.default_agent)
    if now is not None and (now.provider, now.model) == (chosen.provider, chosen.model):
        echo(f"  Agent @{now.id} exists (provider: {now.provider}).")
        return now
    return choose_agent(home, prompter, chosen)


def _team(home: SetupHome, prompter: Prompter, options: SetupOptions, agent: Agent) -> Team | None:
    if options.team:
        return ensure_team(home, prompter, options.team, options.members, agent)
    return choose_team(home, prompter, agent)


def _trial(
    home: SetupHome, prompter: Prompter, options: SetupOptions, agent: Agent
) -> TrialResult | None:
    if not options.start or not ensure_running(home, prompter):
        return None
    if not prompter.yes(f"Send a test message to @{agent.id}?"):
        return None
    return send_trial(home, agent.id, as_json=False)


def _run_unattended(home: SetupHome, options: SetupOptions) -> Result:
    """Ask no questions; missing options keep their present value or get the default."""
    prompter = DefaultPrompter()
    home.load()
    name = options.agent or home.settings.default_agent
    check_agent_name(home, name)
    now = home.agents.get(name)
    if options.provider or now is None:
        wanted = options.provider or _installed_provider()
        chosen = check_provider(home, prompter, wanted, options.model, probes=options.probe)
    else:
        chosen = ChosenProvider(now.provider, options.model or now.model)
    agent = ensure_agent(home, name, chosen.provider, chosen.model)
    team = (
        ensure_team(home, prompter, options.team, options.members, agent) if options.team else None
    )
    trial = None
    if options.start and ensure_running(home, prompter):
        trial = send_trial(home, agent.id, as_json=json_requested())
    document = {
        "provider": agent.provider,
        "probe": None if chosen.probe is None else asdict(chosen.probe),
        "agent": agent.id,
        "model": agent.model,
        "team": None if team is None else team.id,
        "changed": home.changed,
        "settings": home.new_settings,
        "test": None if trial is None else trial.document,
    }
    return Result(document, _changes(home), status=0 if trial is None else trial.status)


def _installed_provider() -> str:
    programs = find_programs(PROGRAMS)
    return next((each for each in PROGRAMS if programs[each].path is not None), ECHO)


def _changes(home: SetupHome) -> list[str]:
    if not home.changed:
        return ["Nothing changed."]
    return ["Saved:", *(f"  {each}" for each in home.changed)]


def _print_note(text: str) -> None:
    echo(text, err=True)
