"""What the doctor says of a home, and its store for those who bring trouble about."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest import mock

from bullpen.core.clock import Clock, SystemClock
from bullpen.core.settings import Settings
from bullpen.core.store.base import Store
from bullpen.core.store.open import open_store
from bullpen.ops.doctor import installation as installation_module
from bullpen.ops.doctor.check import Check, Finding
from bullpen.ops.doctor.examine import run_check
from bullpen.ops.doctor.installation import Installation, open_database
from tests.cli.command import Bullpen
from tests.cli.warm import FIRST

Entry = dict[str, Any]


LONG = 60.0


def hurried(bullpen: Bullpen) -> Bullpen:
    """Its doctor as a person calls it, whom nothing that hangs may keep waiting."""
    return replace(bullpen, environ={**bullpen.environ, FIRST: ""})


def checks(bullpen: Bullpen, *args: str, **more: str) -> dict[str, Entry]:
    """What the doctor says, by the checks' ids."""
    said = bullpen("doctor", "--json", *args, **more)
    return {each["id"]: each for each in said.json["checks"]}


def seen(bullpen: Bullpen, id_: str, *args: str, **more: str) -> Entry:
    """What one check says."""
    return checks(bullpen, "--only", id_, *args, **more)[id_]


def found(bullpen: Bullpen, id_: str, severity: str, *args: str, **more: str) -> str:
    """What one check says that must find something of this severity, with a remedy."""
    entry = seen(bullpen, id_, *args, **more)
    assert (entry["state"], entry["severity"]) == ("found", severity), entry
    assert entry["text"]
    assert entry["remedy"]
    return str(entry["text"])


def fine(bullpen: Bullpen, id_: str, *args: str, **more: str) -> None:
    """One check has nothing to say, and was made."""
    entry = seen(bullpen, id_, *args, **more)
    assert entry["state"] == "ok", entry


def fixed(bullpen: Bullpen, id_: str) -> None:
    """It is put right, and then it is."""
    assert seen(bullpen, id_)["fixable"] is True
    said = bullpen("doctor", "--fix", "--yes", "--only", id_, "--json")
    assert said.json["fixed"][0]["id"] == id_, said
    assert said.json["fixed"][0]["error"] == "", said
    assert said.json["checks"][0]["state"] == "ok", said
    fine(bullpen, id_)


def settings_of(bullpen: Bullpen) -> Settings:
    """The settings of its home."""
    environ = bullpen.environment()
    return Settings.load({name: text for name, text in environ.items() if "BULLPEN_" in name})


@contextmanager
def store_of(bullpen: Bullpen, clock: Clock | None = None) -> Iterator[Store]:
    """The store of its home."""
    store = open_store(settings_of(bullpen), clock=clock)
    try:
        yield store
    finally:
        store.close()


@contextmanager
def installation_of(bullpen: Bullpen, **more: Any) -> Iterator[Installation]:  # noqa: ANN401 - its fields
    """Its home, for checks that are made in this process."""
    settings = settings_of(bullpen)
    environ: Mapping[str, str] = bullpen.environment()
    with mock.patch.object(installation_module, "OPEN_SECONDS", LONG):
        database = open_database(settings)
    installation = Installation(
        settings=settings, environ=environ, now=SystemClock().now(), database=database, **more
    )
    try:
        yield installation
    finally:
        installation.database.close()


def look_at(bullpen: Bullpen, check: Check, **more: Any) -> Finding:  # noqa: ANN401 - as above
    """What one check says, made in this process."""
    with installation_of(bullpen, **more) as installation:
        return run_check(installation, check)
