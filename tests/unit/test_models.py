"""The tables: each is loaded when it is asked for, and the whole schema knows them all."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from sqlalchemy import Table

from bullpen.core import models
from bullpen.core.models.metadata import METADATA

HERE = Path(models.__file__).parent
NO_TABLES = {"__init__", "base", "metadata"}


def test_the_package_knows_every_file_and_every_table_in_it() -> None:
    assert {each.stem for each in HERE.glob("*.py")} == models.FILES.keys() | NO_TABLES
    for file, names in models.FILES.items():
        module = import_module(f"bullpen.core.models.{file}")
        assert {n for n, each in vars(module).items() if isinstance(each, Table)} == set(names)
        for name in names:
            assert getattr(models, name) is getattr(module, name)


def test_the_whole_schema_has_every_table() -> None:
    assert set(METADATA.tables.values()) == {
        getattr(models, name) for names in models.FILES.values() for name in names
    }


def test_a_table_is_loaded_without_the_others_and_without_a_dialect() -> None:
    program = (
        "import json, sys; from bullpen.core.models import LANES; print(json.dumps([*sys.modules]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    loaded = {each for each in json.loads(done.stdout) if each.startswith("bullpen.core.models.")}
    assert loaded == {"bullpen.core.models.base", "bullpen.core.models.lane"}
    assert "sqlalchemy.dialects.postgresql" not in json.loads(done.stdout)


def test_a_table_that_is_not_there_is_no_attribute() -> None:
    with pytest.raises(AttributeError, match="'NOTHING'"):
        models.NOTHING  # noqa: B018 - asking for it is the test
