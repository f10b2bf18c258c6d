"""The settings as they are sent: merged into what there is; what is not named stays."""

from __future__ import annotations

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

from bullpen.api.models import Input
from bullpen.api.roster.agents import AgentBody, put_agent
from bullpen.api.roster.providers import ProviderBody, put_provider
from bullpen.api.roster.teams import TeamBody, put_team
from bullpen.api.settings_shown import FAMILIES, ModelsAnswer, SettingsAnswer
from bullpen.core.errors import BadSetting, SettingFixed
from bullpen.core.masking import MASK
from bullpen.core.settings_file import SettingsFile, Value
from bullpen.core.store.transaction import Transaction

Plain = Annotated[StrictStr, Field(max_length=4096)] | StrictBool | StrictInt | StrictFloat | None
Word = Annotated[str, Field(max_length=4096)]
Sent = TypeVar("Sent", bound=BaseModel)


class Given(BaseModel):
    """A setting as it was shown, with another value."""

    model_config = ConfigDict(extra="ignore")

    value: Plain


class Workspace(Input):
    """It cannot be changed here; what it is may be sent back."""

    path: Word | None = None
    name: Word | None = None


class Family(Input):
    """What one provider is to be given."""

    model: Word | None = None
    api_key: Word | None = None
    oauth_token: Word | None = None


class Models(Input):
    """What is to answer for the default agent, and what the providers are to be given."""

    provider: Word | None = None
    anthropic: Family = Family()
    openai: Family = Family()
    opencode: Family = Family()


class Monitoring(Input):
    """It cannot be changed here; what it is may be sent back."""

    heartbeat_interval: float | None = Field(None, allow_inf_nan=False)


class Wished(Input):
    """What is to be changed: any part of what is shown."""

    workspace: Workspace = Workspace()
    channels: dict[str, JsonValue] = Field(default_factory=dict)
    models: Models = Models()
    agents: dict[str, AgentBody] = Field(default_factory=dict)
    teams: dict[str, TeamBody] = Field(default_factory=dict)
    custom_providers: dict[str, ProviderBody] = Field(default_factory=dict)
    monitoring: Monitoring = Monitoring()
    settings: dict[str, Plain | Given] = Field(
        default_factory=dict, description="name: value, or null for the default"
    )
    problems: list[JsonValue] = Field([], description="as shown; it changes nothing")


def wanted(file: SettingsFile, body: Wished, shown: SettingsAnswer) -> dict[str, Value | None]:
    """What is to be written to the file; what cannot be changed is refused."""
    _check_rest(body, shown)
    aliases = {
        "workspace": body.workspace.path,
        "anthropic_api_key": body.models.anthropic.api_key,
        "anthropic_oauth_token": body.models.anthropic.oauth_token,
        "openai_api_key": body.models.openai.api_key,
    }
    own = {
        name: each.value if isinstance(each, Given) else each
        for name, each in body.settings.items()
    }
    # A mask that is sent back is no secret, not even where there is none yet.
    more = file.check({name: each for name, each in aliases.items() if each not in (None, MASK)})
    return {**more, **file.check({name: each for name, each in own.items() if each != MASK})}


def merge_roster(tx: Transaction, body: Wished, shown: SettingsAnswer) -> list[str]:
    """Add and change providers, agents and teams; gives the agents that are to be provisioned."""
    for name, provider in _news(body.custom_providers, shown.custom_providers.root).items():
        put_provider(tx, name, provider)
    agents = _news(body.agents, shown.agents.root)
    for name, agent in agents.items():
        put_agent(tx, name, agent)
    for name, team in _news(body.teams, shown.teams.root).items():
        put_team(tx, name, team)
    change = _default_agent(body.models, shown.models)
    if change.model_fields_set:
        put_agent(tx, tx.settings.default_agent, change, create=False)
    return list(agents)


def _check_rest(body: Wished, shown: SettingsAnswer) -> None:
    """What is shown for the reference's clients and is no setting of ours may only stay."""
    if body.workspace.name not in (None, shown.workspace.name):
        raise SettingFixed("the workspace is called like its directory")
    if body.monitoring.heartbeat_interval not in (None, shown.monitoring.heartbeat_interval):
        raise SettingFixed(
            "there is no interval for all agents", hint="Give each agent one of its own."
        )
    enabled = body.channels.get("enabled", None)
    if enabled is not None and enabled != shown.channels.enabled:
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


def _news(sent: Mapping[str, Sent], shown: Mapping[str, BaseModel]) -> dict[str, Sent]:
    """Of what was sent, by name, what differs from what is shown."""
    found: dict[str, Sent] = {}
    for name, body in sorted(sent.items()):
        before = shown[name].model_dump() if name in shown else {}
        fields = body.model_dump(exclude_unset=True)
        news = {field: each for field, each in fields.items() if before.get(field) != each}
        if news or name not in shown:
            found[name] = type(body).model_validate(news)
    return found


def _default_agent(models: Models, shown: ModelsAnswer) -> AgentBody:
    """What of the default agent is to be changed."""
    change: dict[str, str] = {}
    provider = FAMILIES.get(models.provider or "", models.provider) or shown.provider
    if provider != shown.provider:
        change = {"provider": provider, "model": ""}
    families = {
        "anthropic": (models.anthropic, shown.anthropic),
        "openai": (models.openai, shown.openai),
        "opencode": (models.opencode, shown.opencode),
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
