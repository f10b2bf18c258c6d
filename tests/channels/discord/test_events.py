"""What the events of Discord mean: each kind of payload, without a connection."""

from __future__ import annotations

import pytest

from bullpen.channels.discord.events import (
    event_payload,
    expires_at,
    parse_event,
    snowflake_at,
    time_of,
)
from bullpen.channels.inbound import (
    Attachment,
    ChatChange,
    Deleted,
    Edited,
    Pressed,
    Proof,
    Written,
)

ME = "900000000000000001"
ID = "1310000000000000000"
PERSON = {"id": "500000000000000001", "username": "ann", "global_name": "Ann"}


def message(**fields: object) -> dict[str, object]:
    """A message of a person."""
    return {
        **{"id": ID, "channel_id": "700000000000000001", "type": 0, "author": PERSON},
        **{"content": "hello", "mentions": [], "mention_roles": [], "mention_everyone": False},
        **{"attachments": [], "edited_timestamp": None, **fields},
    }


def parse(name: str, data: dict[str, object], *, direct: bool = False) -> object:
    return parse_event(event_payload(name, data, direct=direct, chat_name="#general"), ME)


def written(**fields: object) -> Written:
    found = parse("MESSAGE_CREATE", message(**fields), direct=False)
    assert isinstance(found, Written)
    return found


def test_a_message_has_its_author_time_key_and_place_in_the_history() -> None:
    found = parse("MESSAGE_CREATE", message(), direct=True)
    assert isinstance(found, Written)
    source = found.source
    assert (found.text, found.addressed, found.cursor) == ("hello", True, ID)
    assert (source.person.id, source.person.name, source.person.bot) == (PERSON["id"], "Ann", False)
    assert (source.message, source.keys, source.at) == (ID, (ID,), time_of(ID))
    assert source.chat.direct


def test_a_name_in_the_server_wins() -> None:
    assert written(member={"nick": "Annie"}).source.person.name == "Annie"


def test_the_time_of_an_id_and_the_id_of_a_time_agree() -> None:
    assert snowflake_at(time_of(ID)) <= int(ID) < snowflake_at(time_of(ID) + 1)
    assert snowflake_at(0) == 0


BOT = {"id": ME, "username": "bot", "bot": True}
OTHER = {"id": "500000000000000009", "username": "bob", "global_name": "Bob"}


@pytest.mark.parametrize(
    ("fields", "addressed"),
    [
        ({}, False),
        ({"mentions": [BOT]}, True),
        ({"mentions": [OTHER]}, False),
        ({"mention_everyone": True, "content": "@everyone listen"}, False),
        ({"mention_roles": ["123"], "content": "<@&123> listen"}, False),
        ({"type": 19, "referenced_message": {"author": BOT}}, True),
        ({"type": 19, "referenced_message": {"author": OTHER}}, False),
        ({"type": 19, "referenced_message": None}, False),
        ({"content": f"`<@{ME}>`"}, False),
    ],
)
def test_only_a_mention_or_a_reply_addresses_the_bot_in_a_server(
    fields: dict[str, object], addressed: bool
) -> None:
    assert written(**fields).addressed is addressed


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (f"<@{ME}> what is new?", "what is new?"),
        (f"<@!{ME}>, what is new?", "what is new?"),
        (f"what is new, <@{ME}>", "what is new,"),
        (f"<@{ME}>\n1. one\n2. two", "1. one\n2. two"),
        (f"ask <@{OTHER['id']}> first", "ask @Bob first"),
        ("ask <@111111111111111111> first", "ask <@111111111111111111> first"),
        (f"<@{ME}>1", "1"),
    ],
)
def test_the_mention_of_the_bot_is_no_part_of_the_text(content: str, text: str) -> None:
    assert written(content=content, mentions=[BOT, OTHER]).text == text


@pytest.mark.parametrize("kind", [6, 7, 8, 18, 20, 21, 23, 24])
def test_notices_of_discord_are_no_messages(kind: int) -> None:
    assert parse("MESSAGE_CREATE", message(type=kind)) is None


@pytest.mark.parametrize(
    "fields", [{"author": {**PERSON, "bot": True}}, {"webhook_id": "1", "author": PERSON}]
)
def test_bots_and_webhooks_are_bots(fields: dict[str, object]) -> None:
    assert written(**fields).from_bot


def test_a_sticker_is_its_name() -> None:
    assert written(content="", sticker_items=[{"name": "wave"}]).text == ":wave:"


def test_a_mention_alone_is_an_empty_message_for_the_bot() -> None:
    found = written(content=f"<@{ME}>", mentions=[BOT])
    assert (found.text, found.addressed) == ("", True)


def test_a_reply_whose_content_the_intents_leave_out_is_not_for_the_bot() -> None:
    assert not written(type=19, content="", referenced_message={"author": BOT}).addressed


def test_the_echo_of_our_message_is_a_proof() -> None:
    proof = parse("MESSAGE_CREATE", message(author=BOT, nonce="babcd7.0"))
    assert isinstance(proof, Proof)
    assert (proof.key, proof.receipt) == ("babcd7.0", ID)
    assert parse("MESSAGE_CREATE", message(author=BOT)) is None, "of the history"


FILE = {
    **{"id": "11", "filename": "a.pdf", "size": 5, "content_type": "application/pdf"},
    "url": "https://cdn.discordapp.com/attachments/7/11/a.pdf?ex=6553f100&is=1&hm=2",
}


def test_attachments_come_with_where_a_new_url_is_found() -> None:
    found = written(content="", attachments=[FILE]).attachments
    source = f"{FILE['url']}#700000000000000001/{ID}/11"
    assert found == (Attachment(name="a.pdf", source=source, type="application/pdf", size=5),)


def test_a_forwarded_message_is_what_the_person_says() -> None:
    snapshot = {"message": {"content": "the original", "attachments": [FILE]}}
    found = written(content="", message_snapshots=[snapshot])
    assert (found.text, len(found.attachments)) == ("the original", 1)


@pytest.mark.parametrize(
    ("url", "at"),
    [(FILE["url"], 0x6553F100 * 1000), ("https://e.org/a", None), ("https://e.org/?ex=zz", None)],
)
def test_a_signed_url_says_when_it_expires(url: str, at: int | None) -> None:
    assert expires_at(url) == at


def test_an_edit_has_a_key_of_its_own() -> None:
    at = "2026-11-20T06:00:00.000000+00:00"
    found = parse("MESSAGE_UPDATE", message(content="hello!", edited_timestamp=at))
    assert isinstance(found, Edited)
    assert (found.original, found.source.keys) == ((ID,), (f"{ID}:{at}",))
    assert found.text == "hello!"


def test_an_update_without_an_edit_is_nothing() -> None:
    assert parse("MESSAGE_UPDATE", message(embeds=[{}])) is None
    at = "2026-11-20T06:00:00.000000+00:00"
    assert parse("MESSAGE_UPDATE", message(author=BOT, edited_timestamp=at)) is None


def test_a_deletion_names_the_message() -> None:
    found = parse("MESSAGE_DELETE", {"id": ID, "channel_id": "7", "guild_id": "8"})
    assert isinstance(found, Deleted)
    assert found.original == (ID,)


def interaction(**fields: object) -> dict[str, object]:
    return {
        **{"id": ID, "channel_id": "700000000000000001", "token": "secret", "user": PERSON},
        **fields,
    }


def test_a_slash_command_is_the_text_typed() -> None:
    data = {"name": "default", "options": [{"name": "text", "value": "@coder"}]}
    found = parse("INTERACTION_CREATE", interaction(type=2, data=data), direct=True)
    assert isinstance(found, Written)
    assert (found.text, found.addressed, found.cursor) == ("/default @coder", True, "")
    assert found.source.person.id == PERSON["id"]


def test_a_person_in_a_server_is_the_member() -> None:
    data = interaction(type=2, data={"name": "status"}, member={"user": OTHER}, guild_id="8")
    del data["user"]
    found = parse("INTERACTION_CREATE", data)
    assert isinstance(found, Written)
    assert found.source.person.id == OTHER["id"]


def test_a_button_has_its_value_and_its_message() -> None:
    data = interaction(type=3, data={"custom_id": "held:17:resume"}, message={"id": "42"})
    found = parse("INTERACTION_CREATE", data)
    assert isinstance(found, Pressed)
    assert (found.value, found.source.message, found.source.keys) == (
        "held:17:resume",
        "42",
        (ID,),
    )


@pytest.mark.parametrize(
    "fields",
    [
        {"type": 2, "data": {"name": "status"}, "context": 2},
        {"type": 4, "data": {}},
        {"type": 5, "data": {"custom_id": "x"}},
    ],
)
def test_other_interactions_are_nothing(fields: dict[str, object]) -> None:
    assert parse("INTERACTION_CREATE", interaction(**fields)) is None


def test_the_token_of_an_interaction_stays_out_of_the_payload() -> None:
    assert "secret" not in repr(event_payload("INTERACTION_CREATE", interaction(), direct=True))


def test_a_renamed_and_a_deleted_channel_are_changes() -> None:
    channel: dict[str, object] = {"id": "7", "name": "new", "type": 0}
    renamed, gone = parse("CHANNEL_UPDATE", channel), parse("CHANNEL_DELETE", channel)
    assert isinstance(renamed, ChatChange)
    assert (renamed.chat.id, renamed.chat.name, renamed.closed) == ("7", "#general", "")
    assert isinstance(gone, ChatChange)
    assert gone.closed


@pytest.mark.parametrize(
    "payload",
    [
        {},
        {"t": "MESSAGE_CREATE"},
        {"t": "MESSAGE_UPDATE", "d": []},
        {"t": "MESSAGE_DELETE", "d": {"id": None}},
        {"t": "INTERACTION_CREATE", "d": {"type": 2, "data": "x"}},
        {"t": "PRESENCE_UPDATE", "d": {}},
    ],
)
def test_payloads_of_another_form_are_nothing(payload: dict[str, object]) -> None:
    assert parse_event(payload, ME) is None


@pytest.mark.parametrize(
    "fields",
    [
        {"content": None},
        {"mentions": "all", "attachments": {}, "referenced_message": 3},
        {"author": {"id": 5, "username": None}},
        {"attachments": [{"filename": 1, "size": "big"}], "message_snapshots": [None, {}]},
    ],
)
def test_fields_of_another_type_are_missing(fields: dict[str, object]) -> None:
    parse("MESSAGE_CREATE", message(**fields))
