"""The bodies and answers of /api/settings, with the fields of TinyAGI's clients."""

from __future__ import annotations

from typing import Annotated

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

from bullpen.api.routes.agents import AgentBody, AgentMap
from bullpen.api.routes.providers import ProviderBody, ProviderMap
from bullpen.api.routes.teams import TeamBody, TeamMap
from bullpen.api.schemas import Answer, Done, StrictBody
from bullpen.core.settings.file import SettingSource

Plain = Annotated[StrictStr, Field(max_length=4096)] | StrictBool | StrictInt | StrictFloat | None
Word = Annotated[str, Field(max_length=4096)]


class WorkspaceAnswer(Answer):
    """The workspace."""

    path: str
    name: str


class ChannelsAnswer(Answer):
    """The channels with a running client."""

    enabled: list[str]


class FamilyAnswer(Answer):
    """The model and the credentials of a provider."""

    model: str = Field(description="The default agent's model, if this is its provider.")
    api_key: str = ""
    oauth_token: str = ""


class ModelsAnswer(Answer):
    """The default agent's provider, and the credentials of the providers."""

    provider: str
    anthropic: FamilyAnswer
    openai: FamilyAnswer
    opencode: FamilyAnswer


class MonitoringAnswer(Answer):
    """Always 0: each agent has its own heartbeat."""

    heartbeat_interval: int = Field(0, description="In seconds; 0: never.")


class SettingAnswer(Answer):
    """A setting as of the next start, with secrets masked."""

    value: str | int | float
    default: str | int | float
    doc: str
    source: SettingSource
    secret: bool
    fixed: str | None = Field(description="Why it cannot be changed over the API; null if it can.")


class ProblemAnswer(Answer):
    """A part of settings.toml that is ignored, without secrets."""

    line: int | None = Field(description="Null for the file as a whole.")
    name: str = Field(description="The setting; empty if unknown.")
    text: str
    hint: str
    warning: bool = Field(description="Whether it is harmless.")


class SettingsAnswer(Answer):
    """All settings, with secrets masked."""

    workspace: WorkspaceAnswer
    channels: ChannelsAnswer
    models: ModelsAnswer
    agents: AgentMap
    teams: TeamMap
    custom_providers: ProviderMap
    monitoring: MonitoringAnswer
    settings: dict[str, SettingAnswer]
    problems: list[ProblemAnswer] = Field(description="Invalid parts of settings.toml.")


class SettingUpdate(BaseModel):
    """A setting as in the answer, with another value."""

    model_config = ConfigDict(extra="ignore")

    value: Plain


class Workspace(StrictBody):
    """The present values only: the workspace cannot be changed over the API."""

    path: Word | None = None
    name: Word | None = None


class ProviderModelUpdate(StrictBody):
    """The model and the credentials of a provider."""

    model: Word | None = None
    api_key: Word | None = None
    oauth_token: Word | None = None


class ModelsUpdate(StrictBody):
    """The default agent's model, and the credentials of the providers."""

    provider: Word | None = None
    anthropic: ProviderModelUpdate = ProviderModelUpdate()
    openai: ProviderModelUpdate = ProviderModelUpdate()
    opencode: ProviderModelUpdate = ProviderModelUpdate()


class Monitoring(StrictBody):
    """The present value only: each agent has its own heartbeat."""

    heartbeat_interval: float | None = Field(None, allow_inf_nan=False)


class SettingsUpdate(StrictBody):
    """The settings to change, in the form of the answer."""

    workspace: Workspace = Workspace()
    channels: dict[str, JsonValue] = Field(default_factory=dict)
    models: ModelsUpdate = ModelsUpdate()
    agents: dict[str, AgentBody] = Field(default_factory=dict)
    teams: dict[str, TeamBody] = Field(default_factory=dict)
    custom_providers: dict[str, ProviderBody] = Field(default_factory=dict)
    monitoring: Monitoring = Monitoring()
    settings: dict[str, Plain | SettingUpdate] = Field(
        default_factory=dict, description="Values by name; null: the default."
    )
    problems: list[JsonValue] = Field([], description="Ignored.")


class SettingsDone(Done):
    """The settings after the change."""

    settings: SettingsAnswer
    restart: list[str] = Field(
        description="The services that must restart before the changes take effect."
    )
