"""What every test may ask for."""

from __future__ import annotations

import gc
import re
import signal
from collections.abc import Iterator
from zlib import crc32

import hypothesis
import pytest

from bullpen.core.settings import Settings
from bullpen.core.store.base import Store
from tests.stores import FakeClock, Stores, all_stores

# A shell that runs the tests in its background has them ignore these, and what they start as well.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGQUIT, signal.SIG_DFL)

# How long an example takes says how busy the machine is.
hypothesis.settings.register_profile("tests", deadline=None)
hypothesis.settings.load_profile("tests")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what runs on one store; mix the files among the workers of xdist.

    The files are mixed because neighbours are slow together, or fast. The tests of the shared
    session of Spark come first, which gives them all to the first worker: a session takes long to
    start and to get warm.
    """
    if not all_stores():
        _leave_out_a_store(items)
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: (not _uses_spark(item), crc32(_file(item).encode())))


def _leave_out_a_store(items: list[pytest.Item]) -> None:
    """Of a test with the mark `one_store` that runs on two, keep the one that its name chooses.

    With `one_store("file")` the file chooses, because its tests share what is slow to start.
    """
    found: dict[tuple[str, str], list[pytest.Item]] = {}
    for item in items:
        if mark := item.get_closest_marker("one_store"):
            name = _file(item) + re.sub("sqlite|postgresql", "", item.name)
            chooser = _file(item) if mark.args else name
            found.setdefault((name, chooser), []).append(item)
    left_out = {
        both[crc32(chooser.encode()) % 2] for (_, chooser), both in found.items() if len(both) == 2
    }
    items[:] = [each for each in items if each not in left_out]


def _uses_spark(item: pytest.Item) -> bool:
    return "shared_spark" in getattr(item, "fixturenames", ())


def _file(item: pytest.Item) -> str:
    return item.path.relative_to(item.config.rootpath).as_posix()


def pytest_collection_finish() -> None:
    """Keep the garbage collector from going through thousands of tests again and again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stores]:
    """The maker of databases."""
    made = Stores(tmp_path_factory.mktemp("stores"))
    yield made
    made.close()


@pytest.fixture(autouse=True)
def one_test(stores: Stores) -> Iterator[None]:
    """What a test takes of the databases it gives back when all else of it is over."""
    with stores.one_test():
        yield


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def kind(request: pytest.FixtureRequest) -> str:
    """Which database: every test that asks for it runs on both."""
    return str(request.param)


@pytest.fixture
def clock() -> FakeClock:
    """A clock that stands until it is moved."""
    return FakeClock()


@pytest.fixture
def settings(stores: Stores, kind: str) -> Settings:
    """A home with a fresh database."""
    return stores.settings(kind)


@pytest.fixture
def store(stores: Stores, settings: Settings, clock: FakeClock) -> Iterator[Store]:
    """An empty store at the fake clock's time."""
    with stores.opened(settings, clock) as opened:
        yield opened
