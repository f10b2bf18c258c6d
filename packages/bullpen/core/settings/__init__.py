"""Settings, such as `lease_seconds` in settings.toml; BULLPEN_LEASE_SECONDS takes precedence.

This module imports little, because the command line must answer in 150 ms.
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

from bullpen.core.errors import BadSetting
from bullpen.core.settings.accounts import AccountValues
from bullpen.core.settings.declare import declare, declare_secret
from bullpen.core.text import url_secrets

ENVIRONMENT_PREFIX = "BULLPEN_"
MAX_SOCKET_DIRECTORY_BYTES = 75
URL_SETTINGS = ("database_url", "spark_master")
"""URLs, which may contain a secret."""
MAX_DAYS = 1_000_000
MAX_COUNT = 1_000_000_000
"""The largest number that fits into a column of counts."""


class Durability(StrEnum):
    """What a committed message survives on SQLite."""

    DURABLE = "durable"
    FAST = "fast"


class LogFormat(StrEnum):
    """The format of log lines."""

    TEXT = "text"
    JSON = "json"


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Every setting with its default and purpose. To add a setting, add a field here."""

    home: Path = declare(
        Path("~/.bullpen"),
        "Directory with the database, the settings, the logs and the token.",
        section="Directories and database",
        fixed="settings.toml is in this directory",
    )
    workspace: Path = declare(
        Path("~/bullpen-workspace"),
        "Directory with the agents' working directories.",
        fixed="agents could get a directory with other data",
    )
    database_url: str = declare(
        "",
        "Database URL, such as `postgresql://USER@HOST/DATABASE`; "
        "empty = `bullpen.db` in the home.",
        fixed="another database has none of the present data",
    )
    durability: Durability = declare(
        Durability.DURABLE,
        "SQLite: `durable` survives a power failure, `fast` only the crash of a process.",
    )
    busy_seconds: int = declare(30, "Longest wait for a busy database, in seconds.", least=1)
    database_connections: int = declare(
        20, "PostgreSQL: maximum number of connections of each process.", least=2, most=10_000
    )
    wal_bytes: int = declare(
        4 << 20, "SQLite: size of the write-ahead log that triggers a checkpoint, in bytes."
    )
    poll_seconds: float = declare(
        0.5,
        "Interval at which an idle process checks for work if no wake-up arrives, in seconds.",
        least=0.01,
    )
    free_bytes_floor: int = declare(
        0,
        "Free disk space below which uploads and long texts are refused, in bytes; "
        "0 = 5 % of the disk, at most 200 MB.",
    )
    log_format: LogFormat = declare(
        LogFormat.TEXT, "Format of the services' logs: `text` or `json`."
    )
    time_zone: str = declare(
        "", "Owner's time zone, such as `Europe/Berlin`; empty = the machine's time zone."
    )
    owner_channel: str = declare("cli", "Channel on which the owner gets notices and questions.")
    owner_id: str = declare("", "Owner's id on `owner_channel`.")
    api_host: str = declare(
        "127.0.0.1",
        "Address on which the API listens.",
        section="API",
        fixed="other machines could reach the API",
    )
    api_port: int = declare(
        3777,
        "Port on which the API listens.",
        most=65535,
        fixed="clients would lose their connection",
    )
    api_names: str = declare(
        "",
        "Additional host names of the API, such as `bullpen.example.org,office`.",
        fixed="pages of other sites could reach the API",
    )
    api_origins: str = declare(
        "",
        "Origins of your own web pages that may use the API, such as `https://office.example.org`.",
        fixed="pages of other sites could reach the API",
    )
    public_url: str = declare(
        "",
        "URL of the API for browsers, behind a proxy with TLS, "
        "such as `https://bullpen.example.org`.",
        fixed="login links would lead to another address",
    )
    api_processes: int = declare(
        2, "Number of processes that serve the API.", least=1, most=64, reader="api"
    )
    api_streams: int = declare(
        2000,
        "Maximum number of live streams (SSE and WebSocket) of each API process.",
        least=1,
        most=100_000,
        reader="api",
    )
    api_threads: int = declare(
        256,
        "Maximum number of requests, long polls and WebSockets of each API process at once.",
        least=8,
        most=4096,
        reader="api",
    )
    api_address_connections: int = declare(
        256,
        "Maximum number of connections from one address that have not sent a complete request, "
        "for each API process.",
        least=1,
        most=100_000,
        reader="api",
    )
    api_request_seconds: int = declare(
        15, "Time limit for receiving the head of a request, in seconds.", least=1, reader="api"
    )
    api_stall_seconds: int = declare(
        20,
        "Time after which a request body or response slower than 1 KiB a second is ended, "
        "in seconds.",
        least=1,
        reader="api",
    )
    body_bytes: int = declare(
        1 << 20, "Largest request body, in bytes; uploads excepted.", least=1024, reader="api"
    )
    upload_bytes: int = declare(25 << 20, "Largest uploaded file, in bytes.", least=1, reader="api")
    key_upload_bytes: int = declare(
        1 << 30,
        "Maximum size of all uploaded files of one API key, in bytes; 0 = no limit. "
        "The owner's token has none.",
        reader="api",
    )
    key_pending: int = declare(
        1000,
        "Maximum number of pending messages per API key; 0 = no limit. The owner's token has none.",
        reader="api",
    )
    key_pending_bytes: int = declare(
        64 << 20,
        "Maximum size of all pending messages of one API key, in bytes; 0 = no limit.",
        reader="api",
    )
    page_bytes: int = declare(
        2 << 20,
        "Maximum size of one page of an API list, in bytes of text, whatever its `limit`.",
        least=1024,
        reader="api",
    )
    default_agent: str = declare(
        "assistant",
        "Agent that gets messages without a recipient.",
        section="Messages and runs",
    )
    message_bytes: int = declare(1 << 20, "Largest message, in bytes of UTF-8.", least=1)
    lease_seconds: int = declare(
        60, "Duration of a claim, in seconds. A worker renews it during the run.", least=1
    )
    claim_limit: int = declare(
        32, "Maximum number of pending messages that one run answers.", least=1, reader="processor"
    )
    max_runs: int = declare(
        8, "Maximum number of runs of a processor at once.", least=1, reader="processor"
    )
    run_seconds: int = declare(
        14_400, "Time limit of a run, in seconds.", least=1, reader="processor"
    )
    idle_seconds: int = declare(
        900,
        "Time without any output after which a run is ended and fails, in seconds.",
        least=1,
        reader="processor",
    )
    grace_seconds: int = declare(
        30, "Time that runs get to finish when the processor stops, in seconds.", reader="processor"
    )
    max_attempts: int = declare(
        5,
        "Failed attempts after which a message is dead; applies to new agents.",
        least=1,
        most=MAX_COUNT,
    )
    max_crashes: int = declare(
        5,
        "Number of runs ended by a crash of the processor after which a message is dead.",
        least=1,
    )
    retry_base_seconds: int = declare(
        2, "Delay before the first retry, in seconds; doubled for each further one."
    )
    retry_max_seconds: int = declare(300, "Longest delay before a retry, in seconds.")
    max_hops: int = declare(
        8, "Handoffs in a row before the next one is held for approval.", section="Limits"
    )
    max_messages: int = declare(
        50, "Messages in one conversation before the next one is held for approval."
    )
    max_cost: float = declare(
        0.0,
        "Cost of one conversation, in dollars, before its next message is held for approval; "
        "0 = no limit.",
    )
    agent_schedules: int = declare(
        20, "Maximum number of schedules that one agent may have, or create within an hour."
    )
    answer_characters: int = declare(
        4000,
        "Longest answer as text, in characters; a longer one is sent as a file with a preview.",
        least=1,
    )
    aggregate_minutes: int = declare(
        30, "Longest wait for all parts of a team's combined answer, in minutes."
    )
    pass_environment: str = declare(
        "",
        "Environment variables to pass to every agent's program, such as `AWS_*,EDITOR`.",
        section="Agents' programs",
        fixed="agents could see the environment variables of this machine",
    )
    sandbox_user: str = declare(
        "",
        "Unix account for agents with the sandbox `user`, such as `bullpen-{agent}`.",
        fixed="agents could run as other users of this machine",
    )
    anthropic_api_key: str = declare_secret("API key for claude.")
    anthropic_oauth_token: str = declare_secret(
        "Token of a subscription for claude; takes precedence over the API key."
    )
    openai_api_key: str = declare_secret("API key for codex.")
    delivery_attempts: int = declare(
        8,
        "Failed deliveries after which a response is dead.",
        least=1,
        section="Delivery and retention",
    )
    delivery_lease_seconds: int = declare(
        60,
        "Time that a channel client gets to deliver one part of a response, in seconds.",
        least=1,
    )
    response_hours: int = declare(
        24, "Time after which a response is no longer delivered, in hours.", most=MAX_DAYS
    )
    retention_hours: int = declare(
        24,
        "Time after which finished messages and responses move to the archive, in hours.",
        most=MAX_DAYS,
    )
    receipt_days: int = declare(
        8,
        "Retention of platform event ids, which detect duplicates, in days; at least 7.",
        least=7,
        most=MAX_DAYS,
    )
    archive_days: int = declare(
        90, "Retention of archived messages and responses in days; 0 = forever.", most=MAX_DAYS
    )
    history_days: int = declare(
        365, "Message history retention in days; 0 = forever.", most=MAX_DAYS
    )
    event_days: int = declare(30, "Event retention in days; 0 = forever.", most=MAX_DAYS)
    attempt_days: int = declare(
        365, "Retention of the records of runs in days; 0 = forever.", most=MAX_DAYS
    )
    schedule_days: int = declare(
        90, "Schedule and heartbeat history retention in days; 0 = forever.", most=MAX_DAYS
    )
    file_days: int = declare(
        30,
        "Retention in days of files that no live message or response refers to; 0 = forever.",
        most=MAX_DAYS,
    )

    spark_master: str = declare(
        "local[*]",
        "Spark that computes the reports: `local[*]`, `spark://HOST:PORT`, or `sc://HOST:PORT` "
        "for Spark Connect.",
        section="Reports",
        fixed="the facts would be sent to another machine",
    )
    reports_directory: Path = declare(
        Path("reports"),
        "Directory of the reports, relative to the home. All executors of a cluster must share it.",
        fixed="the reports would be read from another directory",
    )
    reports_minutes: int = declare(
        60,
        "Interval at which the service `reports` computes the reports, in minutes; 0 = never.",
        most=MAX_DAYS,
        reader="reports",
    )

    accounts: AccountValues = field(
        default_factory=AccountValues, hash=False, metadata={"accounts": True}
    )
    """The settings of channels' accounts, in tables of the file."""

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
    def reports(self) -> Path:
        """The directory of the reports, with their facts and results."""
        return (self.home / self.reports_directory).absolute()

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
        """The directory of sockets. Their paths have at most 107 bytes, so a deep home has none."""
        if len(str(self.run)) <= MAX_SOCKET_DIRECTORY_BYTES:
            return self.run
        name = hashlib.sha256(str(self.home).encode()).hexdigest()[:8]
        return Path(tempfile.gettempdir()) / f"bullpen-{os.getuid()}-{name}"

    def secrets(self) -> tuple[str, ...]:
        """The values that must never be shown: secret settings, and the secrets in URLs."""
        named = (
            str(getattr(self, each.name)) for each in fields(self) if "secret" in each.metadata
        )
        in_urls = (each for name in URL_SETTINGS for each in url_secrets(getattr(self, name)))
        found = (*named, *in_urls, *self.accounts.secrets())
        return tuple(each for each in found if each)

    def account(self, name: str) -> dict[str, str]:
        """The settings of a channel's account, such as `slack`, with their defaults."""
        return self.accounts.of(name)

    @classmethod
    def environment_for_runs(cls, environ: Mapping[str, str]) -> dict[str, str]:
        """Return the settings of an environment that commands in a run need, without secrets."""
        names = (
            ENVIRONMENT_PREFIX + each.name.upper()
            for each in FIELDS.values()
            if "secret" not in each.metadata and each.name not in URL_SETTINGS
        )
        return {name: environ[name] for name in names if name in environ}

    @classmethod
    def load(cls, environ: Mapping[str, str]) -> Settings:
        """Load the settings from the environment and from settings.toml in its home.

        Raises BadSetting for the first invalid value. Unknown names are ignored.
        """
        from bullpen.core.settings.parse import load_lenient

        settings, problems = load_lenient(environ)
        for each in problems:
            if not each.warning and not environ.get(ENVIRONMENT_PREFIX + each.name.upper()):
                raise BadSetting(str(each), hint=each.hint)
        return settings


FIELDS = {each.name: each for each in fields(Settings) if "accounts" not in each.metadata}
"""Every setting but those of accounts."""
DEFAULTS: dict[str, Any] = {name: each.default for name, each in FIELDS.items()}
