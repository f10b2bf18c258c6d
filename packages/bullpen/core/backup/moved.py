"""Paths in rows: what lay in the old home lies in the new one."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import BindParameter, Table, Text, bindparam, func, update

from bullpen.core.backup.manifest import FILES, WORKSPACE, Manifest
from bullpen.core.models import AGENTS
from bullpen.core.models.metadata import whole_schema
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction


def _old() -> BindParameter[str]:
    return bindparam("old", type_=Text)


DIRECTORY: Statement[None] = Statement(
    lambda: (
        update(AGENTS)
        .where(func.substr(AGENTS.c.directory, 1, func.length(_old())) == _old())
        .values(directory=func.replace(AGENTS.c.directory, _old(), bindparam("new")))
    )
)


@dataclass(frozen=True, slots=True)
class Move:
    """A directory, and where what lay below it lies now."""

    old: str
    new: str


def moves(manifest: Manifest, home: Path) -> list[Move]:
    """Every directory of the backup, as rows may name it."""
    found = [Move(f"{old}/{FILES}/", f"{home}/{FILES}/") for old in manifest.homes]
    if manifest.with_workspace:
        found += [Move(f"{old}/", f"{home}/{WORKSPACE}/") for old in manifest.workspaces]
    return found


def move_paths(tx: Transaction, moved: list[Move]) -> None:
    """Let the rows name the new places; of what was said nothing is changed."""
    for table in whole_schema().tables.values():
        if "files" in table.c:
            for each in moved:
                tx.write(_lists(table), {"old": _in_list(each.old), "new": _in_list(each.new)})
    for each in moved:
        tx.write(DIRECTORY, {"old": each.old, "new": each.new})


def _lists(table: Table) -> Statement[None]:
    files = table.c.files
    replaced = func.replace(files, bindparam("old"), bindparam("new"))
    return Statement(lambda: update(table).where(files.is_not(None)).values(files=replaced))


def _in_list(path: str) -> str:
    """As a JSON list has it, at the beginning of an entry."""
    return json.dumps(path)[:-1]
