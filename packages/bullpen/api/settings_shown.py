"""The settings as they are shown: as the reference's clients read them, and all our own."""

from __future__ import annotations

import os
from dataclasses import asdict

from pydantic import BaseModel, Field

from bullpen.api.context import api
from bullpen.api.roster.agents import AgentMap, agent_map
from bullpen.api.roster.providers import ProviderMap, provider_map
from bullpen.api.roster.teams import TeamMap, team_map
from bullpen.api.services import known_services
from bullpen.core.roster.find import find_agent
from bullpen.core.roster.provider_names import PROVIDER_ALIASES
from bullpen.core.services.supervisor import CORE_SERVICES, DOWN_STATES
from bullpen.core.settings_file import SettingsFile, SettingSource
from bullpen.core.store.transaction import Transaction

FAMILIES = {command: family for family, command in PROVIDER_ALIASES.items()}
"""What the reference's clients call our command lines."""


class WorkspaceAnswer(BaseModel):
    """Where agents work."""

    path: str
    name: str


class ChannelsAnswer(BaseModel):
    """The channels whose clients run."""

    enabled: list[str]


class FamilyAnswer(BaseModel):
    """What one provider is given."""

    model: str = Field(description="the default agent's, if this is its provider")
    api_key: str = ""
    oauth_token: str = ""


class ModelsAnswer(BaseModel):
    """What answers for the default agent, and what the providers are given."""

    provider: str
    anthropic: FamilyAnswer
    openai: FamilyAnswer
    opencode: FamilyAnswer


class MonitoringAnswer(BaseModel):
    """How often agents are told to do something by themselves."""

    heartbeat_interval: int = Field(0, description="in seconds; 0 is never")


class SettingAnswer(BaseModel):
    """One setting, as it will be after the next start; a secret is masked."""

    value: str | int | float
    default: str | int | float
    doc: str
    source: SettingSource
    secret: bool
    fixed: str | None = Field(description="why it cannot be changed over the API; null if it can")


class ProblemAnswer(BaseModel):
    """Something in the file that does not count; no secret is in it."""

    line: int | None = Field(description="null if it is about the file as a whole")
    name: str = Field(description="the setting that it is about; empty if nobody can tell")
    text: str
    hint: str
    warning: bool = Field(description="nothing is lost by it")


class SettingsAnswer(BaseModel):
    """Everything that can be set; no secret is in it."""

    workspace: WorkspaceAnswer
    channels: ChannelsAnswer
    models: ModelsAnswer
    agents: AgentMap
    teams: TeamMap
    custom_providers: ProviderMap
    monitoring: MonitoringAnswer
    settings: dict[str, SettingAnswer]
    problems: list[ProblemAnswer] = Field(description="what is bad in the file, and what to do")


def settings_file() -> SettingsFile:
    """The file of this home."""
    return SettingsFile(api().settings.home, os.environ)


def show_settings(tx: Transaction) -> SettingsAnswer:
    """Everything, as it is now."""
    file = settings_file()
    settings = {each.name: each for each in file.shown()}
    workspace = tx.settings.workspace
    return SettingsAnswer(
        workspace=WorkspaceAnswer(path=str(workspace), name=workspace.name),
        channels=ChannelsAnswer(enabled=enabled_channels()),
        models=_models(tx, {name: str(each.value) for name, each in settings.items()}),
        agents=agent_map(tx),
        teams=team_map(tx),
        custom_providers=provider_map(tx),
        monitoring=MonitoringAnswer(),
        settings={
            name: SettingAnswer.model_validate(asdict(each)) for name, each in settings.items()
        },
        problems=[ProblemAnswer.model_validate(asdict(each)) for each in file.problems()],
    )


def enabled_channels() -> list[str]:
    """The channels whose clients run."""
    return [
        each["name"]
        for each in known_services() or ()
        if each["name"] not in CORE_SERVICES and each["state"] not in DOWN_STATES
    ]


def _models(tx: Transaction, shown: dict[str, str]) -> ModelsAnswer:
    agent = find_agent(tx, tx.settings.default_agent)
    provider, model = ("", "") if agent is None else (agent.provider, agent.model)
    provider = FAMILIES.get(provider, provider)
    models = {name: model if name == provider else "" for name in (*PROVIDER_ALIASES, "opencode")}
    return ModelsAnswer(
        provider=provider,
        anthropic=FamilyAnswer(
            model=models["anthropic"],
            api_key=shown["anthropic_api_key"],
            oauth_token=shown["anthropic_oauth_token"],
        ),
        openai=FamilyAnswer(model=models["openai"], api_key=shown["openai_api_key"]),
        opencode=FamilyAnswer(model=models["opencode"]),
    )
