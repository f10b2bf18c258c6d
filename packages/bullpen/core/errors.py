"""Every error that Bullpen raises on purpose.

    BullpenError
    ├── InputError                 the request cannot be carried out as it is
    │   ├── BadText                a NUL, a lone surrogate, an empty text
    │   ├── TextTooLong            over the limit of a message
    │   ├── BadNumber              one that no database can keep
    │   ├── BadDelay               a delay below zero
    │   ├── DeadlinePassed         a deadline in the past
    │   ├── BadDeadline            a deadline that no database can keep
    │   ├── BadClaim               of no message, or for no time
    │   ├── BadName                an id that has not the required form
    │   ├── BadTeam                without members, or its leader is none of them
    │   ├── BadProvider            without an address or key
    │   ├── BadSchedule            a time that never comes
    │   ├── BadPlace               an address that its channel cannot read
    │   ├── BadHeartbeat           an impossible interval, or impossible hours
    │   ├── BadKey                 a key without rights, or expired
    │   ├── BadRequest             not as the API's description says
    │   │   ├── NotJson            a body of another kind
    │   │   ├── TooSlow            the request did not come in time
    │   │   └── BodyTooLarge
    │   └── BadSetting             a setting that cannot be read
    │       └── SettingFixed       one that cannot be changed from here
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
    │   └── UnknownService
    ├── Conflict
    │   ├── DuplicateMessage       carries the state of the first one
    │   ├── NameTaken              by an agent, a team or a provider
    │   ├── StaleToken             the claim's lease is over; nothing was changed
    │   ├── IllegalMove            not from this state
    │   ├── ServiceFailed          it does not start or stop
    │   ├── TooMany                schedules that one agent has made
    │   └── InTheWay               something else is where a file should be
    ├── AccessError                the caller may not do this
    │   ├── NoAccess               no token, or an invalid or revoked one
    │   ├── TooManyFailures        from one address, in one minute
    │   ├── ScopeTooSmall
    │   ├── OutOfReach             the key does not reach this agent
    │   ├── MachineOnly            only the command line on the machine changes this
    │   ├── ForeignHost
    │   └── ForeignPage            the request comes from a page of another site
    ├── UnsafeSecret               blank, short, or readable by others
    ├── Overloaded                 too many at once; try again
    ├── UploadQuotaExceeded        an API key has as many bytes of files as it may
    ├── KeyBacklog                 as many messages of one key wait as may
    ├── NoSupervisor               the request needs a running supervisor
    ├── RunsAlready                a home has only one of it
    ├── UnsafeDirectory            others could put their own sockets into it
    ├── AddressTaken               another program listens there
    ├── ForeignListener            another program listens where the API should
    ├── NoApi                      the API does not run
    ├── LaneError
    │   ├── LaneFull
    │   ├── LaneClosed             draining or archived
    │   └── LaneBusy               has work that must end first
    └── StoreError
        ├── StoreBusy              try again
        ├── StoreUnavailable       the server or file cannot be reached
        │   └── CommitUnknown      it went away while it was committing
        ├── StoreFull              no room on the disk, or less than the reserve
        ├── StoreReadOnly
        ├── StoreCorrupt
        ├── StoreMissing           it was there, and was removed, emptied or replaced
        ├── BackupFailed           and left nothing behind
        ├── BadBackup              damaged, or not a backup
        ├── SchemaTooNew           made by a later Bullpen
        └── SchemaTooOld           needs `bullpen db upgrade`

Each has a stable `code` and an `http_status` for the API, an `exit_status` for the command line,
and a `hint` that tells the reader what to do.
"""

from __future__ import annotations

import re
from typing import ClassVar


class BullpenError(Exception):
    """What happened, in words; `hint` tells what to do about it.

    A subclass is declared with its hint. Its code is its name in lower case, unless it is given;
    its statuses are those of its parent, unless they are given.
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
    hint="Correct what was given; nothing was written.",
):
    """The request cannot be carried out as it is; nothing was written."""


class BadText(InputError, hint="Send text in UTF-8, without NUL characters."):
    """A text that cannot be stored."""


class TextTooLong(
    InputError,
    hint="Send a shorter text or attach it as a file; the limit is the setting `message_bytes`.",
):
    """A text over the limit."""


class BadNumber(InputError, hint="Give a number from 0 to 1000000000."):
    """A number that cannot be stored."""


class BadDelay(InputError, hint="Give a delay of zero or more milliseconds."):
    """A delay that is not zero or more."""


class DeadlinePassed(
    InputError, hint="Give a deadline in the future, in milliseconds since 1970 (UTC)."
):
    """A deadline that is over before the message is stored."""


class BadDeadline(
    InputError,
    hint="Give a deadline in milliseconds since 1970 (UTC), within the next hundred years.",
):
    """A deadline further away than any database can tell."""


class BadClaim(
    InputError, hint="Ask for one message or more, with a lease of one millisecond or more."
):
    """A claim of no message, or for no time."""


class BadName(InputError, hint="Use 1 to 32 of a-z, 0-9, - and _, the first a letter or digit."):
    """An id that has not the required form."""


class BadTeam(InputError, hint="Give its members, each once, and one of them as the leader."):
    """A team without members, or whose leader is not a member."""


class BadProvider(
    InputError, hint="Give an address that begins with http:// or https://, and a key."
):
    """A provider without an address or a key."""


class BadSchedule(
    InputError,
    hint="Give a cron expression as `0 9 * * 1-5`, an interval as `30m`, or a time to come.",
):
    """A time that never comes, or that cannot be parsed."""


class BadPlace(
    InputError, hint="Give a channel and an address on it, as `telegram:123456789`, or `nowhere`."
):
    """An address that its channel cannot read."""


class BadHeartbeat(
    InputError, hint="Give an interval of a minute or more, and hours as `08:00-18:00`."
):
    """A heartbeat with an impossible interval, or impossible hours."""


class BadKey(
    InputError,
    hint="Give a name, one scope or more, and an end in the future if it is to have one.",
):
    """A key without rights, or one that has expired before it is made."""


class BadRequest(InputError, hint="Compare it with the description at /openapi/openapi.json."):
    """A request that does not match the API's description."""


class NotJson(
    BadRequest, http_status=415, hint="Send JSON, with the header `Content-Type: application/json`."
):
    """A body that is not declared as JSON."""


class TooSlow(BadRequest, http_status=408, hint="Send it again, without pauses."):
    """The request did not come in time."""


class BodyTooLarge(
    BadRequest,
    http_status=413,
    hint="Send less; the limits are the settings `body_bytes` and `upload_bytes`.",
):
    """A body over the limit."""


class BadSetting(InputError, hint="Correct the setting in settings.toml or in the environment."):
    """A setting that cannot be read."""


class SettingFixed(
    BadSetting, hint="Change it in settings.toml on the machine itself, and restart Bullpen."
):
    """A setting that cannot be changed from here."""


class NotFound(BullpenError, http_status=404, hint="Check the name; a list shows what exists."):
    """What was named does not exist."""


class UnknownAgent(NotFound, hint="`bullpen agent list` shows the agents that exist."):
    """There is no agent of this name."""

    @classmethod
    def of(cls, agent: str) -> UnknownAgent:
        """The error for an id that no agent has."""
        return cls(f"there is no agent {agent[:40]!r}")


class UnknownTeam(NotFound, hint="`bullpen team list` shows the teams that exist."):
    """There is no team of this name."""


class UnknownProvider(NotFound, hint="`bullpen provider list` shows the providers that exist."):
    """There is no provider of this name."""


class UnknownMessage(NotFound, hint="Finished messages move to the archive after a day."):
    """There is no message of this id."""


class UnknownResponse(NotFound, hint="Delivered responses move to the archive after a day."):
    """There is no response of this id."""


class UnknownRecipient(NotFound, hint="Address an agent or a team that exists."):
    """No agent or team has this name; nothing was sent."""


class UnknownSchedule(NotFound, hint="`bullpen schedule list` shows the schedules that exist."):
    """There is no schedule of this id or label."""


class UnknownKey(NotFound, hint="`bullpen key list` shows the keys that exist."):
    """There is no key of this id."""


class UnknownFile(
    NotFound, hint="Files are named as they were when they were uploaded or answered."
):
    """There is no such file, or none that may be seen."""


class UnknownService(NotFound, hint="`bullpen status` shows the services that exist."):
    """There is no service of this name."""


class Conflict(BullpenError, http_status=409, hint="Look at its present state, then decide."):
    """The present state does not allow it."""


class DuplicateMessage(
    Conflict, hint="Nothing to do if this was a repeat; otherwise send it under a new id."
):
    """A message of this id was accepted before; the new one was not stored."""

    def __init__(self, message_id: str, status: str) -> None:
        super().__init__(f"message {message_id} exists already and is {status}")
        self.message_id = message_id
        self.status = status


class NameTaken(Conflict, hint="Choose another id, or change the one that exists."):
    """An agent, a team or a provider has this id; agents and teams share their names."""


class StaleToken(
    Conflict, hint="Stop the run and drop its output; the message is being taken care of."
):
    """The claim is no longer valid: its lease ended, or it was taken back."""


class IllegalMove(Conflict, hint="Look at its present state: not every move leads out of it."):
    """This cannot be done to something in its present state."""


class ServiceFailed(Conflict, hint="Look at its log, in the directory `logs` of the home."):
    """A service did not start or stop."""


class TooMany(
    Conflict,
    hint=(
        "Remove one of them first, or wait for an hour; the limit is the setting `agent_schedules`."
    ),
):
    """An agent has made as many schedules as it is allowed."""


class InTheWay(Conflict, hint="Look at what lies there, and move it away."):
    """Something else is where Bullpen would write a file or directory."""


class AccessError(BullpenError, code="no_right", http_status=403, hint="Use a key that may do it."):
    """The caller may not do this; nothing was done."""


class NoAccess(
    AccessError,
    http_status=401,
    hint="Send `Authorization: Bearer` with the token of the home, or with a key.",
):
    """No token was sent, or an invalid or revoked one."""


class TooManyFailures(
    AccessError,
    exit_status=75,
    http_status=429,
    hint="Wait a minute, and send a token that is right.",
):
    """One address sent too many wrong tokens; further ones are refused for a while."""


class ScopeTooSmall(AccessError, hint="Use a key that has this scope."):
    """The key is valid, but lacks the scope."""


class OutOfReach(AccessError, hint="Use a key that reaches this agent."):
    """The key is valid, but does not reach this agent."""


class MachineOnly(AccessError, hint="Change it at the command line on the machine itself."):
    """This is not changed over the API, whatever the key."""


class ForeignHost(
    AccessError, hint="Use the API's own address, or add the name to the setting `api_names`."
):
    """The request is addressed to another host."""


class ForeignPage(
    AccessError, hint="Add the page's origin to the setting `api_origins` if it is yours."
):
    """A page of another site made the request."""


class UnsafeSecret(BullpenError, hint="Delete the file; a new token is made at the next start."):
    """A secret that is blank, short, or readable by others."""


class Overloaded(BullpenError, exit_status=75, http_status=503, hint="Try again in a while."):
    """Too many requests wait, or too many clients listen."""


class UploadQuotaExceeded(
    BullpenError,
    code="upload_quota",
    http_status=507,
    hint=(
        "Ask the owner to delete files that are not needed; the limit is the setting "
        "`key_upload_bytes`."
    ),
):
    """The files that a key has stored are as large as they may be in all."""


class KeyBacklog(
    BullpenError,
    exit_status=75,
    http_status=429,
    hint="Wait until some are answered; the limits are the settings `key_pending` and "
    "`key_pending_bytes`.",
):
    """Messages of one key wait, as many as may."""


class NoSupervisor(BullpenError, http_status=409, hint="Start Bullpen with `bullpen up`."):
    """The request needs the supervisor, and none is running."""


class RunsAlready(BullpenError, hint="`bullpen status` shows what runs; `bullpen down` stops it."):
    """A second process of a service that may have only one."""


class UnsafeDirectory(
    BullpenError,
    hint="Remove the directory, or give it to yourself and let nobody else write to it.",
):
    """A directory that others than the owner can write to."""


class AddressTaken(
    BullpenError, hint="Stop the other program, or choose another port with the setting `api_port`."
):
    """The API's address is in use, or is not one of this machine."""


class ForeignListener(
    BullpenError,
    hint="Nothing was sent to it. Stop it, or choose another port with the setting `api_port`.",
):
    """Another program listens on the address of the API."""


class NoApi(BullpenError, hint="Start it with `bullpen up`."):
    """The API does not run."""


class LaneError(
    BullpenError, exit_status=75, http_status=409, hint="Look at the state of the agent's lane."
):
    """An agent's lane does not take this."""


class LaneFull(
    LaneError, http_status=429, hint="Try again later, or raise the lane's maximum depth."
):
    """The lane holds as many messages as it may."""


class LaneClosed(LaneError, hint="Resume the lane to let messages in again."):
    """The lane is draining or archived and takes nothing new."""


class LaneBusy(LaneError, hint="Drain the lane first, and wait until it is empty."):
    """The lane has work that must end first."""


class StoreError(
    BullpenError,
    http_status=503,
    hint="Look at the database and its disk; `bullpen doctor` checks both.",
):
    """The database failed."""


class StoreBusy(
    StoreError,
    exit_status=75,
    hint="Try again; if it lasts, look for a process that holds the database open.",
):
    """The database was locked for longer than the limit; nothing was written."""


class StoreUnavailable(
    StoreError,
    exit_status=75,
    hint="Check that the database runs and that `database_url` names it.",
):
    """The database cannot be reached, or went away."""


class CommitUnknown(
    StoreUnavailable,
    hint="Repeat it under the same message id or token: what was stored is not stored twice.",
):
    """The connection was lost during COMMIT: the transaction may be committed or not."""


class StoreFull(StoreError, hint="Free some disk space, then try again."):
    """There is no room left on the disk, or only the reserve; nothing was written."""


class StoreReadOnly(
    StoreError, hint="Check the owner and rights of the database file and of its directory."
):
    """The database cannot be written."""


class StoreCorrupt(
    StoreError, hint="Stop Bullpen, keep the damaged file aside, and restore a backup."
):
    """The file is not a database, or is damaged."""


class StoreMissing(
    StoreError,
    hint="`bullpen down`, and restore a backup: `bullpen db restore`. To begin again with an empty"
    " database: `bullpen up --new-database`.",
):
    """The database was removed, emptied or replaced; nothing was written."""


class BackupFailed(StoreError, hint="Look at the disk, or give another place."):
    """A backup could not be made or unpacked; no part of it is left behind."""


class BadBackup(
    StoreError, hint="`bullpen db verify` names each damage. Take another backup if you have one."
):
    """The file is damaged, or is not a backup."""


class SchemaTooNew(StoreError, hint="Install the version of Bullpen that made it, or a later one."):
    """The database was made by a later version of Bullpen."""


class SchemaTooOld(StoreError, hint="Run `bullpen up`, or `bullpen db upgrade`."):
    """The database is of an earlier version of Bullpen, or empty."""
