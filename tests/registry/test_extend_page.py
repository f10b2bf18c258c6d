"""The channel of the page about packages works as it is printed, and its feed loses nothing."""

from __future__ import annotations

import importlib
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bullpen.channels.main import ChannelProcess, find_channel
from bullpen.core.channels.senders import Tier, set_tier
from bullpen.core.message import Answer
from bullpen.core.models import CHANNEL_HEALTH, MESSAGES
from bullpen.core.outbox.write import send_to_person
from bullpen.core.settings.accounts import AccountValues
from bullpen.core.store.base import Store
from tests.conformance.verbs import hire, rows
from tests.processor.working import eventually
from tests.stores import Stores

PAGE = Path(__file__).resolve().parents[2] / "docs/how-to/extend.md"
FILES = ("pyproject.toml", "bullpen_lines/__init__.py", "bullpen_lines/client.py")
AGENT = "coder"


class Lines:
    """An account of the page's channel, and its two files."""

    def __init__(self, store: Store, file: Path) -> None:
        self.store = store
        self._file = file

    @contextmanager
    def served(self) -> Iterator[None]:
        """Serve it, until the end of the block."""
        info = find_channel("lines", self.store.settings)
        process = ChannelProcess(self.store, info, threading.Event().set)
        process.start()
        try:
            yield
        finally:
            process.stop()

    def write(self, *lines: str) -> None:
        """People write."""
        with self._file.open("a") as file:
            file.writelines(f"{each}\n" for each in lines)

    def answers(self) -> str:
        """What people read."""
        path = Path(f"{self._file}.answers")
        return path.read_text() if path.exists() else ""

    def stored(self, *texts: str) -> None:
        """Wait until these messages are stored, and no others."""
        eventually(lambda: len(rows(self.store, MESSAGES)) >= len(texts), f"{texts}")
        assert [each["message"] for each in rows(self.store, MESSAGES)] == list(texts)

    def pair(self, name: str) -> None:
        """Let a person in."""
        with self.store.write() as tx:
            set_tier(tx, "lines", name, Tier.MEMBER, by="owner", name=name)


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The package of the page, installed."""
    text = PAGE.read_text().partition("## A channel")[2]
    blocks = re.findall(r"```(?:toml|python)\n(.*?)```", text, re.DOTALL)
    for name, content in zip(FILES, blocks, strict=False):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(content)
    (entries,) = re.findall(r"\[project.entry-points.*", blocks[0], re.DOTALL)
    info = tmp_path / "bullpen_lines-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: bullpen-lines\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        entries.replace("project.entry-points.", "").replace('"', "")
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    return tmp_path


@pytest.fixture
def lines(package: Path, stores: Stores) -> Iterator[Lines]:
    """An account, with one agent."""
    file = package / "lines"
    file.touch()
    values = {"lines.file": str(file), "lines.poll_seconds": "1"}
    settings = stores.settings("sqlite")
    settings = replace(settings, accounts=AccountValues(values), default_agent=AGENT)
    with stores.opened(settings) as store:
        hire(store, AGENT)
        yield Lines(store, file)


def test_the_channel_of_the_page_receives_and_answers(lines: Lines) -> None:
    with lines.served():
        lines.write("no message", "ann: hello")
        eventually(lambda: "pairing approve" in lines.answers(), "the pairing code")
        lines.pair("ann")
        lines.write("ann: hello again")
        lines.stored("hello again")
        with lines.store.write() as tx:
            answer = Answer(message="a *reply*")
            send_to_person(tx, answer, channel="lines", sender="ann", sender_id="ann", reply_to="")
        eventually(lambda: "ann: a " in lines.answers(), "the answer")


def test_a_feed_is_read_on_from_its_cursor_also_past_what_is_ignored_or_broken(
    lines: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    module: Any = importlib.import_module("bullpen_lines.client")
    right, read = module.Lines.missed, module.Lines.parse
    cursors: list[str] = []

    async def missed(self: Any, place: Any, limit: int) -> Any:  # noqa: ANN401
        cursors.append(place.cursor)
        return await right(self, place, limit)

    def parse(self: Any, payload: Any) -> Any:  # noqa: ANN401
        if payload["line"] == "broken":
            raise ZeroDivisionError
        return read(self, payload)

    monkeypatch.setattr(module.Lines, "missed", missed)
    monkeypatch.setattr(module.Lines, "parse", parse)
    lines.pair("ann")
    with lines.served():
        lines.write("ann: one", *["broken"] * 250, *["ignored"] * 250, "stranger: hello")
        lines.stored("one")
        eventually(lambda: cursors[-1] == "502", "it is past all of them")
    lines.write("ann: two")
    cursors.clear()
    with lines.served():
        lines.stored("one", "two")
        assert cursors[0] == "1"  # the last that was stored
        eventually(lambda: cursors[-1] == "503", "it is read to the end")


def test_a_feed_that_cannot_be_read_is_a_state_and_is_read_when_it_can(
    lines: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    module: Any = importlib.import_module("bullpen_lines.client")
    lines.pair("ann")
    with lines.served():
        lines.write("ann: one")
        lines.stored("one")
        with monkeypatch.context() as patch:

            async def broken(*_: object) -> None:
                raise ConnectionError("the disk is away")

            patch.setattr(module.Lines, "missed", broken)
            lines.write("ann: two")
            eventually(lambda: "the disk is away" in health(lines)["reason"], "the state")
            assert health(lines)["state"] != "up"
        lines.stored("one", "two")
        eventually(lambda: health(lines)["state"] == "up", "it is up again")


def health(lines: Lines) -> dict[str, str]:
    """The health of the account."""
    (found,) = rows(lines.store, CHANNEL_HEALTH)
    return dict(found)
