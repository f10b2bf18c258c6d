"""Parts of responses and progress, as Telegram gets them."""

from __future__ import annotations

import asyncio
import base64
import json
from pathlib import Path

import pytest

from bullpen.channels.platform import Address, Progress, Recovered, Stage, Verdict
from bullpen.channels.telegram.platform import Telegram
from bullpen.channels.text.tree import Document
from bullpen.core.answers.attachments import OpenFile
from tests.channels.fakes.telegram import SEND, FakeTelegram, TelegramPost
from tests.channels.recording import no_note
from tests.channels.telegram.double import CHAT, GROUP, PERSON, context, part, started


def send(fake: FakeTelegram, *parts: object, chat: str = CHAT) -> list[TelegramPost]:
    """Send parts; returns the posts in the chat."""

    async def work() -> list[str]:
        async with started(fake) as telegram:
            return [await telegram.send(each, no_note) for each in parts]  # type: ignore[arg-type]

    receipts = asyncio.run(work())
    posts = fake.parts(chat)
    assert receipts == [each.id for each in posts]
    return posts


def form(fake: FakeTelegram, on: str = SEND) -> dict[str, str]:
    """The parameters of the last request."""
    return fake.requests(on)[-1].form()


def test_a_text_is_sent_with_entities_and_never_parsed(fake: FakeTelegram) -> None:
    (post,) = send(fake, part("**bold** 😀 `code` <b>x</b>"))
    assert post.text == "bold 😀 code <b>x</b>"
    kinds = {each["type"]: (each["offset"], each["length"]) for each in post.entities}
    assert kinds["bold"] == (0, 4)
    assert kinds["code"] == (8, 4), "offsets are in UTF-16 units"
    assert "parse_mode" not in form(fake)
    assert json.loads(form(fake)["link_preview_options"]) == {"is_disabled": True}


def test_text_of_a_model_cannot_mention_anybody(fake: FakeTelegram) -> None:
    (post,) = send(fake, part("@durov and [x](tg://user?id=1) and /stop@other_bot"))
    assert "@durov" not in post.text
    assert not {"text_mention", "mention"} & {each["type"] for each in post.entities}
    assert not any("tg:" in str(each) for each in post.entities)


def test_only_the_first_part_replies_and_a_deleted_question_does_not_matter(
    fake: FakeTelegram,
) -> None:
    message = fake.say(CHAT, PERSON, "question")
    posts = send(
        fake,
        part("one", message=message),
        part("two", message=message, number=1),
        part("three", message="99999"),
    )
    assert [each.reply_to for each in posts] == [message, "", ""]


def test_a_topic_is_kept_and_the_general_topic_is_omitted(fake: FakeTelegram) -> None:
    fake.add_chat("-1005", forum=True)
    fake.say("-1005", PERSON, "hi", thread="42")
    posts = send(
        fake,
        part("in the topic", chat="-1005", thread="42"),
        part("in general", chat="-1005", thread="1"),
        chat="-1005",
    )
    assert [each.thread for each in posts] == ["42", ""]
    assert len(fake.requests(SEND)) == 2, "it is not refused first"


def test_a_part_for_a_deleted_topic_goes_to_the_chat_itself(fake: FakeTelegram) -> None:
    (post,) = send(fake, part("hello", chat=GROUP, thread="42"), chat=GROUP)
    assert (post.text, post.thread) == ("hello", "")


def test_a_text_is_sent_without_formatting_if_telegram_refuses_it(fake: FakeTelegram) -> None:
    fake.refuse(400, "Bad Request: can't parse entities: ENTITY_BOUNDS_INVALID")
    (post,) = send(fake, part("**bold**"))
    assert (post.text, post.entities) == ("bold", [])


def test_buttons_are_below_the_message(fake: FakeTelegram) -> None:
    (post,) = send(fake, part("ok?", buttons={"Resume": "held:17:resume", "Drop": "held:17:drop"}))
    assert [(each["text"], each["callback_data"]) for each in post.buttons] == [
        ("Resume", "held:17:resume"),
        ("Drop", "held:17:drop"),
    ]


@pytest.mark.parametrize(
    ("name", "kind"),
    [("chart.png", "photo"), ("report.pdf", "document"), ("talk.ogg", "voice"), ("a.mp4", "video")],
)
def test_a_file_goes_out_as_its_kind_with_its_bytes(
    fake: FakeTelegram, tmp_path: Path, name: str, kind: str
) -> None:
    content = bytes(range(256)) * 20
    (tmp_path / name).write_bytes(content)
    with (tmp_path / name).open("rb") as file:
        file.read(10)  # an attempt before this one has read from it
        (post,) = send(fake, part(file=OpenFile(name, len(content), file), chat=CHAT))
    assert (post.file, post.kind) == (name, kind)
    assert base64.b64decode(post.data) == content


def test_a_photo_that_telegram_cannot_read_goes_out_as_a_document(
    fake: FakeTelegram, tmp_path: Path
) -> None:
    (tmp_path / "wide.png").write_bytes(b"x" * 1000)
    fake.refuse(400, "Bad Request: PHOTO_INVALID_DIMENSIONS", "sendPhoto")
    with (tmp_path / "wide.png").open("rb") as file:
        (post,) = send(fake, part(file=OpenFile("wide.png", 1000, file)))
    assert post.kind == "document"
    assert base64.b64decode(post.data) == b"x" * 1000


def test_a_text_fits_by_utf16_units(fake: FakeTelegram) -> None:
    telegram = Telegram(context(fake))
    assert telegram.fits(Document.parse("a" * 4096))
    assert not telegram.fits(Document.parse("a" * 4097))
    assert telegram.fits(Document.parse("😀" * 2048))
    assert not telegram.fits(Document.parse("😀" * 2049))
    assert not telegram.fits(Document.parse("**a** b " * 101))


def test_the_longest_text_that_fits_is_taken(fake: FakeTelegram) -> None:
    (post,) = send(fake, part("😀" * 2048))
    assert post.text == "😀" * 2048


def test_an_unknown_part_stays_unknown(fake: FakeTelegram) -> None:
    recovered = asyncio.run(Telegram(context(fake)).recover(part()))
    assert recovered == Recovered(Verdict.CANNOT_TELL)


def show(fake: FakeTelegram, *progress: Progress) -> list[tuple[str, str]]:
    """Show progress; returns what people see."""

    async def work() -> None:
        async with started(fake) as telegram:
            for each in progress:
                await telegram.show(each)

    asyncio.run(work())
    return fake.shown


def at(chat: str, stage: Stage = Stage.WORKING, text: str = "", thread: str = "") -> Progress:
    """The progress of a message."""
    return Progress(to=Address(chat=chat, thread=thread, message="555"), stage=stage, text=text)


def test_progress_is_a_draft_in_a_private_chat_with_one_id_for_a_message(
    fake: FakeTelegram,
) -> None:
    seen = show(
        fake,
        at(CHAT, Stage.QUEUED),
        at(CHAT, text="@coder is working"),
        at(CHAT, text="@coder is working"),
        at(CHAT, Stage.DONE),
        at(CHAT, Stage.FAILED),
    )
    assert [text.replace("\u2060", "") for _, text in seen] == ["Thinking…", "@coder is working"]
    drafts = fake.requests("POST */sendMessageDraft")
    assert [each.form()["draft_id"] for each in drafts] == ["555", "555"]
    assert not fake.parts(CHAT), "progress is never a message"


def test_progress_is_typing_in_groups_and_in_the_general_topic(fake: FakeTelegram) -> None:
    assert show(fake, at(GROUP), at(GROUP, thread="1")) == [(GROUP, "typing")] * 2
    general = fake.requests("POST */sendChatAction")[-1].form()
    assert general["message_thread_id"] == "1", "typing must name the general topic"


def test_progress_is_typing_on_a_server_without_drafts(fake: FakeTelegram) -> None:
    fake.without.add("sendmessagedraft")
    assert show(fake, at(CHAT, text="a"), at(CHAT, text="b")) == [(CHAT, "typing")]
