"""The store for a process with an event loop: transactions run in threads, and share commits."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from bullpen.core.store.base import Store
from bullpen.core.store.group_commit import GroupCommit
from bullpen.core.store.transaction import Transaction

Result = TypeVar("Result")

STORE_THREADS = 6
STORE_ID_CHARS = 4


class AsyncStore:
    """Runs transactions of the client without blocking its loop."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._commits = GroupCommit(store)
        self._threads = ThreadPoolExecutor(STORE_THREADS, thread_name_prefix="store")

    async def write(self, work: Callable[[Transaction], Result]) -> Result:
        """Run this in a transaction, which is committed together with others that wait."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, self._commits.write, work)

    async def read(self, work: Callable[[Transaction], Result]) -> Result:
        """Run this in a transaction that only reads."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._read, work)

    def close(self) -> None:
        """Wait for the transactions that run, and end the threads."""
        self._threads.shutdown()

    @property
    def now(self) -> int:
        """The present moment by the store's clock."""
        return self.store.clock.now()

    def _read(self, work: Callable[[Transaction], Result]) -> Result:
        with self.store.read() as tx:
            return work(tx)


def store_id(store: Store) -> str:
    """Four characters that tell this database from others, for the keys of parts."""
    return hashlib.sha256(store.settings.url.encode()).hexdigest()[:STORE_ID_CHARS]
