"""Packages as pip leaves them: a module, and entry points that name it."""

from __future__ import annotations

from pathlib import Path


def install(directory: Path, name: str, group: str, entries: dict[str, str], code: str) -> None:
    """A package of this name with one module of this code; each entry is `module:attribute`."""
    info = directory / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    lines = "".join(f"{entry} = {path}\n" for entry, path in entries.items())
    (info / "entry_points.txt").write_text(f"[{group}]\n{lines}")
    (directory / f"{name.replace('-', '_')}.py").write_text(code)
