"""Mask secrets in outgoing texts: Bullpen's keys, and every secret that it knows."""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple

from sqlalchemy import select

from bullpen.core.access.owner import read_token
from bullpen.core.clock import SECOND
from bullpen.core.errors import UnsafeSecret
from bullpen.core.models import CUSTOM_PROVIDERS
from bullpen.core.settings import Settings
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction
from bullpen.core.text import SecretMask

KEPT_MS = 30 * SECOND
"""The time for which the known secrets are cached, so that the end of a run reads nothing."""

SELECT_KEYS: Statement[tuple[str]] = Statement(lambda: select(CUSTOM_PROVIDERS.c.api_key))


class _Kept(NamedTuple):
    mask: SecretMask
    since: int


_kept: dict[Settings, _Kept] = {}


def outgoing_mask(tx: Transaction) -> SecretMask:
    """The function that masks secrets in outgoing texts, and in texts of agents."""
    kept = _kept.get(tx.settings)
    if kept is None or not 0 <= tx.now - kept.since < KEPT_MS:
        kept = _Kept(SecretMask(_known_secrets(tx)), tx.now)
        _kept.clear()  # a process has one store
        _kept[tx.settings] = kept
    return kept.mask


def _known_secrets(tx: Transaction) -> list[str]:
    secrets = [*tx.settings.secrets(), *(key for (key,) in tx.all(SELECT_KEYS, {}))]
    with suppress(OSError, UnsafeSecret, UnicodeDecodeError):
        secrets.append(read_token(tx.settings))
    return secrets
