"""Settings: seen without their secrets, and changed one by one."""

from __future__ import annotations

from pydantic import Field

from bullpen.api.context import api, reach, read, write
from bullpen.api.models import Done
from bullpen.api.route import blueprint, route
from bullpen.api.services import known_services
from bullpen.api.settings_shown import SettingsAnswer, settings_file, show_settings
from bullpen.api.settings_wished import Wished, merge_roster, wanted
from bullpen.core.access.key import Scope
from bullpen.core.errors import BullpenError, Conflict, LaneError, NotFound
from bullpen.core.roster.find import get_agent
from bullpen.core.services.supervisor import CORE_SERVICES
from bullpen.core.settings_file import services_reading
from bullpen.core.workspace.provision import prepare_directory

ROUTES = blueprint("settings", "What can be set, and what is.")

MERGING: tuple[type[BullpenError], ...] = (NotFound, Conflict, LaneError)


class SettingsDone(Done):
    """Everything as it is now."""

    settings: SettingsAnswer
    restart: list[str] = Field(description="the services that must restart for what was changed")


@route(ROUTES, "GET", "/api/settings", scope=Scope.ADMIN, answer=SettingsAnswer)
def settings() -> SettingsAnswer:
    """Show everything that can be set, secrets masked, as it will be after the next start.

    Below `settings` is each of Bullpen's own; what stands above it, the reference's clients read.
    """
    reach(None)
    with read() as tx:
        return show_settings(tx)


@route(
    ROUTES,
    "PUT",
    "/api/settings",
    scope=Scope.ADMIN,
    answer=SettingsDone,
    errors=MERGING,
    audited=True,
)
def change(body: Wished) -> SettingsDone:
    """Change what is sent, at any depth, and keep the rest.

    What is shown may be sent back as a whole: a secret's mask, and what is so already, change
    nothing. What would open this machine is changed on the machine itself, and refused here.
    """
    return _merge(body)


@route(
    ROUTES,
    "POST",
    "/api/setup",
    scope=Scope.ADMIN,
    answer=SettingsDone,
    errors=MERGING,
    audited=True,
)
def set_up(body: Wished) -> SettingsDone:
    """Change what is sent and keep the rest, as PUT /api/settings does."""
    return _merge(body)


def _merge(body: Wished) -> SettingsDone:
    reach(None)
    file = settings_file()
    with file.locked():
        with read() as tx:
            shown = show_settings(tx)
        changes = wanted(file, body, shown)
        with write() as tx:
            agents = merge_roster(tx, body, shown)
            if isinstance(agent := changes.get("default_agent"), str):
                get_agent(tx, agent)
            # The last thing that may fail: if it does, nothing of all this was done.
            file.write(changes)
    for agent_id in agents:
        prepare_directory(api().settings, agent_id)
    with read() as tx:
        shown = show_settings(tx)
    return SettingsDone(settings=shown, restart=services_reading(changes, _names()))


def _names() -> list[str]:
    services = known_services()
    return sorted(CORE_SERVICES) if services is None else [each["name"] for each in services]
