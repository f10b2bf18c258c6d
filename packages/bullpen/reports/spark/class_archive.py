"""ClassArchive: the classes of Spark as Java keeps them in memory, which halves its start.

Java writes the file when it ends (about 10 seconds and 200 MB, once), and reads it at later starts.
A file is only good for one build of Java and one set of jars, which its name therefore contains. A
start with a file that does not fit works as one without.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bullpen.core.errors import StoreFull
from bullpen.core.files import file_lock, require_free_space
from bullpen.reports.spark.java import Java

PREFIX = "classes-"
LOCK = "classes.lock"
LEAST_BYTES = 1 << 20
"""A smaller file is not complete."""
MOST_BYTES = 400 << 20
RECORD_SECONDS = 180.0
"""How long Java may take to write the file."""
RECORD_AFTER_RUNS = 10
AOT_VERSION = 25
"""The first version of Java that records an ahead-of-time cache in one step."""


@dataclass(frozen=True, slots=True)
class ClassArchive:
    """The file for one Java and one Spark, whether it exists or not."""

    path: Path
    version: int
    """Of Java."""

    @classmethod
    def find(cls, java: Java, jars: Path, directory: Path) -> ClassArchive:
        """The file for this Java and the jars in this directory."""
        key = hashlib.sha256(f"{java.version} {java.build} {jars}".encode())
        for each in sorted(jars.glob("*.jar")):
            found = each.stat()
            key.update(f"{each.name} {found.st_size} {found.st_mtime_ns}".encode())
        return cls(directory / f"{PREFIX}{key.hexdigest()[:16]}", java.version)

    def exists(self) -> bool:
        """Whether it was written."""
        return self.path.exists()

    @property
    def reading(self) -> str:
        """Java's option to read it."""
        name = "AOTCache" if self.version >= AOT_VERSION else "SharedArchiveFile"
        return f"-XX:{name}={self.path}"

    def recording(self, file: Path) -> str:
        """Java's option to write it to this file at its end."""
        name = "AOTCacheOutput" if self.version >= AOT_VERSION else "ArchiveClassesAtExit"
        return f"-XX:{name}={file}"

    @contextmanager
    def lock(self, floor: int) -> Iterator[bool]:
        """Whether this process may write the file now: no other one does, and there is space.

        `floor` is the free space that the disk must keep, in bytes.
        """
        with file_lock(self.path.with_name(LOCK), 0) as held:
            yield held is not None and not self.exists() and self._has_space(floor)

    def _has_space(self, floor: int) -> bool:
        try:
            require_free_space(self.path.parent, floor, MOST_BYTES)
        except StoreFull:
            return False
        return True

    def keep(self, file: Path) -> None:
        """Take the file that Java wrote, and delete those for another Java or Spark."""
        if not file.exists() or file.stat().st_size < LEAST_BYTES:
            return
        file.replace(self.path)
        for each in self.path.parent.glob(f"{PREFIX}*"):
            if each != self.path:
                each.unlink(missing_ok=True)


def is_worth_recording(*, small: bool, runs: int) -> bool:
    """Whether a run is to write the file: a long one, or one of a home that had several."""
    return not small or runs >= RECORD_AFTER_RUNS
