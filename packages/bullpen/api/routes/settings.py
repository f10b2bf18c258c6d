"""/api/settings: show and change the settings."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Annotated, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
)

from bullpen.api.context import api, read, require_reach, write
from bullpen.api.route import ADMIN, Routes
from bullpen.api.routes.agents import AgentBody, AgentMap, agent_map, put_agent
from bullpen.api.routes.providers import ProviderBody, ProviderMap, provider_map, put_provider
from bullpen.api.routes.services import known_services
from bullpen.api.routes.teams import TeamBody, TeamMap, put_team, team_map
from bullpen.api.schemas import Answer, Done, StrictBody
from bullpen.core.errors import (
    BadSetting,
    BullpenError,
    Conflict,
    LaneError,
    NotFound,
    SettingFixed,
)
from bullpen.core.roster.agents import find_agent, get_agent
from bullpen.core.roster.providers import PROVIDER_ALIASES
from bullpen.core.settings.file import SettingsFile, SettingSource, Value, services_reading
from bullpen.core.store.transaction import Transaction
from bullpen.core.text import MASK
from bullpen.core.workspace.templates import prepare_directory
from bullpen.ops.services.supervisor import CORE_SERVICES, DOWN_STATES

routes = Routes("settings", "What can be set, and what is.")

REFERENCE_NAMES = {command: family for family, command in PROVIDER_ALIASES.items()}
"""What the reference's clients call our command lines."""

MERGE_ERRORS: tuple[type[BullpenError], ...] = (NotFound, Conflict, LaneError)
Plain = Annotated[StrictStr, Field(max_length=4096)] | StrictBool | StrictInt | StrictFloat | None
Word = Annotated[str, Field(max_length=4096)]
Sent = TypeVar("Sent", bound=BaseModel)


class WorkspaceAnswer(Answer):
    """Where agents work."""

    path: str
    name: str


class ChannelsAnswer(Answer):
    """The channels whose clients run."""

    enabled: list[str]


class FamilyAnswer(Answer):
    """What one provider is given."""

    model: str = Field(description="the default agent's, if this is its provider")
    api_key: str = ""
    oauth_token: str = ""


class ModelsAnswer(Answer):
    """What answers for the default agent, and what the providers are given."""

    provider: str
    anthropic: FamilyAnswer
    openai: FamilyAnswer
    opencode: FamilyAnswer


class MonitoringAnswer(Answer):
    """How often agents are told to do something by themselves."""

    heartbeat_interval: int = Field(0, description="in seconds; 0 is never")


class SettingAnswer(Answer):
    """One setting, as it will be after the next start; a secret is masked."""

    value: str | int | float
    default: str | int | float
    doc: str
    source: SettingSource
    secret: bool
    fixed: str | None = Field(description="why it cannot be changed over the API; null if it can")


class ProblemAnswer(Answer):
    """Something in the file that does not count; no secret is in it."""

    line: int | None = Field(description="null if it is about the file as a whole")
    name: str = Field(description="the setting that it is about; empty if nobody can tell")
    text: str
    hint: str
    warning: bool = Field(description="nothing is lost by it")


class SettingsAnswer(Answer):
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


class SettingUpdate(BaseModel):
    """A setting as it was shown, with another value."""

    model_config = ConfigDict(extra="ignore")

    value: Plain


class Workspace(StrictBody):
    """It cannot be changed here; what it is may be sent back."""

    path: Word | None = None
    name: Word | None = None


class ProviderModelUpdate(StrictBody):
    """What one provider is to be given."""

    model: Word | None = None
    api_key: Word | None = None
    oauth_token: Word | None = None


class ModelsUpdate(StrictBody):
    """What is to answer for the default agent, and what the providers are to be given."""

    provider: Word | None = None
    anthropic: ProviderModelUpdate = ProviderModelUpdate()
    openai: ProviderModelUpdate = ProviderModelUpdate()
    opencode: ProviderModelUpdate = ProviderModelUpdate()


class Monitoring(StrictBody):
    """It cannot be changed here; what it is may be sent back."""

    heartbeat_interval: float | None = Field(None, allow_inf_nan=False)


class SettingsUpdate(StrictBody):
    """What is to be changed: any part of what is shown."""

    workspace: Workspace = Workspace()
    channels: dict[str, JsonValue] = Field(default_factory=dict)
    models: ModelsUpdate = ModelsUpdate()
    agents: dict[str, AgentBody] = Field(default_factory=dict)
    teams: dict[str, TeamBody] = Field(default_factory=dict)
    custom_providers: dict[str, ProviderBody] = Field(default_factory=dict)
    monitoring: Monitoring = Monitoring()
    settings: dict[str, Plain | SettingUpdate] = Field(
        default_factory=dict, description="name: value, or null for the default"
    )
    problems: list[JsonValue] = Field([], description="as shown; it changes nothing")


class SettingsDone(Done):
    """Everything as it is now."""

    settings: SettingsAnswer
    restart: list[str] = Field(description="the services that must restart for what was changed")


@routes.get("/api/settings", ADMIN)
def settings() -> SettingsAnswer:
    """Show everything that can be set, secrets masked, as it will be after the next start.

    Below `settings` is each of Bullpen's own; what stands above it, the reference's clients read.
    """
    require_reach(None)
    with read() as tx:
        return show_settings(tx)


@routes.put("/api/settings", ADMIN, *MERGE_ERRORS)
def change(body: SettingsUpdate) -> SettingsDone:
    """Change what is sent, at any depth, and keep the rest.

    What is shown may be sent back as a whole: a secret's mask, and what is so already, change
    nothing. What would open this machine is changed on the machine itself, and refused here.
    """
    return _merge(body)


@routes.post("/api/setup", ADMIN, *MERGE_ERRORS)
def set_up(body: SettingsUpdate) -> SettingsDone:
    """Change what is sent and keep the rest, as PUT /api/settings does."""
    return _merge(body)


def _merge(body: SettingsUpdate) -> SettingsDone:
    require_reach(None)
    file = settings_file()
    with file.locked():
        with read() as tx:
            current = show_settings(tx)
        changes = setting_changes(file, body, current)
        with write() as tx:
            agents = merge_roster(tx, body, current)
            if isinstance(agent := changes.get("default_agent"), str):
                get_agent(tx, agent)
            # The last step that may fail: if it does, the transaction rolls back.
            file.write(changes)
    for agent_id in agents:
        prepare_directory(api().settings, agent_id)
    with read() as tx:
        current = show_settings(tx)
    return SettingsDone(settings=current, restart=services_reading(changes, _names()))


def settings_file() -> SettingsFile:
    """The file of this home."""
    return SettingsFile(api().settings.home, os.environ)


def show_settings(tx: Transaction) -> SettingsAnswer:
    """All settings, as they are now."""
    file = settings_file()
    settings = {each.name: each for each in file.list_settings()}
    workspace = tx.settings.workspace
    return SettingsAnswer(
        workspace=WorkspaceAnswer(path=str(workspace), name=workspace.name),
        channels=ChannelsAnswer(enabled=enabled_channels()),
        models=_models(tx, {name: str(each.value) for name, each in settings.items()}),
        agents=agent_map(tx),
        teams=team_map(tx),
        custom_providers=provider_map(tx),
        monitoring=MonitoringAnswer(),
        settings={name: SettingAnswer.from_row(each) for name, each in settings.items()},
        problems=[ProblemAnswer.from_row(each) for each in file.problems()],
    )


def setting_changes(
    file: SettingsFile, body: SettingsUpdate, current: SettingsAnswer
) -> dict[str, Value | None]:
    """The changes to write to the file; read-only fields that differ are refused."""
    _check_read_only(body, current)
    aliases = {
        "workspace": body.workspace.path,
        "anthropic_api_key": body.models.anthropic.api_key,
        "anthropic_oauth_token": body.models.anthropic.oauth_token,
        "openai_api_key": body.models.openai.api_key,
    }
    own = {
        name: each.value if isinstance(each, SettingUpdate) else each
        for name, each in body.settings.items()
    }
    # A mask that is sent back is not a new secret, even if no secret is set.
    more = file.check({name: each for name, each in aliases.items() if each not in (None, MASK)})
    return {**more, **file.check({name: each for name, each in own.items() if each != MASK})}


def merge_roster(tx: Transaction, body: SettingsUpdate, current: SettingsAnswer) -> list[str]:
    """Add and change providers, agents and teams; returns agents whose directory to prepare."""
    for name, provider in _differences(
        body.custom_providers, current.custom_providers.root
    ).items():
        put_provider(tx, name, provider)
    agents = _differences(body.agents, current.agents.root)
    for name, agent in agents.items():
        put_agent(tx, name, agent)
    for name, team in _differences(body.teams, current.teams.root).items():
        put_team(tx, name, team)
    change = _default_agent(body.models, current.models)
    if change.model_fields_set:
        put_agent(tx, tx.settings.default_agent, change, create=False)
    return list(agents)


def enabled_channels() -> list[str]:
    """The channels whose clients run."""
    return [
        each["name"]
        for each in known_services() or ()
        if each["name"] not in CORE_SERVICES and each["state"] not in DOWN_STATES
    ]


def _models(tx: Transaction, values: dict[str, str]) -> ModelsAnswer:
    agent = find_agent(tx, tx.settings.default_agent)
    provider, model = ("", "") if agent is None else (agent.provider, agent.model)
    provider = REFERENCE_NAMES.get(provider, provider)
    models = {name: model if name == provider else "" for name in (*PROVIDER_ALIASES, "opencode")}
    return ModelsAnswer(
        provider=provider,
        anthropic=FamilyAnswer(
            model=models["anthropic"],
            api_key=values["anthropic_api_key"],
            oauth_token=values["anthropic_oauth_token"],
        ),
        openai=FamilyAnswer(model=models["openai"], api_key=values["openai_api_key"]),
        opencode=FamilyAnswer(model=models["opencode"]),
    )


def _check_read_only(body: SettingsUpdate, current: SettingsAnswer) -> None:
    """Refuse changes of fields that only the reference's clients read: they are not settings."""
    if body.workspace.name not in (None, current.workspace.name):
        raise SettingFixed("the workspace is called like its directory")
    if body.monitoring.heartbeat_interval not in (None, current.monitoring.heartbeat_interval):
        raise SettingFixed(
            "there is no interval for all agents", hint="Give each agent one of its own."
        )
    enabled = body.channels.get("enabled", None)
    if enabled is not None and enabled != current.channels.enabled:
        raise SettingFixed(
            "channels are not started by a setting",
            hint="POST /api/services/channel/<channel>/start starts one.",
        )
    others = sorted(name for name, each in body.channels.items() if name != "enabled" and each)
    if others:
        raise SettingFixed(
            f"there are no settings below channels for {', '.join(others)[:200]}",
            hint="What a channel needs is below `settings`.",
        )


def _differences(sent: Mapping[str, Sent], current: Mapping[str, BaseModel]) -> dict[str, Sent]:
    """The bodies, by name, with only the fields that differ from the present answers."""
    changed: dict[str, Sent] = {}
    for name, body in sorted(sent.items()):
        before = current[name].model_dump() if name in current else {}
        fields = body.model_dump(exclude_unset=True)
        news = {field: each for field, each in fields.items() if before.get(field) != each}
        if news or name not in current:
            changed[name] = type(body).model_validate(news)
    return changed


def _default_agent(models: ModelsUpdate, current: ModelsAnswer) -> AgentBody:
    """The change of the default agent that the models ask for."""
    change: dict[str, str] = {}
    provider = REFERENCE_NAMES.get(models.provider or "", models.provider) or current.provider
    if provider != current.provider:
        change = {"provider": provider, "model": ""}
    families = {
        "anthropic": (models.anthropic, current.anthropic),
        "openai": (models.openai, current.openai),
        "opencode": (models.opencode, current.opencode),
    }
    for name, (family, before) in families.items():
        if family.model in (None, before.model):
            continue
        if name == provider:
            change["model"] = family.model or ""
        elif family.model:
            raise BadSetting(
                f"the default agent is not answered for by {name}",
                hint="Give the model to an agent that is, below `agents`.",
            )
    return AgentBody.model_validate(change)


def _names() -> list[str]:
    services = known_services()
    return sorted(CORE_SERVICES) if services is None else [each["name"] for each in services]
