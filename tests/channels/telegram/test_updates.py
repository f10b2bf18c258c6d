"""Updates of Telegram as what they say: pure, on payloads such as Telegram sends them."""

from __future__ import annotations

import pytest

from bullpen.channels.inbound import Attachment, Chat, ChatChange, Edited, Inbound, Pressed, Written
from bullpen.channels.telegram.updates import Bot, parse_update

BOT = Bot(7000000001, "bullpen_bot")
NOW = 1_800_000_000_000
ANN = {"id": 1001, "is_bot": False, "first_name": "Ann", "last_name": "Lee", "username": "ann"}
PRIVATE = {"id": 1001, "type": "private", "first_name": "Ann", "username": "ann"}
GROUP = {"id": -1001, "type": "supergroup", "title": "The team"}
FORUM = {**GROUP, "is_forum": True}
ME = {"id": BOT.id, "is_bot": True, "first_name": "Bullpen", "username": "bullpen_bot"}


def parse(**update: object) -> Inbound | None:
    return parse_update({"update_id": 1, **update}, BOT, lambda: NOW)


def message(chat: object = None, /, **fields: object) -> Inbound | None:
    base = {"message_id": 7, "from": ANN, "chat": chat or PRIVATE, "date": 1_700_000_000}
    return parse(message={**base, **fields})


def written(chat: object = None, /, **fields: object) -> Written:
    found = message(chat, **fields)
    assert isinstance(found, Written)
    return found


def mention(text: str, piece: str, kind: str = "mention", **extra: object) -> dict[str, object]:
    """A text with one entity, in UTF-16 units."""

    def units(part: str) -> int:
        return len(part.encode("utf-16-le")) // 2

    offset = units(text[: text.index(piece)])
    entity = {"type": kind, "offset": offset, "length": units(piece), **extra}
    return {"text": text, "entities": [entity]}


def test_a_direct_message_is_for_the_bot() -> None:
    found = written(text="hello")
    source = found.source
    assert (found.text, found.addressed, found.from_bot) == ("hello", True, False)
    assert source.chat == Chat(id="1001", direct=True, name="Ann")
    assert (source.person.id, source.person.name) == ("1001", "Ann Lee")
    assert (source.message, source.at, source.thread) == ("7", 1_700_000_000_000, "")
    assert source.keys == ("1001:7",), "not the id of the update, which may start anew"


def test_in_a_group_only_a_mention_a_reply_or_a_command_is_for_the_bot() -> None:
    assert not written(GROUP, text="hello").addressed
    assert not written(GROUP, **mention("hi @another_bot", "@another_bot")).addressed
    assert not written(GROUP, text="hello", reply_to_message={"from": ANN}).addressed
    assert not written(
        GROUP, **mention("/stop@another_bot", "/stop@another_bot", "bot_command")
    ).addressed
    assert not written(GROUP, **mention("/weather", "/weather", "bot_command")).addressed
    assert written(GROUP, text="yes", reply_to_message={"from": ME}).addressed
    assert written(GROUP, **mention("/stop", "/stop", "bot_command")).addressed
    topic = {"from": ME, "forum_topic_created": {"name": "Plans"}}
    assert not written(FORUM, text="hello", reply_to_message=topic).addressed


@pytest.mark.parametrize(
    ("text", "piece", "kind", "result"),
    [
        ("@bullpen_bot hello", "@bullpen_bot", "mention", "hello"),
        ("@Bullpen_Bot, hello", "@Bullpen_Bot", "mention", "hello"),
        ("well @bullpen_bot do it", "@bullpen_bot", "mention", "well do it"),
        ("😀😀 @bullpen_bot @coder 😀", "@bullpen_bot", "mention", "😀😀 @coder 😀"),
        ("do it @bullpen_bot", "@bullpen_bot", "mention", "do it"),
        ("/stop@bullpen_bot now", "/stop@bullpen_bot", "bot_command", "/stop now"),
    ],
)
def test_the_mention_is_not_part_of_the_text(text: str, piece: str, kind: str, result: str) -> None:
    found = written(GROUP, **mention(text, piece, kind))
    assert (found.text, found.addressed) == (result, True)


def test_a_mention_alone_is_a_message_without_a_text() -> None:
    found = written(GROUP, **mention("@bullpen_bot", "@bullpen_bot"))
    assert (found.text, found.addressed) == ("", True)


def test_a_person_without_a_username_is_mentioned_by_id_and_nobody_by_name() -> None:
    other = {**ME, "id": 5}
    assert written(GROUP, **mention("Bullpen hi", "Bullpen", "text_mention", user=ME)).addressed
    assert not written(
        GROUP, **mention("Bullpen hi", "Bullpen", "text_mention", user=other)
    ).addressed


def test_a_hidden_link_is_written_out() -> None:
    found = written(**mention("read this 😀 now", "this", "text_link", url="https://a.example/x"))
    assert found.text == "read this (https://a.example/x) 😀 now"


def test_a_topic_is_a_thread_and_a_chain_of_replies_is_not() -> None:
    assert (
        written(FORUM, text="a", message_thread_id=42, is_topic_message=True).source.thread == "42"
    )
    assert (
        written(PRIVATE, text="a", message_thread_id=3, is_topic_message=True).source.thread == "3"
    )
    assert written(GROUP, text="a", message_thread_id=42).source.thread == ""
    assert written(FORUM, text="a").source.thread == "1", "the general topic"
    assert written(FORUM, text="a", message_thread_id=42).source.thread == "1"


def test_another_bot_is_marked_and_the_own_echo_ignored() -> None:
    other = {"id": 8, "is_bot": True, "first_name": "Other"}
    assert written(GROUP, **{"from": other}, text="hi").from_bot
    assert message(GROUP, **{"from": ME}, text="hi") is None


def test_cve_2026_28480_a_person_is_a_number_and_never_a_name() -> None:
    first = written(text="hi")
    renamed = written(text="hi", **{"from": {**ANN, "id": 1002}})
    assert (first.source.person.id, renamed.source.person.id) == ("1001", "1002")
    assert first.source.person.name == renamed.source.person.name
    assert message(text="hi", **{"from": {**ANN, "id": 0}}) is not None
    with pytest.raises(ValueError, match="id"):
        message(text="hi", **{"from": {"username": "ann", "first_name": "Ann"}})


def test_nobody_is_let_in_by_a_shared_identity() -> None:
    """Anonymous administrators of all groups write as one user, and channels as another."""
    anonymous = {"id": 1087968824, "is_bot": True, "first_name": "Group"}
    assert message(GROUP, **{"from": anonymous}, sender_chat=GROUP, text="hi") is None
    assert (
        message(GROUP, **{"from": ANN}, sender_chat={"id": -5, "type": "channel"}, text="a") is None
    )
    assert message(GROUP, **{"from": None}, text="hi") is None
    channel = {"id": -1005, "type": "channel", "title": "News"}
    assert message(channel, text="hi") is None
    assert parse(channel_post={"message_id": 1, "chat": channel, "date": 1, "text": "hi"}) is None


def test_start_of_a_new_chat_asks_for_help() -> None:
    assert written(text="/start").text == "/help"
    assert written(text="/start payload").text == "/help"
    assert written(GROUP, text="/start").text == "/start"


FILE = {"file_id": "F1", "file_unique_id": "u1", "file_size": 10}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (
            {"document": {**FILE, "file_name": "a.pdf", "mime_type": "application/pdf"}},
            Attachment(name="a.pdf", source="F1", type="application/pdf", size=10),
        ),
        (
            {"photo": [{**FILE, "file_id": "F0", "width": 90}, {**FILE, "width": 1280}]},
            Attachment(name="photo_u1.jpg", source="F1", type="image/jpeg", size=10),
        ),
        (
            {"voice": {**FILE, "mime_type": "audio/ogg"}},
            Attachment(name="voice_u1.ogg", source="F1", type="audio/ogg", size=10),
        ),
        ({"video": FILE}, Attachment(name="video_u1.mp4", source="F1", size=10)),
        (
            {"animation": {**FILE, "file_name": "x.mp4"}, "document": FILE},
            Attachment(name="x.mp4", source="F1", size=10),
        ),
    ],
)
def test_a_file_is_an_attachment(fields: dict[str, object], expected: Attachment) -> None:
    found = written(caption="look", **fields)
    assert (found.text, found.attachments) == ("look", (expected,))
    assert written(**fields).attachments == (expected,), "a file needs no text"


def test_the_messages_of_an_album_have_one_group() -> None:
    photo = [{**FILE, "width": 90}]
    first = written(photo=photo, media_group_id="13", caption="look")
    second = written(photo=photo, media_group_id="13")
    assert first.group == second.group == "1001:13"
    assert written(text="alone").group == ""


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"sticker": {**FILE, "emoji": "👍"}}, "👍"),
        ({"location": {"latitude": 52.5, "longitude": 13.4}}, "Location: 52.5, 13.4"),
        ({"contact": {"first_name": "Bo", "phone_number": "+1"}}, "Contact: Bo, +1"),
    ],
)
def test_a_message_without_a_text_says_what_it_is(fields: dict[str, object], text: str) -> None:
    assert written(**fields).text == text


def test_a_quote_that_the_person_has_selected_is_below_the_text() -> None:
    quote = {"text": "first line\n/stop", "position": 0, "is_manual": True}
    assert written(text="why?", quote=quote).text == "why?\n\n> first line\n> /stop"
    mentioned = mention("@bullpen_bot", "@bullpen_bot")
    assert written(GROUP, **mentioned, quote=quote).text == "> first line\n> /stop"
    assert written(text="/stop", quote=quote).text == "/stop"
    automatic = {**quote, "is_manual": False}
    assert written(text="why?", quote=automatic).text == "why?"
    edited = edit(text="why not?", edit_date=5, quote=quote)
    assert isinstance(edited, Edited)
    assert edited.text == "why not?\n\n> first line\n> /stop"


@pytest.mark.parametrize(
    "fields", [{"new_chat_members": [ANN]}, {"pinned_message": {}}, {"dice": {"value": 1}}, {}]
)
def test_a_message_of_the_service_is_of_no_interest(fields: dict[str, object]) -> None:
    assert message(GROUP, **fields) is None


def edit(**fields: object) -> Inbound | None:
    base = {"message_id": 7, "from": ANN, "chat": PRIVATE, "date": 1_700_000_000}
    return parse(edited_message={**base, **fields})


def test_an_edit_names_the_message_and_itself() -> None:
    found = edit(text="better", edit_date=1_700_000_009)
    assert isinstance(found, Edited)
    assert (found.text, found.original) == ("better", ("1001:7",))
    again, other = (edit(text=each, edit_date=1_700_000_009) for each in ("better", "best"))
    assert isinstance(again, Edited)
    assert isinstance(other, Edited)
    assert found.source.keys == again.source.keys
    assert found.source.keys != other.source.keys, "two edits of one second"
    assert found.source.at == 1_700_000_009_000
    assert edit(location={"latitude": 1}, edit_date=5) is None, "a shared location moves"
    assert edit(text="a") is None


def test_a_button_that_was_pressed_has_its_value_and_the_present_time() -> None:
    shown = {"message_id": 9, "chat": FORUM, "date": 0, "message_thread_id": 4}
    query = {"id": "q1", "from": ANN, "message": {**shown, "is_topic_message": True}}
    found = parse(callback_query={**query, "data": "held:17:resume"})
    assert isinstance(found, Pressed)
    assert (found.value, found.source.keys) == ("held:17:resume", ("cb:q1",))
    assert (found.source.person.id, found.source.message) == ("1001", "9")
    assert (found.source.thread, found.source.at) == ("4", NOW)
    assert parse(callback_query={"id": "q1", "from": ANN, "data": "x"}) is None
    assert parse(callback_query={**query, "game_short_name": "g"}) is None


def member(chat: dict[str, object], status: str, **fields: object) -> Inbound | None:
    new = {"status": status, "user": ME, **fields}
    return parse(my_chat_member={"chat": chat, "from": ANN, "date": 5, "new_chat_member": new})


def test_a_chat_that_the_bot_cannot_write_to_is_closed_and_opens_again() -> None:
    def closed(found: Inbound | None) -> str:
        assert isinstance(found, ChatChange)
        return found.closed

    assert closed(member(PRIVATE, "kicked")) == "the person has blocked the bot"
    assert closed(member(PRIVATE, "member")) == ""
    assert closed(member(GROUP, "kicked")) == "the bot was removed from the chat"
    assert closed(member(GROUP, "left")) == "the bot left the chat"
    assert closed(member(GROUP, "administrator")) == ""
    assert closed(member(GROUP, "restricted", can_send_messages=True)) == ""
    assert "must not write" in closed(member(GROUP, "restricted", can_send_messages=False))


def test_a_group_that_became_a_supergroup_has_moved() -> None:
    found = message(GROUP, migrate_to_chat_id=-1002)
    assert isinstance(found, ChatChange)
    assert (found.chat.id, found.moved_to) == ("-1001", "-1002")
    assert message(GROUP, migrate_from_chat_id=-5) is None


def test_a_new_title_is_a_change_of_the_chat() -> None:
    found = message({**GROUP, "title": "New"}, new_chat_title="New")
    assert isinstance(found, ChatChange)
    assert (found.chat.name, found.closed, found.moved_to) == ("New", "", "")


@pytest.mark.parametrize(
    "update",
    [
        {"message": {"text": "a"}},
        {"message": {"message_id": "7", "chat": PRIVATE, "from": ANN, "date": 1, "text": "a"}},
        {"message": {"message_id": 7, "chat": PRIVATE, "from": {}, "date": 1, "text": "a"}},
        {"message": {"message_id": 7, "chat": PRIVATE, "from": ANN, "date": None, "text": "a"}},
        {"message": 7},
        {"message": []},
        {"callback_query": {"message": {"chat": PRIVATE}, "data": "x"}},
        {"my_chat_member": {"chat": 5}},
        {"poll": {}},
        {},
    ],
)
def test_a_malformed_update_is_ignored_or_a_value_error(update: dict[str, object]) -> None:
    try:
        found = parse(**update)
    except ValueError:
        found = None
    assert found is None


def test_entities_that_do_not_match_the_text_do_no_harm() -> None:
    broken = [{"type": "mention", "offset": 90, "length": 900}, 5, {"type": "bold"}]
    assert written(text="hello", entities=broken[:2]).text == "hello"
    with pytest.raises(ValueError, match="offset"):
        message(text="hello", entities=broken)
