"""Records of stored files: the uploader of a file, and the conversations in which it is used.

A stored file may be sent again where it is already used: in the same conversation, or by the same
agent to the same person or chat. Files of the owner and of this machine have no uploader.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from sqlalchemy import and_, bindparam, delete, func, insert, or_, select

from bullpen.core.errors import UploadQuotaExceeded
from bullpen.core.message import INTERNAL_CHANNELS, Message, NewMessage, ReplyTo, reply_place
from bullpen.core.models import API_KEYS, FILE_USES, STORED_FILES
from bullpen.core.models.base import const
from bullpen.core.settings import Settings
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction

F, U = STORED_FILES.c, FILE_USES.c

INSERT_FILE: Statement[None] = Statement(
    lambda: insert(STORED_FILES).values({each.name: bindparam(each.name) for each in F})
)

LOCK_KEY: Statement[tuple[str]] = Statement(
    lambda: select(API_KEYS.c.id).where(API_KEYS.c.id == bindparam("key")).with_for_update()
)

SUM_BYTES: Statement[tuple[int]] = Statement(
    lambda: select(func.coalesce(func.sum(F.bytes), const(0))).where(F.key_id == bindparam("key"))
)

FIND_UPLOAD: Statement[tuple[str]] = Statement(
    lambda: select(F.name).where(F.name == bindparam("name"), F.key_id == bindparam("key"))
)

LIST_UPLOADS: Statement[tuple[str]] = Statement(lambda: select(F.name))

_USE_COLUMNS = ("name", "conversation_id", "agent", "place", "created_at")

INSERT_USE: Statement[None] = Statement(
    lambda: insert(FILE_USES).from_select(
        [U[each] for each in _USE_COLUMNS],
        select(*(bindparam(each, type_=U[each].type) for each in _USE_COLUMNS))
        .where(const(1) == const(1))
        .suffix_with("ON CONFLICT DO NOTHING"),
    )
)

FIND_USE: Statement[tuple[str]] = Statement(
    lambda: (
        select(U.name)
        .where(
            U.name == bindparam("name"),
            or_(
                U.conversation_id == bindparam("conversation"),
                and_(U.agent == bindparam("agent"), U.place == bindparam("place")),
            ),
        )
        .limit(const(1))
    )
)

SELECT_AGENTS: Statement[tuple[str]] = Statement(
    lambda: select(U.agent).where(U.name == bindparam("name")).distinct()
)

DELETE_FILE: Statement[None] = Statement(
    lambda: delete(STORED_FILES).where(F.name == bindparam("file"))
)

DELETE_USES: Statement[None] = Statement(
    lambda: delete(FILE_USES).where(U.name == bindparam("file"))
)


def stored_name(settings: Settings, path: str) -> str | None:
    """The name of a file in the directory of files; None for any other path."""
    directory, name = os.path.split(path)
    if directory == str(settings.files):
        return name
    return name if directory == str(Path(os.path.realpath(settings.home)) / "files") else None


def record_message_files(tx: Transaction, messages: Iterable[tuple[NewMessage, str]]) -> None:
    """Record the files of these new messages and ids."""
    for new, message_id in messages:
        if new.files:
            place = _place(new.channel, new.sender, new.sender_id, new.reply_to)
            record_uses(tx, new.files, new.conversation_id or message_id, new.agent, place)


def record_uses(
    tx: Transaction, files: Sequence[str], conversation_id: str, agent: str, place: str | None
) -> None:
    """Record that these files were sent or received by this agent in this conversation."""
    names = dict.fromkeys(stored_name(tx.settings, each) for each in files)
    use = {"conversation_id": conversation_id, "agent": agent, "place": place}
    rows = [{**use, "name": name, "created_at": tx.now} for name in names if name is not None]
    if rows:
        tx.write_each(INSERT_USE, rows)


def message_place(message: Message) -> str | None:
    """The person or chat that a message is from; None if it is not from a person."""
    reply_to = None if message.reply_to is None else ReplyTo.parse(message.reply_to)
    return _place(message.channel, message.sender, message.sender_id, reply_to)


def _place(
    channel: str, sender: str, sender_id: str | None, reply_to: ReplyTo | None
) -> str | None:
    if channel in INTERNAL_CHANNELS:
        return None
    return reply_place(channel, sender, sender_id, reply_to)


def is_used_in(
    tx: Transaction, name: str, conversation_id: str, agent: str, place: str | None
) -> bool:
    """Whether a file is in this conversation, or between this agent and this person or chat."""
    values = {"name": name, "conversation": conversation_id, "agent": agent, "place": place or ""}
    return tx.one(FIND_USE, values) is not None


def is_used_by(tx: Transaction, name: str, agents: Collection[str]) -> bool:
    """Whether a file is in a conversation of one of these agents."""
    return any(agent in agents for (agent,) in tx.all(SELECT_AGENTS, {"name": name}))


def is_upload_of(tx: Transaction, name: str, key_id: str) -> bool:
    """Whether a file was uploaded with this API key."""
    return tx.one(FIND_UPLOAD, {"name": name, "key": key_id}) is not None


def check_quota(tx: Transaction, key_id: str, size: int) -> None:
    """Raise `UploadQuotaExceeded` if the key's files would exceed the limit."""
    limit = tx.settings.key_upload_bytes
    if limit == 0:
        return
    row = tx.one(SUM_BYTES, {"key": key_id})
    stored = 0 if row is None else row[0]
    if stored + size > limit:
        raise UploadQuotaExceeded(
            f"the files of key {key_id} would exceed the limit of {limit} bytes ({stored} stored)"
        )


def record_upload(tx: Transaction, key_id: str, name: str, size: int) -> None:
    """Record the uploader of a file, if its files stay within the limit."""
    tx.one(LOCK_KEY, {"key": key_id})  # so that simultaneous uploads are counted one by one
    check_quota(tx, key_id, size)
    row = {"name": name, "bytes": size, "key_id": key_id, "created_at": tx.now}
    tx.write(INSERT_FILE, row)


def list_uploads(tx: Transaction) -> list[str]:
    """The names of all files that were uploaded with an API key."""
    return [name for (name,) in tx.all(LIST_UPLOADS, {})]


def forget_files(tx: Transaction, names: Iterable[str]) -> None:
    """Delete the records of files that were deleted."""
    for name in names:
        tx.write(DELETE_FILE, {"file": name})
        tx.write(DELETE_USES, {"file": name})
