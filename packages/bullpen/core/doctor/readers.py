"""Who holds a reading transaction open on SQLite, as the system's table of locks shows it.

A reader of the write-ahead log holds a shared lock on one of five bytes of the `-shm` file. The
table is read, and the file never opened: to close it would drop the locks that this process holds.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

LOCK_TABLE = Path("/proc/locks")
READER_LOCK_BYTES = range(123, 128)
"""The bytes on which readers hold their locks."""
SAMPLES = 8
SAMPLE_SECONDS = 0.1


def shared_lock_holders(table: str, shm: Path) -> set[tuple[int, int]]:
    """The process and the byte of each reader that the table names."""
    found = shm.stat()
    place = f"{os.major(found.st_dev):02x}:{os.minor(found.st_dev):02x}:{found.st_ino}"
    readers = set()
    for line in table.splitlines():
        # 7: POSIX  ADVISORY  READ 4711 fe:00:1234 124 124
        fields = line.split()
        if "->" in fields or len(fields) < 8 or fields[1] != "POSIX" or fields[3] != "READ":
            continue
        first, last = fields[6], fields[7]
        if (
            fields[5] == place
            and first == last
            and first.isdigit()
            and int(first) in READER_LOCK_BYTES
        ):
            readers.add((int(fields[4]), int(first)))
    return readers


def long_readers(file: Path) -> list[int]:
    """The processes that held such a lock whenever it was looked, for nearly a second."""
    shm = file.with_name(f"{file.name}-shm")
    held: set[tuple[int, int]] | None = None
    for look in range(SAMPLES):
        if look:
            time.sleep(SAMPLE_SECONDS)
        try:
            seen = shared_lock_holders(LOCK_TABLE.read_text(), shm)
        except FileNotFoundError:  # nobody has it open
            return []
        held = seen if held is None else held & seen
        if not held:
            return []
    return sorted({pid for pid, _ in held or () if pid != os.getpid()})
