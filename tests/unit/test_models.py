"""The tables: each is built when it is first used, and the whole schema has them all."""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path

from sqlalchemy import delete, exists, func, insert, select, update

from bullpen.core import models
from bullpen.core.models import whole_schema
from bullpen.core.models.base import METADATA, LazyTable, column, table

HERE = Path(models.__file__).parent
NO_TABLES = {"__init__", "base", "metadata"}

# Alembic and the dialects make elements of their own when they are imported.
IMPORT_ALL = """
import importlib, json, pkgutil, sys
import bullpen.core
from sqlalchemy.sql.visitors import Visitable

made = []

def new(cls, *given, **named):
    frame = sys._getframe(1)
    while frame.f_globals["__name__"].startswith("sqlalchemy."):
        frame = frame.f_back
    made.append(frame.f_globals["__name__"])
    return object.__new__(cls)

Visitable.__new__ = new
for module in pkgutil.walk_packages(bullpen.core.__path__, "bullpen.core."):
    importlib.import_module(module.name)
from bullpen.core.models.base import METADATA, TABLES
print(json.dumps([[each for each in made if each.startswith("bullpen.")],
                  [*METADATA.tables], len(TABLES)]))
"""


def test_the_package_has_every_table_of_its_files() -> None:
    files = {each.stem for each in HERE.glob("*.py")} - NO_TABLES
    found = {
        name: each
        for file in sorted(files)
        for name, each in vars(import_module(f"bullpen.core.models.{file}")).items()
        if isinstance(each, LazyTable)
    }
    assert found.keys() == set(models.__all__)
    for name, each in found.items():
        assert getattr(models, name) is each


def test_the_whole_schema_has_every_table() -> None:
    names = {getattr(models, each).name for each in models.__all__}
    assert names == whole_schema().tables.keys()
    assert len(names) == len(models.__all__)


def test_importing_builds_no_table_and_no_statement() -> None:
    done = subprocess.run(
        [sys.executable, "-c", IMPORT_ALL], capture_output=True, text=True, check=True
    )
    made, built, known = json.loads(done.stdout)
    # The types of columns, and the one in the class of `JsonIn`.
    assert set(made) == {"bullpen.core.models.base", "bullpen.core.store.paging"}
    assert len(made) < 10
    assert built == []
    assert known == len(models.__all__)


def test_a_table_is_built_without_a_dialect() -> None:
    program = (
        "import json, sys; from bullpen.core.models import LANES; LANES.c.agent;"
        " print(json.dumps([*sys.modules]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert "sqlalchemy.dialects.postgresql" not in json.loads(done.stdout)


def test_a_lazy_table_stands_wherever_sqlalchemy_takes_a_table() -> None:
    lazy, real = models.HOLDS, whole_schema().tables["holds"]
    for each in (
        lambda it: select(it),
        lambda it: select(it.c.name, it.c["reason"]).where(it.c.name == "x"),
        lambda it: select(func.count()).select_from(it),
        lambda it: insert(it).values(name="x"),
        lambda it: insert(it).from_select([*it.c.keys()], select(*it.c)),
        lambda it: update(it).values(reason="x"),
        lambda it: delete(it).where(it.c.name == "x").returning(it.c.held_at),
        lambda it: select(models.LANES.c.agent).join(it, it.c.name == models.LANES.c.agent),
        lambda it: select(models.LANES.c.agent).where(exists().where(it.c.name == "x")),
        lambda it: select(it.c.name).correlate(it).with_for_update(of=it),
        lambda it: select(it.alias("other").c.name),
    ):
        assert str(each(lazy)) == str(each(real))
    assert ("name" in lazy.c, "nothing" in lazy.c, len(lazy.c)) == (True, False, len(real.c))


def test_a_table_that_two_threads_use_first_is_built_once() -> None:
    for number in range(20):
        name = f"of_two_threads_{number}"
        lazy = table(name, lambda: [column("id", models.base.BigId, primary_key=True)])
        try:
            with ThreadPoolExecutor(4) as pool:
                found = list(pool.map(lambda _, it=lazy: it.c.id, range(4)))
            assert len({id(each) for each in found}) == 1
        finally:
            models.base.TABLES.remove(lazy)
            METADATA.remove(METADATA.tables[name])
