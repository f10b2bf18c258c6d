"""The second question: the first agent, or what becomes of the one that is there."""

from __future__ import annotations

from bullpen.cli.setup.asker import Prompter
from bullpen.cli.setup.home import SetupHome
from bullpen.cli.setup.provider import ANYWAY, OTHER, ChosenProvider, probe_provider
from bullpen.core.errors import BadName, NameTaken
from bullpen.core.ids import check_name
from bullpen.core.roster.agent import HTTP, Agent
from bullpen.core.roster.agents import add_agent, change_agent


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
