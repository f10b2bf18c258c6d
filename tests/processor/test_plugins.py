"""Plugins: loaded in order, heard in turn, and never in anybody's way."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from bullpen.core.events.log import EventRecord
from bullpen.core.settings import Settings
from bullpen.core.store.base import Store
from bullpen.processor import plugins as plugins_module
from bullpen.processor.plugins import (
    MAX_METADATA_CHARS,
    MAX_PENDING_METADATA,
    PluginContext,
    Plugins,
)
from tests.conformance.verbs import hire, responses, send
from tests.outbox.outgoing import asked
from tests.processor.working import child, eventually, output, processing

MESSAGE = asked("m1")


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A home; what its plugins were loaded as is forgotten afterwards."""
    (tmp_path / "plugins").mkdir()
    yield tmp_path
    for name in [name for name in sys.modules if name.startswith("bullpen_plugin_")]:
        del sys.modules[name]


def _write(home: Path, name: str, source: str) -> None:
    path = home / "plugins" / name
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_text(source)


def _gives(way: str, result: str) -> str:
    """A plugin that makes this of every text."""
    return f"def transform_{way}(text, about):\n    return {result}\n"


def _marks(mark: str) -> str:
    """A plugin that puts its mark at the end of every text."""
    return _gives("incoming", f"text + '{mark}'") + _gives("outgoing", f"text + '{mark}'")


def test_without_plugins_nothing_is_changed(tmp_path: Path) -> None:
    plugins = Plugins.load(tmp_path)
    assert plugins.incoming(MESSAGE, "hello") == "hello"
    assert plugins.outgoing(MESSAGE, "hello") == ("hello", None)
    assert not plugins.listens


def test_files_packages_and_entry_points_follow_each_other_by_name(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _write(home, "d.py", _marks("d"))
    _write(home, "a.py", _marks("a"))
    _write(home, "b/__init__.py", "from .marks import *\n")
    _write(home, "b/marks.py", _marks("b"))
    _write(home, "not_one/readme.py", _marks("x"))
    _write(home, "_private.py", _marks("x"))
    _write(home, ".hidden.py", _marks("x"))
    _write(home, "__pycache__/__init__.py", _marks("x"))
    (home / "c_of_others.py").write_text(_marks("c"))
    monkeypatch.syspath_prepend(home)
    points = [EntryPoint("c", "c_of_others", "bullpen.plugins")]
    monkeypatch.setattr(plugins_module, "entry_points", lambda group: points)
    plugins = Plugins.load(home)
    assert plugins.incoming(MESSAGE, "") == "abcd"
    assert plugins.outgoing(MESSAGE, "") == ("abcd", None)


def test_a_plugin_may_have_a_dataclass(home: Path) -> None:
    _write(
        home,
        "a.py",
        "from __future__ import annotations\nfrom dataclasses import dataclass\n"
        "@dataclass\nclass Mark:\n    text: str\n"
        "def transform_incoming(text, about):\n    return text + Mark('!').text\n",
    )
    assert Plugins.load(home).incoming(MESSAGE, "hi") == "hi!"


def test_a_plugin_knows_what_a_text_belongs_to(home: Path) -> None:
    _write(
        home,
        "a.py",
        "def transform_incoming(text, about):\n"
        "    return '|'.join((text, about.channel, about.sender, about.message_id, about.agent,"
        " about.original_message))\n",
    )
    assert Plugins.load(home).incoming(MESSAGE, "x") == "x|slack|Ann|m1|coder|what?"


def test_a_text_may_come_with_what_goes_along_with_the_answer(home: Path) -> None:
    _write(home, "a.py", "def transform_outgoing(text, about):\n    return text + 'a', {'x': 1}\n")
    _write(
        home, "b.py", "def transform_outgoing(text, about):\n    return (text + 'b', {'y': 2})\n"
    )
    _write(
        home, "c.py", "def transform_incoming(text, about):\n    return text, {'x': 0, 'z': 3}\n"
    )
    plugins = Plugins.load(home)
    plugins.incoming(MESSAGE, "hello")
    text, metadata = plugins.outgoing(MESSAGE, "hello")
    assert text == "helloab"
    assert json.loads(metadata or "") == {"x": 1, "y": 2, "z": 3}
    # What came with one message stays with its answer.
    assert json.loads(plugins.outgoing(asked("m2"), "hello")[1] or "") == {"x": 1, "y": 2}


def test_what_came_with_messages_that_are_never_answered_is_forgotten(home: Path) -> None:
    _write(home, "c.py", _gives("incoming", "text, {'z': 3}"))
    plugins = Plugins.load(home)
    for number in range(MAX_PENDING_METADATA + 1):
        plugins.incoming(asked(f"m{number}"), "hello")
    assert plugins.outgoing(asked("m0"), "x") == ("x", None)
    assert plugins.outgoing(asked("m1"), "x") == ("x", '{"z": 3}')


@pytest.mark.parametrize(
    "broken",
    [
        "def transform_incoming(text, about",
        "import nothing_of_that_name",
        "raise RuntimeError('no')",
        "import sys\nsys.exit(3)",
        "def activate(context):\n    raise RuntimeError('no')\n" + _marks("x"),
        "def activate():\n    pass\n" + _marks("x"),
        "from . import nothing\n",
    ],
)
def test_one_that_cannot_be_loaded_is_logged_and_skipped(
    home: Path, caplog: pytest.LogCaptureFixture, broken: str
) -> None:
    _write(home, "a.py", _marks("a"))
    _write(home, "b.py", broken)
    _write(home, "c.py", _marks("c"))
    plugins = Plugins.load(home)
    assert plugins.incoming(MESSAGE, "") == "ac"
    assert "plugin b could not be loaded" in caplog.text


@pytest.mark.parametrize(
    "result",
    [
        *("None", "5", "b'bytes'", "['a']", "(text,)", "(text, {}, 1)", "(text, None)"),
        *("(text, [1])", "(None, {})", "(text, {'x': object()})", "(text, {'x': float('nan')})"),
        *("1 / 0", "undefined", "(text, {'x': 'y' * 1_000_000})", "about.nothing"),
    ],
)
def test_one_that_fails_is_logged_and_skipped_for_that_message(
    home: Path, caplog: pytest.LogCaptureFixture, result: str
) -> None:
    _write(home, "a.py", _marks("a"))
    _write(home, "b.py", _gives("outgoing", result))
    _write(home, "c.py", _marks("c"))
    assert Plugins.load(home).outgoing(MESSAGE, "") == ("ac", None)
    assert "plugin b failed" in caplog.text
    assert MAX_METADATA_CHARS < 1_000_000


def test_what_no_database_can_keep_is_replaced(home: Path) -> None:
    _write(home, "a.py", _gives("outgoing", "'a\\0\\ud800'"))
    assert Plugins.load(home).outgoing(MESSAGE, "")[0] == "a\N{REPLACEMENT CHARACTER}?"


def test_activate_is_given_the_home_a_log_and_events(
    home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    _write(home, "a.py", "def activate(context):\n    context.log.info('in %s', context.home)\n")
    with caplog.at_level(logging.INFO, "bullpen.plugin.a"):
        Plugins.load(home)
    assert f"in {home}" in caplog.text


class Listening:
    """A plugin that hears."""

    def __init__(self, event: str, heard: Callable[[EventRecord], object]) -> None:
        self.event = event
        self.heard = heard

    def activate(self, context: PluginContext) -> None:
        """Listen."""
        context.on(self.event, self.heard)


def test_listeners_hear_what_they_asked_for(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    one: list[str] = []
    every: list[str] = []
    plugins = Plugins()
    plugins.add("a", Listening("message_dead", lambda event: one.append(event.type)), tmp_path)
    plugins.add("b", Listening("*", lambda event: [][1]), tmp_path)
    plugins.add("c", Listening("*", lambda event: every.append(event.type)), tmp_path)
    assert plugins.listens
    for kind in ("message_dead", "lane_paused"):
        plugins.dispatch(EventRecord(1, kind, None, None, None, {}, 0))
    assert (one, every) == (["message_dead"], ["message_dead", "lane_paused"])
    assert caplog.text.count("plugin b failed at") == 2


def test_a_processors_plugins_hear_its_events_and_their_metadata_is_in_the_response(
    store: Store,
) -> None:
    heard: list[EventRecord] = []

    class Plugin(Listening):
        """Hears, and changes what is said."""

        def transform_incoming(self, text: str, about: object) -> str:
            """What the agent reads."""
            return text + "!"

        def transform_outgoing(self, text: str, about: object) -> tuple[str, dict[str, object]]:
            """What it said."""
            return text.upper(), {"parse_mode": "plain"}

    plugins = Plugins()
    plugins.add("a", Plugin("*", heard.append), store.settings.home)
    hire(store)
    with processing(store, plugins=plugins):
        sent = send(store, "hello")
        eventually(
            lambda: any(each.type == "chain_step_done" for each in heard), "the events were heard"
        )
    (row,) = responses(store)
    assert "HELLO!" in row["message"]
    assert json.loads(row["metadata"]) == {"parse_mode": "plain"}
    assert {each.message_id for each in heard if each.type == "message_enqueued"} == {sent}


def test_plugins_are_active_before_the_first_message_is_claimed(
    store: Store, settings: Settings
) -> None:
    _write(
        settings.home,
        "a.py",
        "import time\nactive = []\n"
        "def activate(context):\n    time.sleep(1)\n    active.append(True)\n"
        "def transform_incoming(text, about):\n    return f'active: {active}'\n",
    )
    hire(store)
    send(store, "hello")
    with child(settings):
        eventually(lambda: responses(store) != [], f"an answer; {output(settings)}")
    assert "active: [True]" in responses(store)[0]["message"]
