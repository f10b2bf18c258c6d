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

from bullpen.core.errors.access import (
    AccessError,
    ForeignHost,
    ForeignPage,
    NoAccess,
    OutOfReach,
    ScopeTooSmall,
    TooManyFailures,
)
from bullpen.core.errors.base import BullpenError
from bullpen.core.errors.conflict import (
    Conflict,
    DuplicateMessage,
    IllegalMove,
    InTheWay,
    NameTaken,
    ServiceFailed,
    StaleToken,
    TooMany,
)
from bullpen.core.errors.input import (
    BadClaim,
    BadDeadline,
    BadDelay,
    BadHeartbeat,
    BadKey,
    BadName,
    BadPlace,
    BadProvider,
    BadRequest,
    BadSchedule,
    BadSetting,
    BadState,
    BadTeam,
    BadText,
    BodyTooLarge,
    DeadlinePassed,
    InputError,
    NotJson,
    SettingFixed,
    TextTooLong,
)
from bullpen.core.errors.lane import LaneBusy, LaneClosed, LaneError, LaneFull
from bullpen.core.errors.not_found import (
    NotFound,
    UnknownAgent,
    UnknownFile,
    UnknownKey,
    UnknownMessage,
    UnknownProvider,
    UnknownRecipient,
    UnknownResponse,
    UnknownSchedule,
    UnknownService,
    UnknownTeam,
)
from bullpen.core.errors.process import (
    AddressTaken,
    NoSupervisor,
    Overloaded,
    RunsAlready,
    UnsafeDirectory,
    UnsafeSecret,
)
from bullpen.core.errors.store import (
    BackupFailed,
    BadBackup,
    CommitUnknown,
    SchemaTooNew,
    SchemaTooOld,
    StoreBusy,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
)

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
