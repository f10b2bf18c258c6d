"""ChannelSetting: a setting of each account of a channel, such as `bot_token` in [slack]."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from urllib.parse import urlsplit

MAX_PORT = 65_535


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
            raise ValueError("must be a URL such as https://bots.example.org")
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
