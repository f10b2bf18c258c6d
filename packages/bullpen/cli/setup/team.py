"""The third question: a first team, if one is wanted."""

from __future__ import annotations

from bullpen.cli.setup.agent import check_agent_name
from bullpen.cli.setup.asker import Prompter
from bullpen.cli.setup.home import SetupHome
from bullpen.core.errors import BadName, NameTaken
from bullpen.core.ids import check_name
from bullpen.core.roster.agent import Agent
from bullpen.core.roster.agents import add_agent
from bullpen.core.roster.team import Team
from bullpen.core.roster.teams import add_team
from bullpen.core.store.transaction import Transaction


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
