"""The health of a channel, as the process that serves it reports it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum

from sqlalchemy import ColumnElement, bindparam, func, select, update

from bullpen.core.access.outgoing import outgoing_mask
from bullpen.core.events.append import append_event
from bullpen.core.events.channel import ChannelDown, ChannelPaused, ChannelResumed, ChannelUp
from bullpen.core.models import CHANNEL_HEALTH
from bullpen.core.models.base import insert_if_absent
from bullpen.core.outbox.recovery import look_up_now
from bullpen.core.store.statement import Statement, columns
from bullpen.core.store.transaction import Transaction
from bullpen.core.text import check_text

H = CHANNEL_HEALTH.c


class ChannelState(StrEnum):
    """The state of a channel."""

    STARTING = "starting"
    UP = "up"
    DEGRADED = "degraded"
    """It works, but not as it should: the reason says how."""
    DOWN = "down"
    PAUSED = "paused"
    STOPPED = "stopped"


WORKING = (ChannelState.UP, ChannelState.DEGRADED)


@dataclass(frozen=True, slots=True)
class ChannelHealth:
    """The health of one channel."""

    channel: str
    state: ChannelState
    code: str | None
    """Why it is in this state, as a short code."""
    reason: str | None
    hint: str | None
    since: int
    paused: bool
    told_at: int | None
    """When the owner was notified that it is down; None once it is up again."""
    worker: str | None
    last_event_at: int | None
    last_message_at: int | None
    last_receipt_at: int | None
    last_probe_at: int | None
    probe_ms: int | None
    connections: int | None
    caught_up_at: int | None
    caught_up: str | None
    """The result of the last catch-up."""
    findings: str | None
    """The findings of the last check, a JSON list."""
    locked_until: int | None
    """Until when no pairing code is accepted."""
    updated_at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Activity:
    """What happened on a channel since the last report; None: nothing of the kind."""

    last_event_at: int | None = None
    last_message_at: int | None = None
    last_receipt_at: int | None = None
    last_probe_at: int | None = None
    probe_ms: int | None = None
    connections: int | None = None
    caught_up_at: int | None = None
    caught_up: str | None = None
    findings: str | None = None


def _here() -> ColumnElement[bool]:
    return H.channel == bindparam("account")


SELECT_HEALTH: Statement[ChannelHealth] = Statement(
    lambda: select(*columns(ChannelHealth, CHANNEL_HEALTH)).where(_here()), ChannelHealth
)

LOCK_HEALTH: Statement[ChannelHealth] = Statement(
    lambda: select(*columns(ChannelHealth, CHANNEL_HEALTH)).where(_here()).with_for_update(),
    ChannelHealth,
)

# The table has one row for each account.
LIST_HEALTH: Statement[ChannelHealth] = Statement(
    lambda: select(*columns(ChannelHealth, CHANNEL_HEALTH)).order_by(H.channel), ChannelHealth
)

INSERT_HEALTH: Statement[None] = Statement(
    lambda: insert_if_absent(CHANNEL_HEALTH, ("channel", "state", "since", "paused", "updated_at"))
)

UPDATE_STATE: Statement[None] = Statement(
    lambda: (
        update(CHANNEL_HEALTH)
        .where(_here())
        .values(
            {
                name: bindparam(f"new_{name}")
                for name in ("state", "code", "reason", "hint", "since", "told_at", "worker")
            }
            | {"updated_at": bindparam("now")}
        )
    )
)

UPDATE_PAUSED: Statement[None] = Statement(
    lambda: (
        update(CHANNEL_HEALTH)
        .where(_here())
        .values(
            paused=bindparam("is_paused", type_=H.paused.type),
            updated_at=bindparam("now"),
        )
    )
)

UPDATE_ACTIVITY: Statement[None] = Statement(
    lambda: (
        update(CHANNEL_HEALTH)
        .where(_here())
        .values(
            {
                name: func.coalesce(bindparam(f"new_{name}", type_=H[name].type), H[name])
                for name in Activity.__dataclass_fields__
            }
            | {"updated_at": bindparam("now")}
        )
    )
)


def find_health(tx: Transaction, channel: str) -> ChannelHealth | None:
    """The health of a channel; None if no process ever served it."""
    return tx.one(SELECT_HEALTH, {"account": channel})


def list_health(tx: Transaction) -> list[ChannelHealth]:
    """The health of every channel that a process ever served, by name."""
    return tx.all(LIST_HEALTH, {})


def lock_health(tx: Transaction, channel: str) -> ChannelHealth:
    """Lock the row of a channel; creates it if there is none."""
    new = {"channel": channel, "state": ChannelState.STOPPED.value, "since": tx.now}
    tx.write(INSERT_HEALTH, {**new, "paused": False, "updated_at": tx.now})
    health = tx.one(LOCK_HEALTH, {"account": channel})
    assert health is not None
    return health


def report_state(
    tx: Transaction,
    channel: str,
    state: ChannelState,
    *,
    worker: str | None = None,
    code: str = "",
    reason: str = "",
    hint: str = "",
) -> bool:
    """Report the state of a channel; True if it went down and the owner must be notified now.

    The owner is notified once for each code, whatever restarts in between, until the channel works.
    """
    mask = outgoing_mask(tx)
    code, reason, hint = (
        mask(check_text(text, tx.settings.message_bytes, "the reason"))
        for text in (code, reason, hint)
    )
    before = lock_health(tx, channel)
    same = before.state is state and (before.code or "") == code
    told_at = before.told_at
    # What is degraded because of an outage does not show that the fault before it has ended.
    recovered = state is ChannelState.UP or (state in WORKING and told_at is None)
    tell = state is ChannelState.DOWN and (told_at is None or (before.code or "") != code)
    if tell:
        append_event(tx, ChannelDown(channel=channel, code=code, reason=reason, hint=hint))
        told_at = tx.now
    if recovered:
        if told_at is not None or before.state not in WORKING:
            append_event(tx, ChannelUp(channel=channel))
        if state is ChannelState.UP and before.state is not state:
            look_up_now(tx, channel)
        told_at = None
    # A process that starts again does not know yet why the one before it was down, and an outage
    # does not end the fault that the owner was notified of.
    unsettled = (ChannelState.STARTING, ChannelState.STOPPED, ChannelState.DEGRADED)
    keeps = state in unsettled and told_at is not None
    why = (before.code, before.reason, before.hint) if keeps else (code, reason, hint)
    tx.write(
        UPDATE_STATE,
        {
            "account": channel,
            "new_state": state.value,
            **dict(zip(("new_code", "new_reason", "new_hint"), why, strict=True)),
            "new_since": before.since if same else tx.now,
            "new_told_at": told_at,
            "new_worker": worker,
            "now": tx.now,
        },
    )
    return tell


def retry_topic(channel: str) -> str:
    """The topic that makes the client try at once an account that is down."""
    return f"channel:{channel}"


def report_activity(tx: Transaction, channel: str, activity: Activity) -> None:
    """Write what happened since the last report; fields without a value stay as they are."""
    for text in (activity.caught_up or "", activity.findings or ""):
        check_text(text, tx.settings.message_bytes, "the result")
    values = {f"new_{name}": value for name, value in asdict(activity).items()}
    tx.write(UPDATE_ACTIVITY, {**values, "account": channel, "now": tx.now})


def pause_channel(tx: Transaction, channel: str) -> bool:
    """Pause a channel: it neither receives nor sends; False if it was paused."""
    if lock_health(tx, channel).paused:
        return False
    tx.write(UPDATE_PAUSED, {"account": channel, "is_paused": True, "now": tx.now})
    append_event(tx, ChannelPaused(channel=channel))
    tx.wake(f"responses:{channel}")
    return True


def resume_channel(tx: Transaction, channel: str) -> bool:
    """End the pause of a channel; False if there was none. One that is down is tried at once."""
    health = lock_health(tx, channel)
    if health.state is ChannelState.DOWN:
        # A wake-up may be about anything: the state says that an attempt was asked for.
        report_state(tx, channel, ChannelState.STARTING, worker=health.worker)
        tx.wake(retry_topic(channel))
    if not health.paused:
        return False
    tx.write(UPDATE_PAUSED, {"account": channel, "is_paused": False, "now": tx.now})
    append_event(tx, ChannelResumed(channel=channel))
    tx.wake(f"responses:{channel}")
    return True
