"""Every error that Bullpen raises on purpose.

    BullpenError
    ├── InputError                 what was asked cannot be done as asked
    │   ├── BadText                a NUL, a lone surrogate, an empty text
    │   ├── TextTooLong            over the limit of a message
    │   ├── BadDelay               a delay below zero
    │   ├── DeadlinePassed         a deadline that is over already
    │   ├── BadDeadline            a deadline that no database can keep
    │   ├── BadClaim               no message, or for no time
    │   ├── BadName                an agent or id that is not of the form
    │   ├── BadTeam                without members, or its leader is none of them
    │   ├── BadProvider            without an address or key
    │   ├── BadState               a state that does not exist
    │   ├── BadSchedule            a time that never comes
    │   ├── BadPlace               an address that its channel cannot read
    │   ├── BadHeartbeat           an interval or hours that cannot be
    │   ├── BadKey                 a key that could do nothing
    │   ├── BadRequest             not what the API's description says
    │   │   ├── NotJson            a body of another kind
    │   │   └── BodyTooLarge
    │   └── BadSetting             a setting that cannot be read
    │       └── SettingFixed       one that cannot be changed from here
    ├── NotFound
    │   ├── UnknownAgent
    │   ├── UnknownTeam
    │   ├── UnknownProvider
    │   ├── UnknownMessage
    │   ├── UnknownResponse
    │   ├── UnknownRecipient       nobody has the name that was addressed
    │   ├── UnknownSchedule
    │   ├── UnknownKey
    │   ├── UnknownFile
    │   └── UnknownService
    ├── Conflict
    │   ├── DuplicateMessage       carries the state of the first one
    │   ├── NameTaken              by an agent, a team or a provider
    │   ├── StaleToken             the lease is lost; nothing was changed
    │   ├── IllegalMove            not from this state
    │   ├── ServiceFailed          it does not start or stop
    │   ├── TooMany                schedules of one agent's making
    │   └── InTheWay               something else lies where a file is to be
    ├── AccessError                who asks may not do this
    │   ├── NoAccess               no token, or one that opens nothing
    │   ├── TooManyFailures        of one address, in one minute
    │   ├── ScopeTooSmall
    │   ├── OutOfReach             another agent's
    │   ├── ForeignHost
    │   └── ForeignPage            a page of another site asks
    ├── UnsafeSecret               blank, short, or readable by others
    ├── Overloaded                 too many at once; try again
    ├── NoSupervisor               what was asked needs the supervisor
    ├── RunsAlready                there may be one of it in a home
    ├── UnsafeDirectory            others could put their own sockets there
    ├── AddressTaken               nobody else can listen there
    ├── LaneError
    │   ├── LaneFull
    │   ├── LaneClosed             draining or archived
    │   └── LaneBusy               has work that must end first
    └── StoreError
        ├── StoreBusy              try again
        ├── StoreUnavailable       the server or file cannot be reached
        │   └── CommitUnknown      it went away while it was committing
        ├── StoreFull              no room on the disk
        ├── StoreReadOnly
        ├── StoreCorrupt
        ├── BackupFailed           nothing is left that looks like one
        ├── BadBackup              damaged, or none
        ├── SchemaTooNew           made by a later Bullpen
        └── SchemaTooOld           needs `bullpen db upgrade`

Each has a stable `code` for the API, an `exit_status` for the command line, and a `hint` that says
what the reader can do.
"""

from __future__ import annotations

from typing import ClassVar


class BullpenError(Exception):
    """What happened, in words; `hint` says what to do about it."""

    code: ClassVar[str] = "error"
    exit_status: ClassVar[int] = 1
    hint: str = ""

    def __init__(self, text: str, hint: str | None = None) -> None:
        super().__init__(text)
        if hint is not None:
            self.hint = hint


class AccessError(BullpenError):
    """Who asks may not do this; nothing was done."""

    code = "no_right"
    hint = "Use a key that may do it."


class NoAccess(AccessError):
    """No token was sent, or one that opens nothing."""

    code = "no_access"
    hint = "Send `Authorization: Bearer` with the token of the home, or with a key."


class TooManyFailures(AccessError):
    """So many wrong tokens came from one address that more are not looked at for a while."""

    code = "too_many_failures"
    exit_status = 75
    hint = "Wait a minute, and send a token that is right."


class ScopeTooSmall(AccessError):
    """The key is good, and not for this."""

    code = "scope_too_small"
    hint = "Use a key that has this scope."


class OutOfReach(AccessError):
    """The key is good, and not for this agent."""

    code = "out_of_reach"
    hint = "Use a key that reaches this agent."


class ForeignHost(AccessError):
    """The request names a host that this is not."""

    code = "foreign_host"
    hint = "Use the API's own address, or add the name to the setting `api_names`."


class ForeignPage(AccessError):
    """A page of another site made the request."""

    code = "foreign_page"
    hint = "Add the page's origin to the setting `api_origins` if it is yours."


class Conflict(BullpenError):
    """The state of things does not allow it."""

    code = "conflict"
    hint = "Look at its present state, then decide."


class DuplicateMessage(Conflict):
    """A message of this id was accepted before; the new one was not stored."""

    code = "duplicate_message"
    hint = "Nothing to do if this was a repeat; otherwise send it under a new id."

    def __init__(self, message_id: str, status: str) -> None:
        super().__init__(f"message {message_id} exists already and is {status}")
        self.message_id = message_id
        self.status = status


class NameTaken(Conflict):
    """An agent, a team or a provider has this id; agents and teams share their names."""

    code = "name_taken"
    hint = "Choose another id, or change the one that exists."


class StaleToken(Conflict):
    """The claim is no longer yours: its lease ended or somebody took it back."""

    code = "stale_token"
    hint = "Stop the run and drop its output; the message is being taken care of."


class IllegalMove(Conflict):
    """This cannot be done to something in its present state."""

    code = "illegal_move"
    hint = "Look at its present state: not every move leads out of it."


class TooMany(Conflict):
    """An agent has made as many schedules as it may."""

    code = "too_many"
    hint = (
        "Remove one of them first, or wait for an hour; the limit is the setting `agent_schedules`."
    )


class InTheWay(Conflict):
    """Something lies in a directory where a file or directory of Bullpen's is to be."""

    code = "in_the_way"
    hint = "Look at what lies there, and move it away."


class ServiceFailed(Conflict):
    """A service that was told to start or stop, and did not."""

    code = "service_failed"
    hint = "Look at its log, in the directory `logs` of the home."


class InputError(BullpenError):
    """What was asked cannot be done as asked; nothing was written."""

    code = "bad_input"
    exit_status = 2
    hint = "Correct what was given; nothing was written."


class BadText(InputError):
    """A text that cannot be stored."""

    code = "bad_text"
    hint = "Send text in UTF-8, without NUL characters."


class TextTooLong(InputError):
    """A text over the limit."""

    code = "text_too_long"
    hint = "Send a shorter text or attach it as a file; the limit is the setting `message_bytes`."


class BadDelay(InputError):
    """A delay that is not zero or more."""

    code = "bad_delay"
    hint = "Give a delay of zero or more milliseconds."


class DeadlinePassed(InputError):
    """A deadline that is over before the message is stored."""

    code = "deadline_passed"
    hint = "Give a deadline in the future, in milliseconds since 1970 (UTC)."


class BadDeadline(InputError):
    """A deadline further away than any database can tell."""

    code = "bad_deadline"
    hint = "Give a deadline in milliseconds since 1970 (UTC), within the next hundred years."


class BadClaim(InputError):
    """A claim of no message, or for no time."""

    code = "bad_claim"
    hint = "Ask for one message or more, with a lease of one millisecond or more."


class BadName(InputError):
    """An id that is not of the form that its place asks for."""

    code = "bad_name"
    hint = "Use 1 to 32 of a-z, 0-9, - and _, the first a letter or digit."


class BadTeam(InputError):
    """A team that cannot be."""

    code = "bad_team"
    hint = "Give its members, each once, and one of them as the leader."


class BadProvider(InputError):
    """A provider that cannot be reached or paid."""

    code = "bad_provider"
    hint = "Give an address that begins with http:// or https://, and a key."


class BadState(InputError):
    """A state that does not exist."""

    code = "bad_state"
    hint = "Give one of the states that exist."


class BadSetting(InputError):
    """A setting that cannot be read."""

    code = "bad_setting"
    hint = "Correct the setting in settings.toml or in the environment."


class SettingFixed(BadSetting):
    """A setting that cannot be changed from here."""

    code = "setting_fixed"
    hint = "Change it in settings.toml on the machine itself, and restart Bullpen."


class BadSchedule(InputError):
    """A time that never comes, or that nobody can read."""

    code = "bad_schedule"
    hint = "Give a cron expression as `0 9 * * 1-5`, an interval as `30m`, or a time to come."


class BadPlace(InputError):
    """An address that its channel cannot read."""

    code = "bad_place"
    hint = "Give a channel and an address on it, as `telegram:123456789`, or `nowhere`."


class BadHeartbeat(InputError):
    """A heartbeat that cannot be."""

    code = "bad_heartbeat"
    hint = "Give an interval of a minute or more, and hours as `08:00-18:00`."


class BadKey(InputError):
    """A key that could do nothing, or nothing any more."""

    code = "bad_key"
    hint = "Give a name, one scope or more, and an end in the future if it is to have one."


class BadRequest(InputError):
    """A request that is not as the API's description says."""

    code = "bad_request"
    hint = "Compare it with the description at /openapi/openapi.json."


class NotJson(BadRequest):
    """A body that is not declared as JSON."""

    code = "not_json"
    hint = "Send JSON, with the header `Content-Type: application/json`."


class BodyTooLarge(BadRequest):
    """A body over the limit."""

    code = "body_too_large"
    hint = "Send less; the limits are the settings `body_bytes` and `upload_bytes`."


class LaneError(BullpenError):
    """An agent's lane does not take this."""

    code = "lane_error"
    exit_status = 75
    hint = "Look at the state of the agent's lane."


class LaneFull(LaneError):
    """The lane holds as many messages as it may."""

    code = "lane_full"
    hint = "Try again later, or raise the lane's maximum depth."


class LaneClosed(LaneError):
    """The lane is draining or archived and takes nothing new."""

    code = "lane_closed"
    hint = "Resume the lane to let messages in again."


class LaneBusy(LaneError):
    """The lane has work that must end first."""

    code = "lane_busy"
    hint = "Drain the lane first, and wait until it is empty."


class NotFound(BullpenError):
    """What was named does not exist."""

    code = "not_found"
    hint = "Check the name; a list shows what exists."


class UnknownAgent(NotFound):
    """There is no agent of this name."""

    code = "unknown_agent"
    hint = "`bullpen agent list` shows the agents that exist."


class UnknownTeam(NotFound):
    """There is no team of this name."""

    code = "unknown_team"
    hint = "`bullpen team list` shows the teams that exist."


class UnknownProvider(NotFound):
    """There is no provider of this name."""

    code = "unknown_provider"
    hint = "`bullpen provider list` shows the providers that exist."


class UnknownMessage(NotFound):
    """There is no message of this id."""

    code = "unknown_message"
    hint = "Finished messages move to the archive after a day."


class UnknownResponse(NotFound):
    """There is no response of this id."""

    code = "unknown_response"
    hint = "Delivered responses move to the archive after a day."


class UnknownRecipient(NotFound):
    """Nobody has the name that was addressed; nothing was sent."""

    code = "unknown_recipient"
    hint = "Address an agent or a team that exists."


class UnknownSchedule(NotFound):
    """There is no schedule of this id or label."""

    code = "unknown_schedule"
    hint = "`bullpen schedule list` shows the schedules that exist."


class UnknownKey(NotFound):
    """There is no key of this id."""

    code = "unknown_key"
    hint = "`bullpen key list` shows the keys that exist."


class UnknownFile(NotFound):
    """There is no such file, or none that may be seen."""

    code = "unknown_file"
    hint = "Files are named as they were when they were uploaded or answered."


class UnknownService(NotFound):
    """There is no service of this name."""

    code = "unknown_service"
    hint = "`bullpen status` shows the services that exist."


class UnsafeSecret(BullpenError):
    """A secret that is blank, or that others know."""

    code = "unsafe_secret"
    hint = "Delete the file; a new token is made at the next start."


class Overloaded(BullpenError):
    """As many wait or listen as may."""

    code = "overloaded"
    exit_status = 75
    hint = "Try again in a while."


class NoSupervisor(BullpenError):
    """What was asked is the supervisor's to do, and none runs."""

    code = "no_supervisor"
    hint = "Start Bullpen with `bullpen up`."


class UnsafeDirectory(BullpenError):
    """A directory that must be the owner's alone, and is not."""

    code = "unsafe_directory"
    hint = "Remove the directory, or give it to yourself and let nobody else write to it."


class AddressTaken(BullpenError):
    """Where the API is to listen another program does, or none of this machine's may."""

    code = "address_taken"
    hint = "Stop the other program, or choose another port with the setting `api_port`."


class RunsAlready(BullpenError):
    """A second process of a service that may have one only."""

    code = "runs_already"
    hint = "`bullpen status` shows what runs; `bullpen down` stops it."


class StoreError(BullpenError):
    """The database could not do it."""

    code = "store_error"
    hint = "Look at the database and its disk; `bullpen doctor` checks both."


class StoreBusy(StoreError):
    """The database was locked for longer than the limit; nothing was written."""

    code = "store_busy"
    exit_status = 75
    hint = "Try again; if it lasts, look for a process that holds the database open."


class StoreUnavailable(StoreError):
    """The database cannot be reached, or went away."""

    code = "store_unavailable"
    exit_status = 75
    hint = "Check that the database runs and that `database_url` names it."


class CommitUnknown(StoreUnavailable):
    """The connection was lost during COMMIT: it may have happened or not."""

    code = "commit_unknown"
    hint = "Repeat it under the same message id or token: what was stored is not stored twice."


class StoreFull(StoreError):
    """There is no room left on the disk; nothing was written."""

    code = "store_full"
    hint = "Free some disk space, then try again."


class StoreReadOnly(StoreError):
    """The database cannot be written."""

    code = "store_read_only"
    hint = "Check the owner and rights of the database file and of its directory."


class StoreCorrupt(StoreError):
    """The file is not a database, or is damaged."""

    code = "store_corrupt"
    hint = "Stop Bullpen, keep the damaged file aside, and restore a backup."


class SchemaTooNew(StoreError):
    """The database was made by a later version of Bullpen."""

    code = "schema_too_new"
    hint = "Install the version of Bullpen that made it, or a later one."


class SchemaTooOld(StoreError):
    """The database is of an earlier version of Bullpen, or empty."""

    code = "schema_too_old"
    hint = "Run `bullpen up`, or `bullpen db upgrade`."


class BackupFailed(StoreError):
    """A backup could not be made, or not be taken apart; nothing is left that looks like one."""

    code = "backup_failed"
    hint = "Look at the disk, or give another place."


class BadBackup(StoreError):
    """What was given is no backup, or is damaged."""

    code = "bad_backup"
    hint = "`bullpen db verify` names each damage. Take another backup if you have one."


# Every error that Bullpen raises on purpose.
#
# BullpenError
# ├── InputError                 what was asked cannot be done as asked
# │   ├── BadText                a NUL, a lone surrogate, an empty text
# │   ├── TextTooLong            over the limit of a message
# │   ├── BadDelay               a delay below zero
# │   ├── DeadlinePassed         a deadline that is over already
# │   ├── BadDeadline            a deadline that no database can keep
# │   ├── BadClaim               no message, or for no time
# │   ├── BadName                an agent or id that is not of the form
# │   ├── BadTeam                without members, or its leader is none of them
# │   ├── BadProvider            without an address or key
# │   ├── BadState               a state that does not exist
# │   ├── BadSchedule            a time that never comes
# │   ├── BadPlace               an address that its channel cannot read
# │   ├── BadHeartbeat           an interval or hours that cannot be
# │   ├── BadKey                 a key that could do nothing
# │   ├── BadRequest             not what the API's description says
# │   │   ├── NotJson            a body of another kind
# │   │   └── BodyTooLarge
# │   └── BadSetting             a setting that cannot be read
# │       └── SettingFixed       one that cannot be changed from here
# ├── NotFound
# │   ├── UnknownAgent
# │   ├── UnknownTeam
# │   ├── UnknownProvider
# │   ├── UnknownMessage
# │   ├── UnknownResponse
# │   ├── UnknownRecipient       nobody has the name that was addressed
# │   ├── UnknownSchedule
# │   ├── UnknownKey
# │   ├── UnknownFile
# │   └── UnknownService
# ├── Conflict
# │   ├── DuplicateMessage       carries the state of the first one
# │   ├── NameTaken              by an agent, a team or a provider
# │   ├── StaleToken             the lease is lost; nothing was changed
# │   ├── IllegalMove            not from this state
# │   ├── ServiceFailed          it does not start or stop
# │   ├── TooMany                schedules of one agent's making
# │   └── InTheWay               something else lies where a file is to be
# ├── AccessError                who asks may not do this
# │   ├── NoAccess               no token, or one that opens nothing
# │   ├── TooManyFailures        of one address, in one minute
# │   ├── ScopeTooSmall
# │   ├── OutOfReach             another agent's
# │   ├── ForeignHost
# │   └── ForeignPage            a page of another site asks
# ├── UnsafeSecret               blank, short, or readable by others
# ├── Overloaded                 too many at once; try again
# ├── NoSupervisor               what was asked needs the supervisor
# ├── RunsAlready                there may be one of it in a home
# ├── UnsafeDirectory            others could put their own sockets there
# ├── AddressTaken               nobody else can listen there
# ├── LaneError
# │   ├── LaneFull
# │   ├── LaneClosed             draining or archived
# │   └── LaneBusy               has work that must end first
# └── StoreError
# ├── StoreBusy              try again
# ├── StoreUnavailable       the server or file cannot be reached
# │   └── CommitUnknown      it went away while it was committing
# ├── StoreFull              no room on the disk
# ├── StoreReadOnly
# ├── StoreCorrupt
# ├── BackupFailed           nothing is left that looks like one
# ├── BadBackup              damaged, or none
# ├── SchemaTooNew           made by a later Bullpen
# └── SchemaTooOld           needs `bullpen db upgrade`
#
# Each has a stable `code` for the API, an `exit_status` for the command line, and a `hint` that tells
# what the reader can do.

__all__ = [
    "AccessError",
    "AddressTaken",
    "BackupFailed",
    "BadBackup",
    "BadClaim",
    "BadDeadline",
    "BadDelay",
    "BadHeartbeat",
    "BadKey",
    "BadName",
    "BadPlace",
    "BadProvider",
    "BadRequest",
    "BadSchedule",
    "BadSetting",
    "BadState",
    "BadTeam",
    "BadText",
    "BodyTooLarge",
    "BullpenError",
    "CommitUnknown",
    "Conflict",
    "DeadlinePassed",
    "DuplicateMessage",
    "ForeignHost",
    "ForeignPage",
    "IllegalMove",
    "InTheWay",
    "InputError",
    "LaneBusy",
    "LaneClosed",
    "LaneError",
    "LaneFull",
    "NameTaken",
    "NoAccess",
    "NoSupervisor",
    "NotFound",
    "NotJson",
    "OutOfReach",
    "Overloaded",
    "RunsAlready",
    "SchemaTooNew",
    "SchemaTooOld",
    "ScopeTooSmall",
    "ServiceFailed",
    "SettingFixed",
    "StaleToken",
    "StoreBusy",
    "StoreCorrupt",
    "StoreError",
    "StoreFull",
    "StoreReadOnly",
    "StoreUnavailable",
    "TextTooLong",
    "TooMany",
    "TooManyFailures",
    "UnknownAgent",
    "UnknownFile",
    "UnknownKey",
    "UnknownMessage",
    "UnknownProvider",
    "UnknownRecipient",
    "UnknownResponse",
    "UnknownSchedule",
    "UnknownService",
    "UnknownTeam",
    "UnsafeDirectory",
    "UnsafeSecret",
]
