"""Settings: `lease_seconds` in settings.toml; BULLPEN_LEASE_SECONDS in the environment wins.

Read with the standard library alone: the command line must answer in 150 ms.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from bullpen.core.errors import BadSchedule, BadSetting
from bullpen.core.text import url_secrets

ENVIRONMENT_PREFIX = "BULLPEN_"
MAX_SOCKET_DIRECTORY_BYTES = 75
MAX_SHOWN_CHARS = 80
MAX_NUMBER = 1 << 40
"""A number that sets no limit of its own may be as large as this."""
MAX_DAYS = 1_000_000
MAX_COUNT = 1_000_000_000
"""What a column of counts can keep."""


class Durability(StrEnum):
    """What a committed message survives on SQLite."""

    DURABLE = "durable"
    FAST = "fast"


class LogFormat(StrEnum):
    """The format of log lines."""

    TEXT = "text"
    JSON = "json"


def _setting(
    default: Any,  # noqa: ANN401 - as dataclasses.field itself
    doc: str,
    *,
    least: float = 0,
    most: float = MAX_NUMBER,
    reader: str = "",
    fixed: str = "",
) -> Any:  # noqa: ANN401 - as dataclasses.field itself
    """Declare a setting.

    `least` and `most` bound a number. `reader` is the service that alone reads it, `fixed` the
    reason why it can be changed on the machine itself only.
    """
    limits = {"least": least, "most": most}
    return field(default=default, metadata={"doc": doc, "reader": reader, "fixed": fixed, **limits})


def _secret(doc: str) -> Any:  # noqa: ANN401 - as dataclasses.field itself
    return field(
        default="", repr=False, metadata={"doc": doc, "reader": "", "fixed": "", "secret": True}
    )


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Every setting with its default and purpose; one line here adds one."""

    home: Path = _setting(
        Path("~/.bullpen"),
        "where everything of this installation lives",
        fixed="it says where this file is",
    )
    workspace: Path = _setting(
        Path("~/bullpen-workspace"),
        "where agents work",
        fixed="it would let agents work where everything else lies",
    )
    database_url: str = _setting(
        "",
        "an SQLAlchemy URL; empty is bullpen.db in the home",
        fixed="everything of this installation is there",
    )
    api_host: str = _setting(
        "127.0.0.1", "the address on which the API listens", fixed="it would let other machines in"
    )
    api_port: int = _setting(
        3777,
        "the port on which the API listens",
        most=65535,
        fixed="whoever asks would not find it again",
    )
    api_names: str = _setting(
        "",
        "more host names under which the API may be asked, as `bullpen.example.org,office`",
        fixed="it would let other pages in",
    )
    api_origins: str = _setting(
        "",
        "origins of your own pages that may use the API, as `https://office.example.org`",
        fixed="it would let other pages in",
    )
    public_url: str = _setting(
        "",
        "where browsers reach the API behind a proxy with TLS, as `https://bullpen.example.org`",
        fixed="it would send browsers elsewhere",
    )
    api_processes: int = _setting(
        2, "how many processes serve the API", least=1, most=64, reader="api"
    )
    api_streams: int = _setting(
        2000,
        "how many may follow the events at once, in each of them",
        least=1,
        most=100_000,
        reader="api",
    )
    api_threads: int = _setting(
        256,
        "how many requests, long polls and WebSockets each of them serves at once",
        least=8,
        most=4096,
        reader="api",
    )
    api_address_connections: int = _setting(
        256,
        "how many connections of one address may wait without a whole request, in each of them",
        least=1,
        most=100_000,
        reader="api",
    )
    api_request_seconds: int = _setting(
        15, "how long a client may take to send the head of a request", least=1, reader="api"
    )
    api_stall_seconds: int = _setting(
        20,
        "when a body or an answer that moves at less than 1 KiB a second is ended",
        least=1,
        reader="api",
    )
    body_bytes: int = _setting(1 << 20, "the longest request, in bytes", least=1024, reader="api")
    upload_bytes: int = _setting(
        25 << 20, "the largest file that is uploaded, in bytes", least=1, reader="api"
    )
    key_upload_bytes: int = _setting(
        1 << 30,
        "bytes of all files that one API key has stored, the owner's token excepted; 0 is any",
        reader="api",
    )
    free_bytes_floor: int = _setting(
        0,
        "with less free disk space uploads and long texts are refused; 0 is 5 % of the disk, at "
        "most 200 MB",
    )
    key_pending: int = _setting(
        1000,
        "how many messages of one API key may wait, the owner's token excepted; 0 is any",
        reader="api",
    )
    key_pending_bytes: int = _setting(
        64 << 20,
        "how many bytes the waiting messages of one API key may have; 0 is any",
        reader="api",
    )
    page_bytes: int = _setting(
        2 << 20,
        "after how many bytes of text a list's page over the API ends, whatever its `limit`",
        least=1024,
        reader="api",
    )
    log_format: LogFormat = _setting(LogFormat.TEXT, "how the services log: `text` or `json`")
    durability: Durability = _setting(
        Durability.DURABLE,
        "SQLite only: `durable` survives a power cut, `fast` any crash of a process",
    )
    busy_seconds: int = _setting(
        30, "how long to wait for the database before saying it is busy", least=1
    )
    database_connections: int = _setting(
        20, "PostgreSQL only: how many connections a process has at once", least=2, most=10_000
    )
    message_bytes: int = _setting(1 << 20, "the longest message, in bytes of UTF-8", least=1)
    lease_seconds: int = _setting(60, "how long a claim lasts unless it is renewed", least=1)
    claim_limit: int = _setting(
        32, "how many waiting messages one run may answer", least=1, reader="processor"
    )
    max_attempts: int = _setting(
        5, "failed runs before a message is dead, for new lanes", least=1, most=MAX_COUNT
    )
    max_crashes: int = _setting(
        5, "runs that died with their processor before a message is dead", least=1
    )
    retry_base_seconds: int = _setting(2, "the back-off after the first failure, doubled each time")
    retry_max_seconds: int = _setting(300, "the longest back-off")
    max_runs: int = _setting(
        8, "how many runs a processor has at once", least=1, reader="processor"
    )
    grace_seconds: int = _setting(
        30, "how long runs may go on when their processor stops", reader="processor"
    )
    idle_seconds: int = _setting(
        900, "a run that says nothing for so long is ended, and fails", least=1, reader="processor"
    )
    run_seconds: int = _setting(
        14_400, "the longest that a run may take", least=1, reader="processor"
    )
    default_agent: str = _setting("assistant", "who answers what is addressed to nobody")
    max_hops: int = _setting(8, "handoffs in a row before a person must let them go on")
    max_messages: int = _setting(50, "messages of one conversation before a person must")
    max_cost: float = _setting(0.0, "dollars of one conversation before a person must; 0 is any")
    answer_characters: int = _setting(
        4000, "a longer answer goes out as a file with a preview", least=1
    )
    aggregate_minutes: int = _setting(30, "how long a team's one answer waits for all its parts")
    owner_channel: str = _setting(
        "cli", "the channel on which the owner is told what needs a person"
    )
    owner_id: str = _setting("", "the owner's id on that channel")
    time_zone: str = _setting(
        "", "the owner's time zone, as `Europe/Berlin`; empty is the machine's own"
    )
    agent_schedules: int = _setting(
        20, "how many schedules an agent may have at once, or make in an hour"
    )
    pass_environment: str = _setting(
        "",
        "more variables that every agent's program may see, as `AWS_*,EDITOR`",
        fixed="it would hand the variables of this machine to every agent",
    )
    sandbox_user: str = _setting(
        "",
        "the unix account as which agents with the sandbox `user` run, as `bullpen-{agent}`",
        fixed="it would let agents run as other users of this machine",
    )
    anthropic_api_key: str = _secret("for claude: a key")
    anthropic_oauth_token: str = _secret("for claude: a subscription's token; it wins over the key")
    openai_api_key: str = _secret("for codex: a key")
    delivery_attempts: int = _setting(8, "tries to deliver a response before it is dead", least=1)
    delivery_lease_seconds: int = _setting(
        60, "how long a channel client may take for a part", least=1
    )
    response_hours: int = _setting(24, "how long a response is worth delivering", most=MAX_DAYS)
    retention_hours: int = _setting(
        24, "when finished messages and responses go to the archive", most=MAX_DAYS
    )
    receipt_days: int = _setting(
        8, "how long platform event ids are remembered; at least 7", least=7, most=MAX_DAYS
    )
    archive_days: int = _setting(
        90, "how long archived messages and responses are kept; 0 is ever", most=MAX_DAYS
    )
    history_days: int = _setting(
        365, "how long it is kept what was said; 0 is for ever", most=MAX_DAYS
    )
    event_days: int = _setting(30, "how long events are kept; 0 is for ever", most=MAX_DAYS)
    attempt_days: int = _setting(
        365, "how long the record of runs is kept; 0 is for ever", most=MAX_DAYS
    )
    schedule_days: int = _setting(
        90, "how long it is kept when what was due; 0 is for ever", most=MAX_DAYS
    )
    file_days: int = _setting(
        30, "how long files lie that nothing waiting names; 0 is for ever", most=MAX_DAYS
    )
    poll_seconds: float = _setting(
        0.5, "how often a waiting process looks without being woken", least=0.01
    )
    wal_bytes: int = _setting(4 << 20, "the write-ahead log's size that asks for a checkpoint")

    @property
    def url(self) -> str:
        """The URL of the database, or of the default one."""
        return self.database_url or f"sqlite:///{self.home / 'bullpen.db'}"

    @property
    def token_file(self) -> Path:
        """The file with the owner's token for the API."""
        return self.home / "token"

    @property
    def files(self) -> Path:
        """The directory of files from and for people."""
        return self.home / "files"

    @property
    def logs(self) -> Path:
        """The directory of the services' logs."""
        return self.home / "logs"

    @property
    def run(self) -> Path:
        """The directory of locks, process ids and sockets."""
        return self.home / "run"

    @property
    def sockets(self) -> Path:
        """The directory of sockets, whose paths have 107 bytes at most; outside a deep home."""
        if len(str(self.run)) <= MAX_SOCKET_DIRECTORY_BYTES:
            return self.run
        name = hashlib.sha256(str(self.home).encode()).hexdigest()[:8]
        return Path(tempfile.gettempdir()) / f"bullpen-{os.getuid()}-{name}"

    def secrets(self) -> tuple[str, ...]:
        """The values that must never be shown: secret settings, and the database's password."""
        named = (
            str(getattr(self, each.name)) for each in fields(self) if "secret" in each.metadata
        )
        return tuple(each for each in (*named, *url_secrets(self.database_url)) if each)

    @classmethod
    def environment_for_runs(cls, environ: Mapping[str, str]) -> dict[str, str]:
        """The settings in an environment that a command in a run needs, without secrets."""
        names = (
            ENVIRONMENT_PREFIX + each.name.upper()
            for each in fields(cls)
            if "secret" not in each.metadata and each.name != "database_url"
        )
        return {name: environ[name] for name in names if name in environ}

    @classmethod
    def load(cls, environ: Mapping[str, str]) -> Settings:
        """The settings from an environment and settings.toml in its home.

        Raises BadSetting for the first invalid value. Unknown names are ignored.
        """
        from bullpen.core.settings.parse import load_lenient

        settings, problems = load_lenient(environ)
        for each in problems:
            if not each.warning and not environ.get(ENVIRONMENT_PREFIX + each.name.upper()):
                raise BadSetting(str(each), hint=each.hint)
        return settings


FIELDS = {each.name: each for each in fields(Settings)}
DEFAULTS: dict[str, Any] = {name: each.default for name, each in FIELDS.items()}


def parse_setting(name: str, value: object) -> Any:  # noqa: ANN401 - of the setting's own type
    """Parse a value in the setting's type; raises BadSetting if it is invalid."""
    default = DEFAULTS[name]
    try:
        return _converted(name, default, value)
    except (ValueError, RuntimeError, BadSchedule) as error:
        hint = error.hint if isinstance(error, BadSchedule) else f"Its default is {default}."
        what = "as it is" if _may_hold_secret(name) else repr(value)[:MAX_SHOWN_CHARS]
        raise BadSetting(f"setting {name} cannot be {what}: {error}", hint=hint) from error


def _converted(name: str, default: object, value: object) -> object:
    """The value in the type of the default."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float, Path)):
        raise ValueError(f"it must be {_describe_type(default)}")
    if isinstance(default, Path):
        return Path(str(value)).expanduser()
    if isinstance(default, (int, float)):
        return _check_range(name, _number(default, value))
    if isinstance(default, StrEnum):
        return _choice(type(default), str(value))
    if name == "time_zone" and value:
        from bullpen.core.clock import get_zone  # loaded here so that commands start fast

        return get_zone(str(value)).key
    if name == "public_url" and value:
        return _origin(str(value))
    return str(value)


def _origin(value: str) -> str:
    """Scheme, host and port of a URL that has nothing else."""
    url = urlsplit(value.strip().lower().rstrip("/"))
    origin = f"{url.scheme}://{url.netloc}"
    if url.scheme not in ("http", "https") or not url.hostname or "@" in url.netloc:
        raise ValueError("it must be a URL, as https://bullpen.example.org")
    if url.geturl() != origin:
        raise ValueError("it must be scheme and host, with nothing behind them")
    return origin


def _number(default: float, value: object) -> float:
    try:
        return type(default)(str(value))
    except ValueError:
        raise ValueError(f"it must be {_describe_type(default)}") from None


def _choice(kind: type[StrEnum], value: str) -> StrEnum:
    try:
        return kind(value)
    except ValueError:
        raise ValueError(f"it must be {' or '.join(kind)}") from None


def _describe_type(default: object) -> str:
    """The type of a setting, in words."""
    if isinstance(default, StrEnum):
        return " or ".join(type(default))
    if isinstance(default, int):
        return "a whole number"
    if isinstance(default, float):
        return "a number"
    return "a path" if isinstance(default, Path) else "text"


def _may_hold_secret(name: str) -> bool:
    """Whether a value of the setting may contain a secret."""
    return name == "database_url" or is_secret(name)


def is_secret(name: str) -> bool:
    """Whether the value of a setting must not be shown."""
    return name in FIELDS and "secret" in FIELDS[name].metadata


def _check_range(name: str, number: float) -> float:
    """Check a number against the limits of its setting."""
    limits = FIELDS[name].metadata
    least, most = limits["least"], limits["most"]
    if not number >= least:  # written so that NaN fails as well
        raise ValueError(f"it must be {least} or more")
    if number > most:
        raise ValueError(f"it must be {most} or less")
    return number
