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
    │   └── BadSetting             a setting that cannot be read
    ├── NotFound
    │   ├── UnknownAgent
    │   ├── UnknownTeam
    │   ├── UnknownProvider
    │   ├── UnknownMessage
    │   ├── UnknownResponse
    │   └── UnknownRecipient       nobody has the name that was addressed
    ├── Conflict
    │   ├── DuplicateMessage       carries the state of the first one
    │   ├── NameTaken              by an agent, a team or a provider
    │   ├── StaleToken             the lease is lost; nothing was changed
    │   └── IllegalMove            not from this state
    ├── UnsafeDirectory            others could put their own sockets there
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


class UnsafeDirectory(BullpenError):
    """A directory that must be the owner's alone, and is not."""

    code = "unsafe_directory"
    hint = "Remove the directory, or give it to yourself and let nobody else write to it."


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
    hint = "Run `bullpen db upgrade`."
