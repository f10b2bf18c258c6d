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


REWRITE_AGENT_DIRECTORY: Statement[None] = Statement(
    lambda: (
        update(AGENTS)
        .where(func.substr(AGENTS.c.directory, 1, func.length(_old())) == _old())
        .values(directory=func.replace(AGENTS.c.directory, _old(), bindparam("new")))
    )
)


@dataclass(frozen=True, slots=True)
class PathRewrite:
    """A directory, and where what lay below it lies now."""

    old: str
    new: str


def path_rewrites(manifest: Manifest, home: Path) -> list[PathRewrite]:
    """Every directory of the backup, as rows may name it."""
    found = [PathRewrite(f"{old}/{FILES}/", f"{home}/{FILES}/") for old in manifest.homes]
    if manifest.with_workspace:
        found += [PathRewrite(f"{old}/", f"{home}/{WORKSPACE}/") for old in manifest.workspaces]
    return found


def rewrite_paths(tx: Transaction, moved: list[PathRewrite]) -> None:
    """Let the rows name the new places; of what was said nothing is changed."""
    for table in whole_schema().tables.values():
        if "files" in table.c:
            for each in moved:
                tx.write(
                    _rewrite_file_lists(table),
                    {"old": _json_prefix(each.old), "new": _json_prefix(each.new)},
                )
    for each in moved:
        tx.write(REWRITE_AGENT_DIRECTORY, {"old": each.old, "new": each.new})


def _rewrite_file_lists(table: Table) -> Statement[None]:
    files = table.c.files
    replaced = func.replace(files, bindparam("old"), bindparam("new"))
    return Statement(lambda: update(table).where(files.is_not(None)).values(files=replaced))


def _json_prefix(path: str) -> str:
    """As a JSON list has it, at the beginning of an entry."""
    return json.dumps(path)[:-1]
