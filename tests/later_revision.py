"""A version of Bullpen after this one, which has one more migration.

Upgrades, and the backup before each, are tested with it: a store of this version is the older one.
A command works as that version if `tests.later_revision` is imported before it begins.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from bullpen.core.store import migrate, open
from tests.cli.command import Bullpen
from tests.cli.warm import FIRST

SCRIPTS_VARIABLE = "TESTS_LATER_SCRIPTS"
LATER_REVISION = "9000"
LATER_TABLE = "later"
MIGRATION = f'''
import sqlalchemy as sa
from alembic import op

revision = "{LATER_REVISION}"
down_revision = "{open.HEAD_REVISION}"


def upgrade() -> None:
    op.create_table("{LATER_TABLE}", sa.Column("agent", sa.Text(), primary_key=True))
    op.execute("INSERT INTO {LATER_TABLE} SELECT id FROM agents")


def downgrade() -> None:
    op.drop_table("{LATER_TABLE}")
'''


def write_later_scripts(directory: Path) -> Path:
    """The scripts of the later version, in a directory of this one."""
    scripts = directory / "later-migrations"
    shutil.copytree(migrate.SCRIPTS, scripts, ignore=shutil.ignore_patterns("__pycache__"))
    (scripts / "versions" / f"{LATER_REVISION}_later.py").write_text(MIGRATION)
    return scripts


def become_later(monkeypatch: pytest.MonkeyPatch, directory: Path) -> None:
    """Let this process be of the later version."""
    _set_versions(monkeypatch, write_later_scripts(directory))


def as_later(bullpen: Bullpen, directory: Path) -> Bullpen:
    """The command of the later version, in the same home."""
    first = f"{bullpen.environ.get(FIRST, '')} tests.later_revision"
    scripts = str(write_later_scripts(directory))
    return replace(bullpen, environ={**bullpen.environ, FIRST: first, SCRIPTS_VARIABLE: scripts})


def _set_versions(monkeypatch: pytest.MonkeyPatch, scripts: Path) -> None:
    monkeypatch.setattr(migrate, "SCRIPTS", scripts)
    monkeypatch.setattr(open, "KNOWN_REVISIONS", (*open.KNOWN_REVISIONS, LATER_REVISION))
    monkeypatch.setattr(open, "HEAD_REVISION", LATER_REVISION)


if SCRIPTS_VARIABLE in os.environ:
    _set_versions(pytest.MonkeyPatch(), Path(os.environ[SCRIPTS_VARIABLE]))
