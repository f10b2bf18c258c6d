"""A power cut: of a database, only what a process has waited for the disk to have is left."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from bullpen.core.settings import Settings
from bullpen.core.store.base import Store
from bullpen.core.store.open import open_store

SOURCE = Path(__file__).with_suffix(".c")
SYNCED = ".synced"


class PowerCut:
    """The home of SQLite's processes, and what of its database would survive a power cut now."""

    def __init__(self, settings: Settings, library: Path) -> None:
        self.settings = settings
        self.environ = {"LD_PRELOAD": str(library)}
        """With it, a process keeps a copy of each file that it has synced."""
        self._database = settings.home / "bullpen.db"
        shutil.copy(self._database, f"{self._database}{SYNCED}")

    @contextmanager
    def survivor(self) -> Iterator[Store]:
        """The store that is found after a power cut at this moment."""
        home = self.settings.home / "survivor"
        home.mkdir(mode=0o700)
        for name in ("bullpen.db", "bullpen.db-wal"):
            synced = self._database.with_name(f"{name}{SYNCED}")
            if synced.exists():
                shutil.copy(synced, home / name)
        store = open_store(replace(self.settings, home=home, database_url=""))
        try:
            yield store
        finally:
            store.close()
            shutil.rmtree(home)


def compile_library(directory: Path) -> Path:
    """The library that is loaded before the C library; skips where there is no compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("a power cut is simulated with a C compiler, and there is none")
    library = directory / "power_cut.so"
    command = [compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(SOURCE), "-ldl"]
    subprocess.run(command, check=True)
    return library
