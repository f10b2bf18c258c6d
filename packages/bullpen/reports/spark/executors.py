"""ExecutorCheck: what a task finds out on its machine before the job uses the machine.

Executors import this module from the package that was shipped. It needs nothing but the standard
library and PyArrow, without which Spark runs no task of ours.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from bullpen.core.errors import BullpenError
from bullpen.reports.facts.read import StoreAddress

if TYPE_CHECKING:
    import pyarrow as pa

SCHEMA = "host STRING, problem STRING, detail STRING"
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class Trouble(StrEnum):
    """What is wrong with an executor; `NONE` if nothing is."""

    NONE = "none"
    PACKAGE = "package"
    DIRECTORY = "directory"
    OTHER_HOST = "other_host"
    STORE = "store"


@dataclass(frozen=True, slots=True)
class Finding:
    """What a task found out."""

    host: str
    trouble: Trouble
    detail: str
    """The missing package, the reason, or the name of the file that the task wrote."""


@dataclass(frozen=True, slots=True)
class FileIdentity:
    """A file of one machine. Over a network the same file has another device."""

    boot: str
    device: int
    inode: int

    @classmethod
    def of(cls, path: Path) -> FileIdentity | None:
        """The identity of a file; None if this machine does not have it."""
        try:
            found = path.stat()
        except OSError:
            return None
        boot = BOOT_ID.read_text().strip() if BOOT_ID.exists() else socket.gethostname()
        return cls(boot, found.st_dev, found.st_ino)


@dataclass(frozen=True, slots=True)
class ExecutorCheck:
    """The check, as the function of a task."""

    address: StoreAddress
    database: tuple[Path, FileIdentity] | None
    """The file of SQLite."""
    directory: Path
    """The directory of the reports that the driver probes; it has written the file `driver`."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """One row for a task."""
        import pyarrow as pa

        for _ in batches:
            pass
        found = self.run()
        columns = {"host": found.host, "problem": found.trouble.value, "detail": found.detail}
        yield pa.RecordBatch.from_pydict({name: [value] for name, value in columns.items()})

    def run(self) -> Finding:
        """Check everything, in the order in which it is needed."""
        host = socket.gethostname()
        driver = f"adbc_driver_{self.address.dialect}"
        if find_spec(driver) is None:
            return Finding(host, Trouble.PACKAGE, driver.replace("_", "-"))
        if self.database is not None:
            path, identity = self.database
            if FileIdentity.of(path) != identity:
                return Finding(host, Trouble.OTHER_HOST, "")
        try:
            with self.address.open():
                pass
        except BullpenError as error:
            return Finding(host, Trouble.STORE, str(error))
        return self._probe(host)

    def _probe(self, host: str) -> Finding:
        """Look for the file of the driver, and write one that the driver looks for."""
        try:
            (self.directory / "driver").stat()
            name = f"{host}-{os.getpid()}"
            (self.directory / name).touch()
        except OSError as error:
            return Finding(host, Trouble.DIRECTORY, error.strerror or str(error))
        return Finding(host, Trouble.NONE, name)
