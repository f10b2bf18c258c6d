"""The manifest of a Slack app: what is pasted at api.slack.com to create the app."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bullpen.channels.slack.events import METADATA_EVENT
from bullpen.channels.slack.webhook import EVENTS_PATH
from bullpen.core.errors import BadSetting

SCOPES = (
    "app_mentions:read",
    "channels:history",
    "channels:read",
    "chat:write",
    "commands",
    "files:read",
    "files:write",
    "groups:history",
    "groups:read",
    "im:history",
    "im:read",
    "im:write",
    "mpim:history",
    "mpim:read",
    "reactions:write",
    "users:read",
)
OPTIONAL_SCOPES = ("assistant:write", "chat:write.customize", "metadata.message:read")
"""Status lines with Stop, the names of agents on messages, and events with the key of a part."""

EVENTS = (
    "app_mention",
    "app_uninstalled",
    "channel_archive",
    "channel_deleted",
    "channel_left",
    "channel_rename",
    "channel_unarchive",
    "group_archive",
    "group_deleted",
    "group_left",
    "group_rename",
    "group_unarchive",
    "member_joined_channel",
    "member_left_channel",
    "message.channels",
    "message.groups",
    "message.im",
    "message.mpim",
    "message_metadata_posted",
    "tokens_revoked",
)
AGENT_EVENTS = ("agent_session_stopped", "app_context_changed")

DESCRIPTION = "Agents that answer here"
LONG_DESCRIPTION = (
    "Write to the agents of your Bullpen installation: in a direct message, or in a channel with a "
    "mention. An agent answers in the thread. Commands such as /status begin with the name of the "
    "app's slash command; in threads they begin with an exclamation mark, for example !status."
)
PROMPTS = (("What can you do?", "/help"), ("Which agents are there?", "/agents"))
MAX_NAME = 35


def manifest(
    name: str, transport: str = "socket", url: str = "", agents: bool = False
) -> dict[str, object]:
    """The manifest of an app with this name.

    `url` is the public URL of the account, needed for the transport `http`. With `agents`, the app
    is declared as an agent, as the setting `agent_view` says.
    """
    request = {"request_url": f"{url.rstrip('/')}{EVENTS_PATH}"} if transport == "http" else {}
    return {
        "_metadata": {"major_version": 2, "minor_version": 1},
        "display_information": {
            "name": name[:MAX_NAME],
            "description": DESCRIPTION,
            "long_description": LONG_DESCRIPTION,
        },
        "features": _features(name[:MAX_NAME], request, agents),
        "oauth_config": {"scopes": {"bot": sorted((*SCOPES, *OPTIONAL_SCOPES))}},
        "settings": {
            "event_subscriptions": {
                **request,
                "bot_events": _events(agents),
                "metadata_subscriptions": [{"app_id": "*", "event_type": METADATA_EVENT}],
            },
            "interactivity": {"is_enabled": True, **request},
            "org_deploy_enabled": False,
            "socket_mode_enabled": transport != "http",
            "token_rotation_enabled": False,
        },
    }


def app_manifest(name: str, values: Mapping[str, str]) -> dict[str, object]:
    """The manifest of an app with this name, for an account with these settings."""
    if values["transport"] == "http" and not values["public_url"]:
        raise BadSetting(
            "the manifest for HTTP needs the setting public_url",
            hint="Set the URL at which Slack reaches the listener, such as "
            "`bullpen config set slack.public_url https://bots.example.org/slack`.",
        )
    agents = values["agent_view"] == "on"
    return manifest(name, values["transport"], values["public_url"], agents=agents)


def _features(name: str, request: dict[str, str], agents: bool) -> dict[str, object]:
    command: dict[str, object] = {
        "command": f"/{command_name(name)}",
        "description": "A command for Bullpen, or a message for an agent",
        "usage_hint": "agents | teams | status | stop | new | whoami | help",
        "should_escape": False,
    }
    if request:
        command["url"] = request["request_url"]
    features: dict[str, object] = {
        "app_home": {
            "home_tab_enabled": False,
            "messages_tab_enabled": True,
            "messages_tab_read_only_enabled": False,
        },
        "bot_user": {"display_name": name, "always_online": True},
        "slash_commands": [command],
    }
    if agents:
        features["agent_view"] = {
            "agent_description": DESCRIPTION,
            "suggested_prompts": [{"title": title, "message": text} for title, text in PROMPTS],
        }
    return features


def _events(agents: bool) -> Sequence[str]:
    return sorted((*EVENTS, *AGENT_EVENTS)) if agents else list(EVENTS)


def command_name(name: str) -> str:
    """The slash command of an app: its name in lower case, with hyphens."""
    letters = "".join(each if each.isalnum() and each.isascii() else " " for each in name.lower())
    return "-".join(letters.split())[:31] or "bullpen"
