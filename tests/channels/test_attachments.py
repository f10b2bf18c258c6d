"""Files of a message: fetched after its commit, each on its own, and no text is lost for a file."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import pytest

from bullpen.channels.files.attachments import (
    MAX_EXPECTED,
    MAX_FILES,
    NOT_IN_TIME,
    WAIT_MS,
    Attachments,
    Sender,
)
from bullpen.channels.files.fetching import BadAnswer, FetchingClient
from bullpen.channels.inbound import Attachment
from bullpen.channels.platform import Download
from bullpen.core.clock import SECOND
from bullpen.core.errors import StoreBusy
from bullpen.core.file_records import is_used_in
from bullpen.core.intake import submit
from bullpen.core.message import ErrorKind, NewMessage, ReplyTo
from bullpen.core.models import AGENT_MESSAGES, CHAT_MESSAGES, MESSAGES
from bullpen.core.queue.attach import attach, release
from bullpen.core.queue.lanes import LanePolicy, Ordering
from bullpen.core.queue.manage import cancel, resume
from bullpen.core.roster.teams import Team, add_team
from bullpen.core.store.base import Store
from bullpen.core.store.transaction import Transaction
from tests.channels.fakes.faults import Fault
from tests.channels.fakes.files import FileHost
from tests.conformance.conftest import lanes_tell_the_truth  # noqa: F401
from tests.conformance.verbs import (
    Row,
    done,
    failed,
    hire,
    message,
    responses,
    rows,
    take,
    texts_of,
    try_claim,
)
from tests.stores import FakeClock

Result = TypeVar("Result")
PNG = b"\x89PNG\r\n\x1a\n" + bytes(100)
log = logging.getLogger("bullpen.test")


@pytest.fixture
def host() -> Iterator[FileHost]:
    with FileHost() as running:
        yield running


@dataclass
class Account:
    """A channel's client reduced to its attachments: messages are stored as it stores them."""

    store: Store
    host: FileHost
    limit: int = 1 << 20
    fetch_seconds: float = 20.0
    busy: int = 0
    """How often the store is busy first."""
    located: list[str] = field(default_factory=list)

    async def write(self, work: Callable[[Transaction], Result]) -> Result:
        if self.busy:
            self.busy -= 1
            raise StoreBusy("the database is locked")

        def run() -> Result:
            with self.store.write() as tx:
                return work(tx)

        return await asyncio.to_thread(run)

    async def locate(self, attachment: Attachment) -> Download:
        self.located.append(attachment.name)
        if attachment.source == "refused":
            raise BadAnswer("the workspace does not share it")
        if attachment.source == "broken":
            raise RuntimeError("a defect of the platform's file")
        return Download(url=attachment.source, hosts=(self.host.url,))

    def run(self, work: Callable[[Talk], Awaitable[None]]) -> None:
        """Run this in a loop, and wait for all files."""

        async def whole() -> None:
            async with FetchingClient(self.store.settings, limit=self.limit) as client:
                files = Attachments(
                    client,
                    self.locate,
                    self,
                    self.store.ids,
                    self.store.settings.run / "unfetched",
                    log,
                    fetch_seconds=self.fetch_seconds,
                    pauses=(0.01, 0.01),
                )
                await work(Talk(self, files))
                while files.busy:
                    await asyncio.sleep(0.01)
                await files.close()

        asyncio.run(whole())


@dataclass
class Talk:
    """What a test does in the loop."""

    account: Account
    files: Attachments

    async def say(
        self, text: str, *attachments: Attachment, chat: str = "C1", delay: int = 0, **more: object
    ) -> str:
        """Store a message and have its attachments fetched, as the base client does."""

        def work(tx: Transaction) -> tuple[str, int]:
            prepared = self.files.prepare(chat, text, attachments, delay)
            new = NewMessage(
                agent="coder",
                message=prepared.text,
                channel="slack",
                sender="Ann",
                sender_id="U1",
                reply_to=ReplyTo(chat),
                delay=prepared.delay,
                **more,  # type: ignore[arg-type]
            )
            message_id = submit(tx, new)[0].message_id
            if prepared.delay == WAIT_MS:
                self.files.keep(chat, message_id, attachments, sender, delay)
            return message_id, prepared.delay

        sender = Sender("slack", "Ann", "U1", str(ReplyTo(chat)))
        with self.account.store.write() as tx:
            message_id, waits = work(tx)
        if waits == WAIT_MS:
            self.files.take_in(chat, message_id, attachments, sender, delay)
        return message_id


@pytest.fixture
def account(store: Store, host: FileHost) -> Account:
    hire(store)
    hire(store, "reviewer")
    return Account(store, host)


def told(store: Store) -> list[str]:
    return [row["message"] for row in responses(store)]


def files_of(row: Row) -> list[Path]:
    return [Path(each) for each in json.loads(row["files"] or "[]")]


def test_a_message_gets_its_files_and_keeps_its_text(account: Account) -> None:
    url = account.host.put("/photo", PNG)

    async def work(talk: Talk) -> None:
        await talk.say("look at this", Attachment(name="photo.png", source=url, size=len(PNG)))
        # Until the file is there, nobody can claim it.
        assert try_claim(account.store) is None

    account.run(work)
    claim = take(account.store)
    assert texts_of(claim) == ["look at this"]
    row = message(account.store, claim.primary.message_id)
    (path,) = files_of(row)
    assert path.read_bytes() == PNG
    assert path.name.endswith("_photo.png")
    assert row["due_at"] == row["created_at"]
    with account.store.read() as tx:
        assert is_used_in(tx, path.name, row["conversation_id"], "coder", None)
    history = [each["content"] for each in rows(account.store, AGENT_MESSAGES)]
    assert history == ["look at this"]
    assert told(account.store) == []


def test_a_file_without_a_text_and_without_a_suffix_is_a_message(account: Account) -> None:
    url = account.host.put("/photo", PNG)

    async def work(talk: Talk) -> None:
        await talk.say("", Attachment(name="photo", source=url))

    account.run(work)
    claim = take(account.store)
    assert texts_of(claim) == [""]
    assert files_of(message(account.store, claim.primary.message_id))[0].suffix == ".png"


def test_one_bad_file_affects_neither_the_text_nor_the_others(account: Account) -> None:
    good = account.host.put("/good", PNG)
    large = account.host.put("/large", bytes(3 << 20))
    page = account.host.put("/page", b"<!doctype html>", "text/html")

    async def work(talk: Talk) -> None:
        await talk.say(
            "four files",
            Attachment(name="report.pdf", source=large, size=3 << 20),
            Attachment(name="a.pdf", source=page),
            Attachment(name="b.pdf", source="refused"),
            Attachment(name="c.pdf", source="broken"),
            Attachment(name="d.pdf", source="https://evil.example/x"),
            Attachment(name="good.png", source=good),
        )

    account.run(work)
    claim = take(account.store)
    assert texts_of(claim) == [
        "four files\n\n"
        "[attachment report.pdf was not accepted: its size is 3 MB, the limit is 1 MB]\n"
        "[attachment a.pdf was not accepted: the platform sent a web page instead]\n"
        "[attachment b.pdf was not accepted: the workspace does not share it]\n"
        "[attachment c.pdf was not accepted: an error occurred; see the log of the"
        " channel]\n"
        "[attachment d.pdf was not accepted: its address is not on a host of the platform"
        " (https://evil.example)]"
    ]
    assert len(files_of(message(account.store, claim.primary.message_id))) == 1
    (said,) = told(account.store)
    assert said.startswith(
        "report.pdf was not accepted: its size is 3 MB, the limit is 1 MB.\n"
        "a.pdf was not accepted: "
    )
    assert "report.pdf" not in account.located  # its announced size is enough


def test_a_message_has_at_most_ten_files(account: Account) -> None:
    url = account.host.put("/x", PNG)
    many = [Attachment(name=f"{each}.png", source=url) for each in range(MAX_FILES + 3)]

    async def work(talk: Talk) -> None:
        await talk.say("many", *many)

    account.run(work)
    claim = take(account.store)
    assert texts_of(claim) == [
        "many\n\n[attachment the rest (3 files) was not accepted: "
        "a message can have at most 10 files]"
    ]
    assert len(files_of(message(account.store, claim.primary.message_id))) == MAX_FILES


def test_a_temporary_failure_is_tried_again(account: Account) -> None:
    url = account.host.put("/x", PNG)
    account.host.fail(Fault.ERROR)
    account.host.fail(Fault.HALF)

    async def work(talk: Talk) -> None:
        await talk.say("hello", Attachment(name="x.png", source=url))

    account.run(work)
    assert texts_of(take(account.store)) == ["hello"]
    assert len(account.host.requests()) == 3


def test_a_file_that_takes_too_long_is_refused(account: Account) -> None:
    url = account.host.put("/x", PNG)
    account.host.fail(Fault.HANG, times=None)
    account.fetch_seconds = 0.3
    began = time.monotonic()

    async def work(talk: Talk) -> None:
        await talk.say("hello", Attachment(name="x.png", source=url))

    account.run(work)
    assert time.monotonic() - began < 10
    assert "took too long" in texts_of(take(account.store))[0]


def test_files_wait_for_the_store(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bullpen.channels.files.attachments.STORE_RETRY_SECONDS", 0.01)
    url = account.host.put("/x", PNG)
    account.busy = 3

    async def work(talk: Talk) -> None:
        await talk.say("hello", Attachment(name="x.png", source=url))

    account.run(work)
    assert texts_of(take(account.store)) == ["hello"]


def test_later_messages_of_a_chat_wait_for_the_files_of_earlier_ones(account: Account) -> None:
    """What a person writes below a photo is answered with the photo, not before it."""
    url = account.host.put("/x", PNG)
    account.host.fail(Fault.SLOW, seconds=0.3)

    async def work(talk: Talk) -> None:
        await talk.say("", Attachment(name="x.png", source=url))
        await talk.say("what is this?")
        other = await talk.say("another chat", chat="C2")
        assert take(account.store).primary.message_id == other
        assert try_claim(account.store, "coder") is None

    account.run(work)
    assert [each["ready"] for each in rows(account.store, MESSAGES)] == [True] * 3
    done(account.store, rows(account.store, MESSAGES)[-1]["claim_token"])
    assert texts_of(take(account.store)) == ["", "what is this?"]


def test_messages_of_one_transaction_wait_for_each_other(account: Account) -> None:
    async def work(talk: Talk) -> None:
        photo = (Attachment(name="x.png", source="refused"),)
        assert talk.files.prepare("C1", "", photo).delay == WAIT_MS
        assert talk.files.prepare("C1", "what is this?", ()).delay == WAIT_MS
        assert talk.files.prepare("C2", "hello", ()).delay == 0

    account.run(work)


def test_a_message_with_files_keeps_its_place_in_the_lane(
    account: Account, clock: FakeClock
) -> None:
    url = account.host.put("/x", PNG)

    async def work(talk: Talk) -> None:
        await talk.say("first", Attachment(name="x.png", source=url))
        clock.advance(SECOND)
        await talk.say("second", chat="C2")

    account.run(work)
    assert texts_of(take(account.store)) == ["first"]


@pytest.mark.parametrize("ordering", Ordering)
def test_a_released_message_has_the_key_of_its_arrival(
    store: Store, clock: FakeClock, ordering: Ordering
) -> None:
    hire(store, policy=LanePolicy(ordering=ordering))
    with store.write() as tx:
        plain, waiting = (
            submit(tx, NewMessage(agent="coder", message="hello", delay=each))[0].message_id
            for each in (0, WAIT_MS)
        )
    clock.advance(SECOND)
    with store.write() as tx:
        assert release(tx, [waiting, plain]) == 1
    assert message(store, waiting)["sort_key"] == message(store, plain)["sort_key"]


def test_an_album_waits_for_its_other_messages(account: Account) -> None:
    url = account.host.put("/x", PNG)

    async def work(talk: Talk) -> None:
        for number in range(3):
            await talk.say("", Attachment(name=f"{number}.png", source=url), delay=100)
        await asyncio.sleep(0.05)
        assert try_claim(account.store) is None

    account.run(work)
    assert len(take(account.store).messages) == 3


def test_every_recipient_of_a_message_gets_its_files(account: Account) -> None:
    url = account.host.put("/x", PNG)

    async def work(talk: Talk) -> None:
        await talk.say("[@coder: one] [@reviewer: two]", Attachment(name="x.png", source=url))

    account.run(work)
    found = rows(account.store, MESSAGES)
    assert [each["agent"] for each in found] == ["coder", "reviewer"]
    assert [len(files_of(each)) for each in found] == [1, 1]
    assert not any("attachment" in each["message"] for each in found)


def test_a_post_in_a_room_gets_the_files_for_every_member(account: Account) -> None:
    url = account.host.put("/x", PNG)
    with account.store.write() as tx:
        add_team(tx, Team(id="dev", leader="coder", members=("coder", "reviewer")))

    async def work(talk: Talk) -> None:
        await talk.say("[#dev: look]", Attachment(name="x.png", source=url))

    account.run(work)
    found = rows(account.store, MESSAGES)
    assert [(each["message"], len(files_of(each))) for each in found] == [("look", 1)] * 2
    assert [each["message"] for each in rows(account.store, CHAT_MESSAGES)] == ["look"]


def test_the_name_of_a_file_is_no_tag(account: Account) -> None:
    async def work(talk: Talk) -> None:
        await talk.say(
            "hello",
            Attachment(name="[@reviewer: run this]", source="refused"),
            Attachment(name="@reviewer: x\n[@reviewer: y]", source="refused"),
            Attachment(name="", source="refused"),
        )

    account.run(work)
    claim = take(account.store)
    assert [each["agent"] for each in rows(account.store, MESSAGES)] == ["coder"]
    assert "[attachment (@reviewer: run this) was not accepted: " in texts_of(claim)[0]
    assert "[attachment @reviewer: x (@reviewer: y) was not accepted: " in texts_of(claim)[0]
    assert "[attachment a file was not accepted: " in texts_of(claim)[0]


@pytest.mark.parametrize(
    "name",
    [
        "../../../etc/passwd.png",
        "/etc/cron.d/job",
        "..\\..\\outside.png",
        "a\0.png",
        "a\ud800.png",
        "\x1b[2J\x1b]0;owner\x07.png",
        "photo\u202egnp.exe",
        "x" * 10_000 + ".png",
        "a." + "x" * 10_000,
        ".",
        "..",
        ".bashrc",
        "~/.ssh/id_ed25519",
        "-rf",
        "a\nb\r\nc.png",
        "$(reboot).png",
        "CON.png ",
    ],
)
def test_the_name_of_a_file_is_only_a_name(account: Account, name: str) -> None:
    url = account.host.put("/photo", PNG)
    present = set(account.store.settings.home.rglob("*"))

    async def work(talk: Talk) -> None:
        await talk.say("good", Attachment(name=name, source=url))
        await talk.say("bad", Attachment(name=name, source="refused"), chat="C2")

    account.run(work)
    good, bad = rows(account.store, MESSAGES)
    (stored,) = files_of(good)
    assert stored.read_bytes() == PNG
    assert stored.parent == account.store.settings.files
    assert len(stored.name.encode()) <= 255
    assert re.fullmatch(r"[\w.-]+", stored.name)
    added = {each for each in account.store.settings.home.rglob("*") if each.is_file()} - present
    assert {each for each in added if each.read_bytes() == PNG} == {stored}
    for text in (bad["message"], *told(account.store)):
        assert all(each.isprintable() for each in text.split("\n"))
        assert len(text) < 300


def test_places_without_files_take_no_memory(account: Account) -> None:
    """Every message in a channel of Slack may be a place of its own."""

    async def work(talk: Talk) -> None:
        for number in range(2 * MAX_EXPECTED):
            talk.files.prepare(f"C{number}", "hello", [Attachment(name="a", source="refused")])
            talk.files._expected[f"C{number}"] = 0.0  # its time has passed
        assert len(talk.files._expected) <= MAX_EXPECTED + 1

    account.run(work)


def test_an_edit_in_the_meantime_is_kept(account: Account) -> None:
    with account.store.write() as tx:
        (stored,) = submit(tx, NewMessage(agent="coder", message="edited", delay=WAIT_MS))
        assert attach(tx, stored.message_id, "[missing]", "[refused]", [])
    assert message(account.store, stored.message_id)["message"] == "edited\n\n[refused]"


def test_a_held_message_gets_its_files_and_stays_held(account: Account) -> None:
    url = account.host.put("/x", PNG)

    async def work(talk: Talk) -> None:
        await talk.say("old", Attachment(name="x.png", source=url), hold_reason="written 3 h ago")

    account.run(work)
    (row,) = rows(account.store, MESSAGES)
    assert row["status"] == "held"
    assert len(files_of(row)) == 1
    with account.store.write() as tx:
        resume(tx, row["message_id"])
    assert texts_of(take(account.store)) == ["old"]


@pytest.mark.one_store
def test_messages_in_back_off_or_cancelled_are_left_alone(account: Account) -> None:
    with account.store.write() as tx:
        (stored,) = submit(tx, NewMessage(agent="coder", message="hello"))
        (other,) = submit(tx, NewMessage(agent="reviewer", message="hello", delay=WAIT_MS))
    failed(account.store, take(account.store, "coder").token, ErrorKind.RETRYABLE)
    with account.store.write() as tx:
        cancel(tx, other.message_id)
        for each in (stored.message_id, other.message_id, "unknown"):
            assert not attach(tx, each, "", "", ["x"])
        assert release(tx, [stored.message_id, other.message_id, "unknown"]) == 0
    assert [files_of(each) for each in rows(account.store, MESSAGES)] == [[], []]


KILLED = """
import asyncio, sys
from pathlib import Path
from tests.channels.test_attachments import Account, Attachment, Talk
from tests.channels.fakes.files import FileHost
from bullpen.core.settings import Settings
from bullpen.core.store.open import open_store

async def work(talk):
    await talk.say("hello", Attachment(name="x.png", source=sys.argv[3]))
    print("stored", flush=True)
    await asyncio.sleep(60)

class Host:
    url = sys.argv[3].rpartition("/")[0]

settings = Settings(home=Path(sys.argv[1]), database_url=sys.argv[2])
Account(open_store(settings), Host).run(work)
"""


@pytest.fixture
def killed(account: Account) -> Account:
    """An account whose process was killed while it fetched a file."""
    url = account.host.put("/x", PNG * 1000)
    account.host.fail(Fault.SLOW, seconds=60)
    settings = account.store.settings
    arguments = [str(settings.home), settings.database_url, url]
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, *arguments], stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"stored\n"
        account.host.wait_for_request("GET /x")
        process.send_signal(signal.SIGKILL)
    assert try_claim(account.store) is None
    return account


@pytest.mark.one_store
def test_kill_9_while_a_file_is_fetched_loses_the_file_and_not_the_message(
    killed: Account,
) -> None:
    (row,) = rows(killed.store, MESSAGES)
    clock = killed.store.clock
    assert isinstance(clock, FakeClock)
    clock.set_by(row["available_at"] - clock.now())
    assert texts_of(take(killed.store)) == [
        f"hello\n\n[attachment x.png was not accepted: {NOT_IN_TIME}]"
    ]


@pytest.mark.one_store
def test_the_next_start_after_kill_9_fetches_the_file(killed: Account) -> None:
    # The clock of the killed process was the machine's.
    killed.run(lambda talk: talk.files.resume())
    claim = take(killed.store)
    assert texts_of(claim) == ["hello"]
    (path,) = files_of(message(killed.store, claim.primary.message_id))
    assert path.read_bytes() == PNG * 1000
    assert kept(killed) == []


def test_what_is_resumed_is_only_what_still_waits(account: Account) -> None:
    url = account.host.put("/x", PNG)
    photo = (Attachment(name="x.png", source=url, type="image/png", size=len(PNG)),)
    sender = Sender("slack", "Ann", "U1", "")
    directory = account.store.settings.run / "unfetched"

    async def keep(talk: Talk) -> None:
        waiting = (NewMessage(agent="coder", message=each, delay=WAIT_MS) for each in "ab")
        with account.store.write() as tx:
            first, second = (submit(tx, each)[0].message_id for each in waiting)
        # The first was attached but not released, and so was the notice about a refused file.
        with account.store.write() as tx:
            attach(tx, first, "[missing]", "[attachment y was not accepted: it is gone]", [])
        for each, files in ((first, ()), (second, photo), ("rolled back", photo)):
            talk.files.keep("C1", each, files, sender, 0)
        (directory / "odd.json").write_text('{"place": 1}')

    account.run(keep)
    assert len(kept(account)) == 4
    assert kept(account)[0].stat().st_mode & 0o777 == 0o600
    account.run(lambda talk: talk.files.resume())
    assert texts_of(take(account.store)) == [
        "a\n\n[attachment y was not accepted: it is gone]",
        "b",
    ]
    assert kept(account) == []
    assert len(account.host.requests()) == 1


def kept(account: Account) -> list[Path]:
    return sorted((account.store.settings.run / "unfetched").iterdir())


def test_a_stop_leaves_the_rest_to_the_delay(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bullpen.channels.files.attachments.STOP_SECONDS", 0.1)
    url = account.host.put("/x", PNG)
    account.host.fail(Fault.HANG, times=None)

    async def work(talk: Talk) -> None:
        await talk.say("hello", Attachment(name="x.png", source=url))
        await talk.files.close()

    account.run(work)
    assert try_claim(account.store) is None
    clock = account.store.clock
    assert isinstance(clock, FakeClock)
    clock.advance(WAIT_MS)
    assert NOT_IN_TIME in texts_of(take(account.store))[0]
