"""/api/settings: show and change the settings."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple, TypeVar

from pydantic import (
    BaseModel,
    JsonValue,
)

from bullpen.api.context import api, read, require_reach, write
from bullpen.api.route import ADMIN, Routes
from bullpen.api.routes.agents import (
    TINYAGI_NAMES,
    AgentBody,
    agent_map,
    put_agent,
)
from bullpen.api.routes.providers import provider_map, put_provider
from bullpen.api.routes.services import known_services
from bullpen.api.routes.settings_schemas import (
    ChannelsAnswer,
    FamilyAnswer,
    ModelsAnswer,
    ModelsUpdate,
    MonitoringAnswer,
    ProblemAnswer,
    SettingAnswer,
    SettingsAnswer,
    SettingsDone,
    SettingsUpdate,
    SettingUpdate,
    WorkspaceAnswer,
)
from bullpen.api.routes.teams import put_team, team_map
from bullpen.core.errors import (
    BadSetting,
    BullpenError,
    Conflict,
    InputError,
    LaneError,
    NotFound,
    SettingFixed,
)
from bullpen.core.roster.agents import find_agent, get_agent
from bullpen.core.roster.providers import PROVIDER_ALIASES
from bullpen.core.settings.file import SettingsFile, Value, services_reading
from bullpen.core.store.transaction import Transaction
from bullpen.core.text import MASK
from bullpen.core.workspace.templates import prepare_directory
from bullpen.ops.services.supervisor import CORE_SERVICES, DOWN_STATES, OWN_SERVICES

routes = Routes("settings", "Settings.")

NO_DEFAULT_PROVIDER = "Change the agent's `provider`: PUT /api/agents/{agent}."

SECRETS = {
    "anthropic_api_key": ("anthropic", "api_key"),
    "anthropic_oauth_token": ("anthropic", "oauth_token"),
    "openai_api_key": ("openai", "api_key"),
}
"""The settings with secrets of providers, and the fields in which TinyAGI's clients send them."""

MERGE_ERRORS: tuple[type[BullpenError], ...] = (NotFound, Conflict, LaneError)
Sent = TypeVar("Sent", bound=BaseModel)


class Refusal(NamedTuple):
    """A part of the request that is refused, and why."""

    where: str
    error: BullpenError

    def __str__(self) -> str:
        return f"{self.where}: {self.error}" if self.where else str(self.error)


@routes.get("/api/settings", ADMIN)
def settings() -> SettingsAnswer:
    """Get all settings as of the next start, with secrets masked.

    `settings` has Bullpen's settings. The other fields are for TinyAGI's clients.
    """
    require_reach(None)
    with read() as tx:
        return show_settings(tx)


@routes.put("/api/settings", ADMIN, *MERGE_ERRORS)
def change(body: SettingsUpdate) -> SettingsDone:
    """Change settings; omitted fields are unchanged.

    A client may send the whole answer back: masks of secrets and unchanged values have no effect. A
    credential that is null or empty is removed. If `models` is complete, with `provider` and every
    family, an omitted credential is removed as well. Settings that could give access to the machine
    are refused; change them on the machine itself. If any part is refused, nothing is changed, and
    the error lists every reason.
    """
    return _merge(body)


@routes.post("/api/setup", ADMIN, *MERGE_ERRORS)
def set_up(body: SettingsUpdate) -> SettingsDone:
    """Change settings, in the same way as PUT /api/settings."""
    return _merge(body)


def _merge(body: SettingsUpdate) -> SettingsDone:
    require_reach(None)
    file = settings_file()
    with file.locked():
        with read() as tx:
            current = show_settings(tx)
        refusals: list[Refusal] = []
        changes = setting_changes(file, body, current, refusals)
        with write() as tx:
            agents = merge_roster(tx, body, current, refusals)
            if isinstance(agent := changes.get("default_agent"), str):
                with _collected(refusals):
                    get_agent(tx, agent)
            _raise_all(refusals)
            # The last step that may fail: if it does, the transaction rolls back.
            file.write(changes)
    for agent_id in agents:
        prepare_directory(api().settings, agent_id)
    with read() as tx:
        current = show_settings(tx)
    return SettingsDone(settings=current, restart=services_reading(changes, _names()))


def settings_file() -> SettingsFile:
    """Return the settings file of this home."""
    return SettingsFile(api().settings.home, os.environ)


def show_settings(tx: Transaction) -> SettingsAnswer:
    """Return all settings."""
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
    file: SettingsFile,
    body: SettingsUpdate,
    current: SettingsAnswer,
    refusals: list[Refusal],
) -> dict[str, Value | None]:
    """Return the changes to write to the file, and add refused ones to the refusals."""
    refusals += (Refusal("", each) for each in _read_only_changes(body, current))
    sent: dict[str, Value | None] = {}
    if body.workspace.path is not None:
        sent["workspace"] = body.workspace.path
    sent.update(_sent_secrets(body.models))
    sent.update(_sent_channels(body.channels))
    sent.update(
        (name, each.value if isinstance(each, SettingUpdate) else each)
        for name, each in body.settings.items()
    )
    changes: dict[str, Value | None] = {}
    for name, value in sent.items():
        # A mask that is sent back is not a new secret, even if no secret is set.
        if value != MASK:
            with _collected(refusals):
                changes.update(file.check({name: value}))
    return changes


def merge_roster(
    tx: Transaction, body: SettingsUpdate, current: SettingsAnswer, refusals: list[Refusal]
) -> list[str]:
    """Add and change providers, agents and teams; return the agents that were sent."""
    providers = _differences(body.custom_providers, current.custom_providers.root)
    for name, provider in providers.items():
        with _collected(refusals):
            put_provider(tx, name, provider)
    agents = _differences(body.agents, current.agents.root)
    added = set()
    for name, agent in agents.items():
        with _collected(refusals, f"agents.{name}"):
            put_agent(tx, name, agent)
            added.add(name)
    for name, team in _differences(body.teams, current.teams.root).items():
        if agents.keys() - added & set(team.agents or ()):
            continue  # its agents were refused, and their errors are listed already
        with _collected(refusals, f"teams.{name}"):
            put_team(tx, name, team)
    # With agents, it is a whole settings file of TinyAGI, in which each agent has its own model.
    if not body.agents:
        with _collected(refusals):
            change = _default_agent(tx, body.models, current.models)
            if change.model_fields_set:
                put_agent(tx, tx.settings.default_agent, change, create=False)
    return list(agents)


@contextmanager
def _collected(refusals: list[Refusal], where: str = "") -> Iterator[None]:
    """Add an input error to the refusals, so that the following parts are checked as well."""
    try:
        yield
    except (InputError, NotFound, Conflict, LaneError) as error:
        refusals.append(Refusal(where, error))


def _raise_all(refusals: Sequence[Refusal]) -> None:
    """Raise the only refusal, or one error with all of them."""
    if len(refusals) == 1:
        raise refusals[0].error
    if refusals:
        hints = dict.fromkeys(each.error.hint for each in refusals)
        raise BadSetting("; ".join(map(str, refusals)), hint=" ".join(hints))


def _sent_secrets(models: ModelsUpdate) -> dict[str, Value | None]:
    """Return the providers' secrets in the request by setting; None removes a secret."""
    families = {"anthropic": models.anthropic, "openai": models.openai}
    is_whole = {"provider", "anthropic", "openai", "opencode"} <= models.model_fields_set
    sent: dict[str, Value | None] = {}
    for setting, (family, name) in SECRETS.items():
        update = families[family]
        if is_whole or name in update.model_fields_set:
            sent[setting] = getattr(update, name) or None
    return sent


def enabled_channels() -> list[str]:
    """Return the channels with a running client."""
    return [
        each["name"]
        for each in known_services() or ()
        if each["name"] not in OWN_SERVICES and each["state"] not in DOWN_STATES
    ]


def _models(tx: Transaction, values: dict[str, str]) -> ModelsAnswer:
    agent = find_agent(tx, tx.settings.default_agent)
    provider, model = ("", "") if agent is None else (agent.provider, agent.model)
    provider = TINYAGI_NAMES.get(provider, provider)
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


def _read_only_changes(body: SettingsUpdate, current: SettingsAnswer) -> Iterator[SettingFixed]:
    """Yield an error for each field that exists only for TinyAGI's clients and was changed."""
    if body.workspace.name not in (None, current.workspace.name):
        yield SettingFixed("the name of the workspace is the name of its directory")
    if body.monitoring.heartbeat_interval not in (None, current.monitoring.heartbeat_interval):
        yield SettingFixed(
            "heartbeat_interval is not supported",
            hint="Set the heartbeat of each agent: PUT /api/agents/<id>/heartbeat.",
        )
    enabled = body.channels.get("enabled")
    if enabled is not None and not _is_enabled(enabled, body, current):
        yield SettingFixed(
            "channels.enabled cannot be changed",
            hint="A channel is enabled by its settings: POST /api/services/channel/NAME/start. "
            "GET /api/channels lists all channels.",
        )


def _is_enabled(enabled: JsonValue, body: SettingsUpdate, current: SettingsAnswer) -> bool:
    """Whether each channel of this list runs, or gets settings in the same request."""
    if not isinstance(enabled, list):
        return False
    names = {str(each) for each in enabled}
    return set(current.channels.enabled) <= names <= {*current.channels.enabled, *body.channels}


def _sent_channels(channels: Mapping[str, JsonValue]) -> dict[str, Value | None]:
    """Return the settings of channels as TinyAGI's clients send them, such as `bot_token`."""
    return {
        f"{name}.{setting}": value
        for name, each in channels.items()
        if name != "enabled" and isinstance(each, dict)
        for setting, value in each.items()
        if value is None or (isinstance(value, str | int | float) and not isinstance(value, bool))
    }


def _differences(sent: Mapping[str, Sent], current: Mapping[str, BaseModel]) -> dict[str, Sent]:
    """Return the bodies by name, with only the fields that differ from the present answers."""
    changed: dict[str, Sent] = {}
    for name, body in sorted(sent.items()):
        before = current[name].model_dump() if name in current else {}
        fields = body.model_dump(exclude_unset=True)
        news = {field: each for field, each in fields.items() if before.get(field) != each}
        if news or name not in current:
            changed[name] = type(body).model_validate(news)
    return changed


def _default_agent(tx: Transaction, models: ModelsUpdate, current: ModelsAnswer) -> AgentBody:
    """Return the requested change of the default agent's model; its provider stays."""
    provider = current.provider
    sent = TINYAGI_NAMES.get(models.provider or "", models.provider)
    if sent not in (None, "", provider):
        agent = tx.settings.default_agent
        raise SettingFixed(
            f"models.provider does not change the provider of @{agent}",
            hint=NO_DEFAULT_PROVIDER.format(agent=agent),
        )
    change: dict[str, str] = {}
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
                f"{name} is not the provider of the default agent",
                hint="Set the model of an agent with this provider in `agents`.",
            )
    return AgentBody.model_validate(change)


def _names() -> list[str]:
    services = known_services()
    return sorted(CORE_SERVICES) if services is None else [each["name"] for each in services]
