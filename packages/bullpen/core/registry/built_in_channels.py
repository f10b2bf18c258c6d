"""The built-in channels: their settings, the form of their addresses and their limits."""

from __future__ import annotations

from bullpen.core.registry.channel_info import AddressFormat, ChannelInfo, ChannelLimits
from bullpen.core.registry.channel_settings import MAX_PORT, ChannelSetting

# Halves of surrogate pairs cannot be stored.
_ANY_NAME = r"[^\s/\x00-\x1f\x7f\ud800-\udfff]{0,200}"
_PHONE_NUMBER = r"\+[1-9]\d{6,14}"
_OTHER_SERVER = "another server would get the credentials"


def _api_url(default: str) -> ChannelSetting:
    return ChannelSetting(
        "api_url",
        "Base URL of the platform's API, for a proxy.",
        default=default,
        url=True,
        fixed=_OTHER_SERVER,
    )


def _listener(
    channel: str, port: int, *, when: tuple[str, str] | None = None, required: bool = True
) -> tuple[ChannelSetting, ChannelSetting]:
    """The settings of a listener for webhooks, behind a proxy with TLS."""
    return (
        ChannelSetting(
            "public_url",
            "URL at which the platform reaches the listener, such as "
            f"`https://bots.example.org/{channel}`.",
            required=required,
            asked=not required,
            when=when,
            url=True,
        ),
        ChannelSetting(
            "port",
            "Port of the listener on 127.0.0.1; each account needs its own.",
            default=str(port),
            when=when,
            limits=(1, MAX_PORT),
        ),
    )


_HTTP = ("transport", "http")
_WEBHOOK = ("transport", "webhook")

_SLACK = (
    ChannelSetting("bot_token", "Bot token, `xoxb-…`.", secret=True, required=True),
    ChannelSetting(
        "transport",
        "How events arrive: `socket` (Socket Mode, no public address) or `http`.",
        default="socket",
        choices=("socket", "http"),
    ),
    ChannelSetting(
        "app_token",
        "App-level token with `connections:write`, `xapp-…`, for Socket Mode.",
        secret=True,
        required=True,
        when=("transport", "socket"),
    ),
    ChannelSetting(
        "signing_secret",
        "Signing secret of the app, for HTTP.",
        secret=True,
        required=True,
        when=_HTTP,
    ),
    *_listener("slack", 3781, when=_HTTP),
    ChannelSetting(
        "agent_view",
        "`on` if the app is declared as an agent: each direct message is a thread, with Stop.",
        default="off",
        choices=("off", "on"),
    ),
    ChannelSetting(
        "agent_names",
        "`on` = messages show the name of the agent; needs the scope `chat:write.customize`.",
        default="off",
        choices=("off", "on"),
    ),
    ChannelSetting(
        "shared_channels",
        "`on` = people of other workspaces may write in channels shared with them.",
        default="off",
        choices=("off", "on"),
    ),
    _api_url("https://slack.com/api/"),
)

_TELEGRAM = (
    ChannelSetting("bot_token", "Token of the bot from @BotFather.", secret=True, required=True),
    ChannelSetting(
        "transport",
        "How updates arrive: `poll` (no public address) or `webhook`.",
        default="poll",
        choices=("poll", "webhook"),
    ),
    ChannelSetting(
        "webhook_secret",
        "Secret of the webhook, 1 to 256 letters, digits, `_` and `-`.",
        secret=True,
        required=True,
        when=_WEBHOOK,
    ),
    *_listener("telegram", 3782, when=_WEBHOOK),
    _api_url("https://api.telegram.org"),
)

_DISCORD = (
    ChannelSetting("bot_token", "Token of the bot.", secret=True, required=True),
    _api_url("https://discord.com/api/v10"),
    ChannelSetting(
        "gateway_url",
        "URL of the gateway, for a proxy; empty = read from Discord.",
        url=True,
        fixed=_OTHER_SERVER,
    ),
)


def _twilio(channel: str, port: int) -> tuple[ChannelSetting, ...]:
    """The settings of an account on Twilio."""
    return (
        ChannelSetting("account_sid", "Account SID, `AC…`.", required=True),
        ChannelSetting(
            "auth_token",
            "Auth token, which verifies the signatures of webhooks.",
            secret=True,
            required=True,
        ),
        ChannelSetting("number", "Number of the bot, such as `+15551234567`.", required=True),
        ChannelSetting("api_key", "SID of an API key, `SK…`; empty = the auth token is used."),
        ChannelSetting("api_secret", "Secret of the API key.", secret=True),
        ChannelSetting("messaging_service", "SID of a messaging service, `MG…`, as the sender."),
        *_listener(channel, port, required=False),
        _api_url("https://api.twilio.com"),
    )


_TEMPLATE = ChannelSetting(
    "template", "SID of the template for answers after the 24-hour window, `HX…`."
)

BUILT_IN_CHANNELS = (
    ChannelInfo(
        name="slack",
        address=AddressFormat(
            r"[CDGUW][A-Z0-9]{5,20}",
            "slack:C0123456789 or slack:C0123456789/1700000000.000100",
            r"\d{6,12}\.\d{1,9}",
        ),
        settings=_SLACK,
        limits=ChannelLimits(file_bytes=1 << 30),
        factory="bullpen.channels.slack.platform:Slack",
        manifest="bullpen.channels.slack.manifest:app_manifest",
    ),
    ChannelInfo(
        name="telegram",
        address=AddressFormat(r"-?[1-9]\d{0,18}", "telegram:123456789", r"[1-9]\d{0,18}"),
        settings=_TELEGRAM,
        limits=ChannelLimits(text_characters=4_096, file_bytes=50 << 20),
        factory="bullpen.channels.telegram.platform:Telegram",
    ),
    ChannelInfo(
        name="discord",
        address=AddressFormat(r"\d{15,20}", "discord:123456789012345678"),
        settings=_DISCORD,
        limits=ChannelLimits(text_characters=2_000, file_bytes=10 << 20),
        factory="bullpen.channels.discord.platform:Discord",
    ),
    ChannelInfo(
        name="sms",
        address=AddressFormat(_PHONE_NUMBER, "sms:+491701234567", direct=True),
        settings=_twilio("sms", 3783),
        factory="bullpen.channels.twilio.platform:Sms",
    ),
    ChannelInfo(
        name="whatsapp",
        address=AddressFormat(_PHONE_NUMBER, "whatsapp:+491701234567", direct=True),
        settings=(*_twilio("whatsapp", 3784), _TEMPLATE),
        factory="bullpen.channels.twilio.platform:WhatsApp",
    ),
    ChannelInfo(name="web", address=AddressFormat(_ANY_NAME, "web:ann", direct=True), pull=True),
    ChannelInfo(name="cli", address=AddressFormat(_ANY_NAME, "cli:owner", direct=True), pull=True),
    ChannelInfo(name="api", address=AddressFormat(_ANY_NAME, "api:ann", direct=True), pull=True),
)
