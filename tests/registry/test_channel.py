"""A channel's process: its program file, its client, and what ends it."""

from __future__ import annotations

import asyncio
import os
import queue
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from bullpen.channels import (
    ChannelContext,
    Document,
    Identity,
    Inbound,
    Intake,
    Note,
    Payload,
    Platform,
    Sending,
    main,
)
from bullpen.channels.main import ChannelProcess, find_channel
from bullpen.core.answers.attachments import OpenFile, RefusedFile, open_response_files
from bullpen.core.errors import BadSetting, ServiceFailed, UnknownService
from bullpen.core.message import Answer
from bullpen.core.models import CHANNEL_HEALTH, WORKERS
from bullpen.core.outbox.leases import lease_responses
from bullpen.core.outbox.write import send_to_person
from bullpen.core.registry import CHANNELS, ChannelInfo, ChannelSetting
from bullpen.core.settings import Settings
from bullpen.core.settings.accounts import AccountValues
from bullpen.core.store.base import Store
from bullpen.ops.services.programs import (
    include_paths,
    list_programs,
    make_directories,
    programs_set_up,
    write_channel_programs,
)
from bullpen.ops.services.supervisor import OWN_SERVICES
from tests.conformance.verbs import hire, rows
from tests.processor.working import eventually
from tests.registry.packages import install
from tests.stores import Stores

SOON = 60.0
CODE = """
from bullpen.core.registry import ChannelInfo, ChannelSetting
SETTINGS = (
    ChannelSetting("loft", "Where it lives.", required=True),
    ChannelSetting("token", "Its token.", required=True, secret=True),
)
CHANNEL = ChannelInfo(name="pigeon", settings=SETTINGS, factory="post:Client")
RAVEN = ChannelInfo(name="raven")
Client = object
"""


@pytest.fixture
def store(stores: Stores, settings: Settings) -> Iterator[Store]:
    """An empty store on the machine's own time, which wakes nobody by its poll."""
    with stores.opened(replace(settings, poll_seconds=300.0)) as opened:
        yield opened


class Pigeon(Platform):
    """A platform that receives nothing, and records what it is made with and sends."""

    made: ChannelContext
    sent: queue.SimpleQueue[str]

    def __init__(self, context: ChannelContext) -> None:
        super().__init__(context)
        Pigeon.made = context
        Pigeon.sent = queue.SimpleQueue()

    async def start(self) -> Identity:
        return Identity("pigeon")

    async def receive(self, intake: Intake) -> None:
        intake.connected()
        await asyncio.Event().wait()

    def parse(self, payload: Payload) -> Inbound | None:
        return None

    def fits(self, text: Document) -> bool:
        return True

    async def send(self, sending: Sending, note: Note) -> str:
        Pigeon.sent.put("" if sending.text is None else sending.text.plain())
        return sending.key


class Fails(Pigeon):
    """A platform with a fault that the base client cannot handle."""

    @property
    def progress_seconds(self) -> float:  # type: ignore[override]
        """The base client reads this at its start."""
        raise ConnectionError("the platform is gone")


class Stuck(Pigeon):
    """A platform that does not let the client stop."""

    async def close(self) -> None:
        time.sleep(1.0)


class Broken(Pigeon):
    """A platform that cannot be made."""

    def __init__(self, context: ChannelContext) -> None:
        raise ZeroDivisionError


def info(client: type, name: str = "slack-test") -> ChannelInfo:
    """A channel with this client."""
    return ChannelInfo(name=name, factory=f"{client.__module__}:{client.__name__}")


def test_a_platform_gets_its_settings_and_account_and_a_commit_wakes_it(
    stores: Stores, settings: Settings
) -> None:
    accounts = AccountValues({"slack.bot_token": "xoxb-1", "slack-sage.bot_token": "xoxb-2"})
    with stores.opened(replace(settings, poll_seconds=300.0, accounts=accounts)) as store:
        _check_context(store)


def _check_context(store: Store) -> None:
    ended = threading.Event()
    process = ChannelProcess(store, info(Pigeon, "slack-sage"), ended.set)
    process.start()
    assert [row["kind"] for row in rows(store, WORKERS)] == ["slack-sage"]
    eventually(
        lambda: [each["state"] for each in rows(store, CHANNEL_HEALTH)] == ["up"], "it is up"
    )
    assert Pigeon.made.account == "slack-sage"
    assert Pigeon.made.setting("bot_token") == "xoxb-2"
    assert Pigeon.made.setting("transport") == "socket"
    with store.write() as tx:
        send_to_person(tx, Answer(message="coo"), channel="slack-sage", sender="ann")
    assert Pigeon.sent.get(timeout=SOON) == "coo"
    process.stop()
    assert not process.failed
    assert not ended.is_set()
    assert rows(store, WORKERS) == []
    assert [each["state"] for each in rows(store, CHANNEL_HEALTH)] == ["stopped"]


def test_a_client_that_fails_ends_the_process_as_a_failure(store: Store) -> None:
    ended = threading.Event()
    process = ChannelProcess(store, info(Fails), ended.set)
    process.start()
    assert ended.wait(SOON)
    process.stop()
    assert process.failed
    assert rows(store, WORKERS) == []


def test_a_client_that_does_not_stop_is_left(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(main, "CLIENT_STOP_SECONDS", 0.1)
    process = ChannelProcess(store, info(Stuck), threading.Event().set)
    process.start()
    process.stop()
    assert rows(store, WORKERS) == []
    eventually(lambda: "client" not in {each.name for each in threading.enumerate()}, "it ends")


def test_a_platform_that_cannot_be_made_ends_the_process_as_a_failure(store: Store) -> None:
    ended = threading.Event()
    process = ChannelProcess(store, info(Broken), ended.set)
    process.start()
    assert ended.wait(SOON)
    process.stop()
    assert rows(store, WORKERS) == []


def test_a_channel_must_have_a_client_and_what_it_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    entries = {name: f"post:{name.upper()}" for name in ("raven", "lost")}
    install(tmp_path, "post", CHANNELS.group, {"pigeon": "post:CHANNEL", **entries}, CODE)
    for name in ("raven", "web", "nonesuch"):
        with pytest.raises(UnknownService, match=f"channel '{name}' has no client") as raised:
            find_channel(name, Settings())
        assert "pigeon" in str(raised.value.hint)
    with pytest.raises(ServiceFailed, match="the channel lost of the package post"):
        find_channel("lost", Settings())
    with pytest.raises(BadSetting, match=r"needs the setting pigeon\.loft") as bad:
        find_channel("pigeon", Settings())
    assert "BULLPEN_PIGEON_LOFT" in str(bad.value.hint)
    half = replace(Settings(), accounts=AccountValues({"pigeon.loft": "roof"}))
    with pytest.raises(BadSetting, match=r"needs the setting pigeon\.token"):
        find_channel("pigeon", half)
    whole = Settings.load({"BULLPEN_PIGEON_TOKEN": "coo", "BULLPEN_PIGEON_LOFT": "roof"})
    assert find_channel("pigeon", whole).name == "pigeon"
    with pytest.raises(BadSetting, match=r"needs the setting pigeon-home\.loft"):
        find_channel("pigeon-home", whole)


def test_a_packages_channel_has_a_program_file_as_long_as_it_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = replace(Settings(), home=tmp_path / "a [home] of ours")
    make_directories(settings)
    own = {each.name for each in list_programs(settings)}
    place = tmp_path / "packages"
    install(place, "post", CHANNELS.group, {"pigeon": "post:CHANNEL", "raven": "post:RAVEN"}, CODE)
    with monkeypatch.context() as installed:
        installed.setattr(sys, "path", [*sys.path, str(place)])
        write_channel_programs(settings)
    (pigeon,) = (each for each in list_programs(settings) if each.name not in own)
    assert pigeon.name == "pigeon"
    assert "run channel pigeon\n" in pigeon.file.read_text()
    with monkeypatch.context() as installed:
        installed.setattr(sys, "path", [*sys.path, str(place)])
        assert not pigeon.set_up(settings)
        accounts = AccountValues({"pigeon.loft": "roof", "pigeon.token": "coo"})
        assert pigeon.set_up(replace(settings, accounts=accounts))
    (pattern,) = include_paths([pigeon]).split()
    assert list(Path("/").glob(pattern[1:])) == [pigeon.file]
    write_channel_programs(settings)
    assert {each.name for each in list_programs(settings)} == own


def test_an_account_has_a_program_file_as_long_as_it_has_settings(tmp_path: Path) -> None:
    settings = replace(Settings(), home=tmp_path / "home")
    make_directories(settings)
    own = {each.name: each for each in list_programs(settings)}
    assert not own["slack"].set_up(settings)
    named = {f"{each}.bot_token": "xoxb-1" for each in ("slack", "slack-sage", "slack-half")}
    named |= {f"{each}.app_token": "xapp-1" for each in ("slack", "slack-sage")}
    accounts = AccountValues({**named, "web.port": "1", "nonesuch.port": "1"})
    configured = replace(settings, accounts=accounts)
    write_channel_programs(configured)
    programs = {each.name: each for each in list_programs(settings)}
    assert programs.keys() - own.keys() == {"slack-sage", "slack-half"}
    assert "run channel slack-sage\n" in programs["slack-sage"].file.read_text()
    ready = {each.name for each in programs_set_up(configured)}
    assert ready == OWN_SERVICES | {"slack", "slack-sage"}
    write_channel_programs(settings)
    assert {each.name for each in list_programs(settings)} == own.keys()


def test_a_delivery_gets_its_files_open_and_none_that_was_swapped(
    store: Store,
) -> None:
    """At the moment of sending a file is opened as it is then; a refusal says why."""
    settings = store.settings
    own = settings.workspace / "coder"
    own.mkdir(parents=True)
    (settings.home / "token").write_text("the token")
    for name in ("fine", "link", "hard", "gone"):
        (own / name).write_text(name)
    hire(store, "coder")
    files = tuple(str(own / name) for name in ("fine", "link", "hard", "gone"))
    files = (*files, str(settings.home / "token"))
    with store.write() as tx:
        answer = Answer(message="look", files=files)
        send_to_person(tx, answer, channel="pigeon", sender="Ann", agent="coder")
        (delivery,) = lease_responses(tx, "pigeon", "w")
    for name in ("link", "hard", "gone"):
        (own / name).unlink()
    (own / "link").symlink_to(settings.home / "token")
    os.link(settings.home / "token", own / "hard")
    with open_response_files(store, delivery) as found:
        opened = found[0]
        assert isinstance(opened, OpenFile)
        assert (opened.name, opened.size, opened.file.read()) == ("fine", 4, b"fine")
        assert all(isinstance(each, RefusedFile) for each in found[1:])
        assert [str(each).rpartition(": ")[2] for each in found[1:]] == [
            "it is outside of the agent's workspace and the stored files",
            "it has a hard link",
            "it does not exist",
            "it is outside of the agent's workspace and the stored files",
        ]
    assert opened.file.closed


@pytest.mark.parametrize("value", ["mail.example.org:993", "127.0.0.1:1", "[::1]:65535"])
def test_a_server_is_a_host_and_a_port(value: str) -> None:
    setting = ChannelSetting("server", "Where.", server=True)
    assert setting.check(f" {value} ") == value


@pytest.mark.parametrize(
    "value", ["mail.example.org", "mail.example.org:", ":993", "a b:1", "a:0", "a:65536", "a:x"]
)
def test_another_server_is_refused_with_the_form(value: str) -> None:
    with pytest.raises(ValueError, match=r"HOST:PORT|65535"):
        ChannelSetting("server", "Where.", server=True).check(value)
