"""ChannelInfo: a channel, the form of its addresses and its settings; and the list of channels.

An account is one bot on a platform, such as `slack-sage` on `slack`. It has the platform's entry
under its own name, a table of settings of its own and a process of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from urllib.parse import urlsplit

from bullpen.core.registry.entries import SERVICE_NAME, LoadProblem, Registry

ACCOUNT_SUFFIX = r"-[a-z0-9]+(-[a-z0-9]+)*"
"""What an account adds to the name of its platform; no `_`, which is a `-` in variables."""
MAX_PORT = 65_535


@dataclass(frozen=True, slots=True)
class AddressFormat:
    """The form of a channel's addresses, as regular expressions of their parts."""

    chat: str
    example: str
    thread: str | None = None
    direct: bool = False
    """True if an address is that of a person, and needs no chat."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelLimits:
    """The limits of the platform; None is unlimited."""

    text_characters: int | None = None
    """The longest text of one platform message."""
    file_bytes: int | None = None
    """The largest file."""


@dataclass(frozen=True, slots=True)
class ChannelSetting:
    """A setting of each account of a channel, such as `bot_token` in the table [slack]."""

    name: str
    doc: str
    """One sentence."""
    _: KW_ONLY
    secret: bool = False
    default: str = ""
    required: bool = False
    """Whether the service is not started without it."""
    asked: bool = False
    """Whether setup asks for it although it may be empty."""
    when: tuple[str, str] | None = None
    """Another setting and its value, without which this one is not used."""
    choices: tuple[str, ...] = ()
    limits: tuple[int, int] | None = None
    """The least and the largest value; None if it is not a number."""
    url: bool = False
    """Whether it is a URL."""
    server: bool = False
    """Whether it is a server, as HOST:PORT."""
    fixed: str = ""
    """Why it can only be changed on the machine itself."""

    def check(self, value: str) -> str:
        """The value without surrounding blanks; raises ValueError if it is invalid."""
        value = value.strip()
        if not value:
            return ""
        if self.choices and value not in self.choices:
            raise ValueError(f"must be {' or '.join(self.choices)}")
        if self.limits is not None:
            return _check_number(value, *self.limits)
        if self.url and not _is_url(value):
            raise ValueError("must be a URL such as https://bullpen.example.org")
        if self.server:
            split_server(value)
        return value

    def applies(self, values: Mapping[str, str]) -> bool:
        """Whether an account with these settings uses this one."""
        return self.when is None or values.get(self.when[0]) == self.when[1]


def _check_number(value: str, least: int, most: int) -> str:
    try:
        number = int(value)
    except ValueError:
        raise ValueError("must be a whole number") from None
    if not least <= number <= most:
        raise ValueError(f"must be at least {least} and at most {most}")
    return str(number)


def _is_url(value: str) -> bool:
    url = urlsplit(value)
    return url.scheme in ("http", "https", "ws", "wss") and bool(url.hostname)


def split_server(value: str) -> tuple[str, int]:
    """The host and port of HOST:PORT; raises ValueError for another form."""
    host, _, port = value.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not re.fullmatch(r"[\w.:-]+", host) or not re.fullmatch(r"[0-9]{1,5}", port):
        raise ValueError("must be HOST:PORT, such as mail.example.org:993")
    if not 1 <= int(port) <= MAX_PORT:
        raise ValueError(f"must have a port of at most {MAX_PORT}")
    return host, int(port)


COMMON_SETTINGS = (
    ChannelSetting("default_agent", "Agent for new chats; empty = `default_agent` of Bullpen."),
    ChannelSetting(
        "mentions",
        "Messages for the bot in groups: `required` = only mentions and replies, `all` = each one.",
        default="required",
        choices=("required", "all"),
    ),
    ChannelSetting(
        "edits",
        "Edit of a message that is being processed: `ask` the sender, `rerun` or `ignore`.",
        default="ask",
        choices=("ask", "rerun", "ignore"),
    ),
    ChannelSetting(
        "age_fence_minutes",
        "Age above which a message that is fetched after a downtime is held, in minutes.",
        default="60",
        limits=(1, 1_000_000),
    ),
    ChannelSetting(
        "max_file_bytes",
        "Largest attachment that is downloaded, in bytes.",
        default=str(20 << 20),
        limits=(0, 1 << 40),
    ),
)
"""The settings of every channel with a client, which the base client reads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelInfo:
    """A channel: a platform on which people write and are answered, or one account on it."""

    name: str
    address: AddressFormat | None = None
    """None accepts every printable address."""
    settings: tuple[ChannelSetting, ...] = ()
    """The settings of each account, in addition to those of every channel."""
    limits: ChannelLimits = ChannelLimits()
    factory: str = ""
    """`module:attribute` of a callable that takes a `ChannelContext` and returns its client.

    Empty if there is no client."""
    manifest: str = ""
    """`module:attribute` of a function that returns the manifest of the platform's app, as JSON.

    It takes the name of the app and the account's settings. Empty if there is no manifest."""
    pull: bool = False
    """True if people fetch their responses, for example with `bullpen response read`.

    Only for built-in channels, because a package's channel delivers responses."""
    account_of: str = ""
    """The platform of an account with a name of its own, such as `slack` of `slack-sage`."""

    @property
    def platform(self) -> str:
        """The name of the platform: `slack`, also for the account `slack-sage`."""
        return self.account_of or self.name

    @property
    def all_settings(self) -> tuple[ChannelSetting, ...]:
        """Its settings, then those of every channel with a client."""
        if self.pull:
            return ()
        own = {each.name for each in self.settings}
        return (*self.settings, *(each for each in COMMON_SETTINGS if each.name not in own))

    @property
    def needs(self) -> tuple[str, ...]:
        """The settings without which no account works."""
        return tuple(each.name for each in self.settings if each.required and each.when is None)

    def setting(self, name: str) -> ChannelSetting | None:
        """The setting of this name."""
        return next((each for each in self.all_settings if each.name == name), None)

    def missing(self, values: Mapping[str, str]) -> list[str]:
        """The required settings that are empty in these values, which include defaults."""
        return [
            each.name
            for each in self.settings
            if each.required and each.applies(values) and not values.get(each.name)
        ]


class ChannelRegistry(Registry[ChannelInfo]):
    """All channels; an account is found under its own name."""

    def find(self, name: str) -> ChannelInfo | LoadProblem | None:
        """The channel of this name, or the platform's entry renamed to this account.

        An account's name is the platform's, extended by `-NAME`; the longest registered name wins.
        """
        if name in self.built_in:
            return self.built_in[name]
        if not re.fullmatch(SERVICE_NAME, name) or name in self._reserved:
            return super().find(name)
        if (platform := _platform_of(name, self._platforms())) is None:
            if (found := super().find(name)) is not None:
                return found
            platform = _platform_of(name, self.plugin_names()) if "-" in name else None
        if platform is None:
            return None
        info = super().find(platform)
        if not isinstance(info, ChannelInfo):
            return info
        return replace(info, name=name, account_of=platform)

    def _platforms(self) -> list[str]:
        return [each.name for each in self.built_in.values() if not each.pull]

    def _refusal(self, name: str) -> str:
        if _platform_of(name, self._platforms()):
            return "it is the name of an account of a built-in channel"
        return super()._refusal(name)


def _platform_of(account: str, platforms: Iterable[str]) -> str | None:
    """The longest of the platforms whose name the account extends."""
    fitting = [
        each
        for each in platforms
        if account.startswith(each) and re.fullmatch(ACCOUNT_SUFFIX, account[len(each) :])
    ]
    return max(fitting, key=len, default=None)


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
    port: int, *, when: tuple[str, str] | None = None, required: bool = True
) -> tuple[ChannelSetting, ChannelSetting]:
    """The settings of a listener for webhooks, behind a proxy with TLS."""
    return (
        ChannelSetting(
            "public_url",
            "URL at which the platform reaches the listener, such as "
            "`https://bots.example.org/slack`.",
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
    *_listener(3781, when=_HTTP),
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
    *_listener(3782, when=_WEBHOOK),
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


def _twilio(port: int) -> tuple[ChannelSetting, ...]:
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
        *_listener(port, required=False),
        _api_url("https://api.twilio.com"),
    )


_TEMPLATE = ChannelSetting(
    "template", "SID of the template for answers after the 24-hour window, `HX…`."
)

CHANNELS = ChannelRegistry(
    ChannelInfo,
    "bullpen.channels",
    (
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
            settings=_twilio(3783),
            factory="bullpen.channels.twilio.platform:Sms",
        ),
        ChannelInfo(
            name="whatsapp",
            address=AddressFormat(_PHONE_NUMBER, "whatsapp:+491701234567", direct=True),
            settings=(*_twilio(3784), _TEMPLATE),
            factory="bullpen.channels.twilio.platform:WhatsApp",
        ),
        ChannelInfo(
            name="web", address=AddressFormat(_ANY_NAME, "web:ann", direct=True), pull=True
        ),
        ChannelInfo(
            name="cli", address=AddressFormat(_ANY_NAME, "cli:owner", direct=True), pull=True
        ),
        ChannelInfo(
            name="api", address=AddressFormat(_ANY_NAME, "api:ann", direct=True), pull=True
        ),
    ),
    names=SERVICE_NAME,
    # Services of Bullpen, channels on which only Bullpen writes, and words of addresses.
    reserved=frozenset(
        {
            *("processor", "scheduler", "guard", "minder", "supervisord", "supervisor", "channel"),
            *("chatroom", "internal", "heartbeat", "schedule", "owner", "nowhere"),
        }
    ),
)
