"""Slack's payloads: one gesture of a person is one message, and its author is who Slack says."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bullpen.channels.inbound import (
    Attachment,
    ChatChange,
    Deleted,
    Edited,
    Inbound,
    Pressed,
    Proof,
    Written,
)
from bullpen.channels.slack.events import (
    SlackBot,
    down_event,
    event_payload,
    history_payload,
    parse_slack,
    plain_text,
    to_milliseconds,
    to_time,
)

BOT = SlackBot(user="U0BOT", bot="B0BOT", teams=frozenset({"T0", "E0"}))
AT, ROOT = "1700000000.000200", "1700000000.000100"
Event = dict[str, object]


def event(payload: Event, bot: SlackBot = BOT, **body: object) -> Inbound | None:
    """What an event says."""
    outer: Event = {"team_id": "T0", "event_id": "Ev1", "event": payload, **body}
    return parse_slack(event_payload("events_api", outer, 1), bot)


def message(**given: object) -> Event:
    """A message in a channel."""
    return {
        "type": "message",
        "channel": "C1",
        "channel_type": "channel",
        "user": "U1",
        "team": "T0",
        "text": "hello",
        "ts": AT,
        "client_msg_id": "m-1",
        **given,
    }


def written(payload: Event, bot: SlackBot = BOT) -> Written:
    found = event(payload, bot)
    assert isinstance(found, Written), found
    return found


def test_a_message_and_its_mention_have_the_same_keys_also_in_the_history() -> None:
    text = "<@U0BOT> do it"
    live = written(message(text=text))
    mention = written({**message(text=text), "type": "app_mention", "channel_type": ""})
    found = parse_slack(history_payload("C1", False, message(text=text)), BOT)
    assert live == mention == found
    assert live.source.keys == ("C1:1700000000.000200", "C1:m-1")
    assert (live.text, live.addressed, live.cursor) == ("do it", True, AT)
    assert live.source.at == 1_700_000_000_000


@pytest.mark.parametrize(
    ("given", "agent_view", "thread", "cursor_chat", "opens"),
    [
        # A channel: always in the thread.
        ({}, False, AT, "", f"C1/{AT}"),
        ({"thread_ts": AT}, False, AT, "", f"C1/{AT}"),
        ({"thread_ts": ROOT}, False, ROOT, f"C1/{ROOT}", ""),
        ({"thread_ts": ROOT, "subtype": "thread_broadcast"}, False, ROOT, f"C1/{ROOT}", ""),
        # Several people: as a channel.
        ({"channel": "G1", "channel_type": "mpim"}, False, AT, "", f"G1/{AT}"),
        # A direct chat: only if the person wrote in a thread.
        ({"channel": "D1", "channel_type": "im"}, False, "", "", ""),
        ({"channel": "D1", "channel_type": "im", "thread_ts": ROOT}, False, ROOT, f"D1/{ROOT}", ""),
        # The pane of an agent: each message is a thread.
        ({"channel": "D1", "channel_type": "im"}, True, AT, "", f"D1/{AT}"),
        ({"channel": "D1", "channel_type": "im", "thread_ts": ROOT}, True, ROOT, f"D1/{ROOT}", ""),
    ],
)
def test_the_thread_of_an_answer_follows_one_rule(
    given: Event, agent_view: bool, thread: str, cursor_chat: str, opens: str
) -> None:
    found = written(message(**given), replace(BOT, agent_view=agent_view))
    assert (found.source.thread, found.cursor_chat, found.opens) == (thread, cursor_chat, opens)


@pytest.mark.parametrize(
    ("given", "addressed"),
    [
        ({}, False),
        ({"text": "@bullpen hello"}, False),
        ({"text": "<!channel> <!everyone> hello"}, False),
        ({"text": "<@U0BOTHER> hello"}, False),
        ({"text": "hello <@U0BOT>"}, True),
        ({"text": "<@U0BOT|bullpen> hello"}, True),
        ({"thread_ts": ROOT, "parent_user_id": "U0BOT"}, True),
        ({"thread_ts": ROOT, "parent_user_id": "U2"}, False),
        ({"channel": "D1", "channel_type": "im"}, True),
        ({"channel": "G1", "channel_type": "mpim"}, False),
    ],
)
def test_only_a_direct_chat_a_mention_or_a_reply_is_for_the_bot(
    given: Event, addressed: bool
) -> None:
    assert written(message(**given)).addressed is addressed


@pytest.mark.parametrize(
    ("given", "follows"),
    [
        ({"thread_ts": ROOT}, f"C1/{ROOT}"),
        ({"thread_ts": ROOT, "text": "<@U2> what do you think?"}, ""),
        ({"thread_ts": ROOT, "text": "<!here> look"}, ""),
        ({"thread_ts": ROOT, "text": "<@U0BOT> look"}, ""),
        ({"thread_ts": AT}, ""),
        ({}, ""),
    ],
)
def test_a_reply_that_names_nobody_is_for_those_in_the_thread(given: Event, follows: str) -> None:
    assert written(message(**given)).follows == follows


@pytest.mark.parametrize(
    "given",
    [
        {"subtype": "channel_join"},
        {"subtype": "channel_topic"},
        {"subtype": "reminder_add"},
        {"hidden": True},
        {"user": "U0BOT"},
        {"bot_id": "B0BOT", "subtype": "bot_message", "user": None},
        {"user_team": "T0OTHER"},
        {"source_team": "T0OTHER", "user_team": None},
        {"team": "T0OTHER"},
    ],
)
def test_what_no_person_of_the_workspace_wrote_is_of_no_interest(given: Event) -> None:
    assert event(message(**given)) is None


def test_people_of_other_workspaces_write_only_if_that_is_set() -> None:
    shared = replace(BOT, shared_channels=True)
    foreign = message(user_team="T0OTHER")
    assert event(foreign) is None
    assert event(message(), is_ext_shared_channel=True) is None
    assert isinstance(event(foreign, shared, is_ext_shared_channel=True), Written)


def test_another_bot_is_named_as_one() -> None:
    found = written(message(bot_id="B2", user="U2", bot_profile={"name": "deploys"}))
    assert found.from_bot
    assert found.source.person.bot
    assert found.source.person.name == "deploys"


def test_a_name_identifies_nobody() -> None:
    """A person who calls themselves as the owner does is another person."""
    found = written(message(user="U1", username="owner", user_profile={"display_name": "owner"}))
    assert found.source.person.id == "U1"


def test_an_edit_is_one_only_if_a_person_changed_the_text() -> None:
    before = message()
    after = {**before, "text": "hello there", "edited": {"user": "U1", "ts": "1700000009.000000"}}
    outer = {
        "type": "message",
        "subtype": "message_changed",
        "hidden": True,
        "channel": "C1",
        "ts": "1700000009.000100",
    }
    found = event({**outer, "message": after, "previous_message": before})
    assert isinstance(found, Edited)
    assert found.text == "hello there"
    assert found.original == ("C1:1700000000.000200", "C1:m-1")
    assert found.source.keys == ("C1:1700000000.000200:1700000009.000000",)
    unfurled = {**before, "attachments": [{"title": "a page"}]}
    assert event({**outer, "message": unfurled, "previous_message": before}) is None
    pinned = {**before, "edited": {"user": "U1", "ts": "1700000009.000000"}}
    assert event({**outer, "message": pinned, "previous_message": before}) is None
    by_bot = {**after, "bot_id": "B2"}
    assert event({**outer, "message": by_bot, "previous_message": before}) is None
    own = {**after, "user": "U0BOT"}
    assert event({**outer, "message": own, "previous_message": before}) is None
    foreign = {**after, "user_team": "T0OTHER"}
    assert event({**outer, "message": foreign, "previous_message": before}) is None


def test_a_deleted_message_is_named_also_if_it_had_replies() -> None:
    outer = {"type": "message", "hidden": True, "channel": "C1", "ts": "1700000009.000100"}
    deleted = {**outer, "subtype": "message_deleted", "deleted_ts": AT}
    grave = {"subtype": "tombstone", "ts": AT, "user": "USLACKBOT"}
    changed = {**outer, "subtype": "message_changed", "message": grave}
    for each in (deleted, changed):
        found = event({**each, "previous_message": message()})
        assert isinstance(found, Deleted)
        assert found.original == ("C1:1700000000.000200", "C1:m-1")
        assert found.source.person.id == "U1"
    assert event({**deleted, "previous_message": message(user="U0BOT")}) is None


def test_the_echo_of_a_part_and_its_metadata_event_are_proofs() -> None:
    metadata = {"event_type": "bullpen_part", "event_payload": {"key": "b1.2.0"}}
    posted: Event = {
        "type": "message_metadata_posted",
        "app_id": "A0",
        "bot_id": "B0BOT",
        "user_id": "U0BOT",
        "channel_id": "C1",
        "metadata": metadata,
        "message_ts": AT,
        "event_ts": AT,
    }
    expected = Proof(key="b1.2.0", receipt=f"C1:{AT}")
    assert event(posted) == expected
    assert event(message(user="U0BOT", bot_id="B0BOT", metadata=metadata)) == expected
    assert event(message(user="U0BOT", bot_id="B0BOT")) is None


def test_the_metadata_of_another_app_is_no_proof() -> None:
    metadata = {"event_type": "bullpen_part", "event_payload": {"key": "b1.2.0"}}
    forged: Event = {
        "type": "message_metadata_posted",
        "bot_id": "B0OTHER",
        "user_id": "U0OTHER",
        "channel_id": "C1",
        "metadata": metadata,
        "message_ts": AT,
    }
    assert event(forged) is None


def test_stop_of_an_agents_session_is_the_command() -> None:
    found = event(
        {
            "type": "agent_session_stopped",
            "channel": "D1",
            "thread_ts": ROOT,
            "user": "U1",
            "streaming_message_ts": [],
            "event_ts": AT,
        }
    )
    assert isinstance(found, Written)
    assert (found.text, found.addressed, found.source.thread) == ("/stop", True, ROOT)
    assert found.source.person.id == "U1"
    assert found.source.keys == (f"D1:{ROOT}:stop:{AT}",)


@pytest.mark.parametrize(
    ("command", "text", "expected"),
    [
        ("/bullpen", "status", "/status"),
        ("/bullpen", "Stop", "/Stop"),
        ("/bullpen", "", "/help"),
        ("/bullpen", "@coder fix the build", "@coder fix the build"),
        ("/bullpen", "statuses are odd", "statuses are odd"),
        ("/agents", "", "/agents"),
        ("/approve", "ABCD2345", "/approve ABCD2345"),
    ],
)
def test_a_slash_command_is_the_same_text_typed(command: str, text: str, expected: str) -> None:
    body: Event = {
        "command": command,
        "text": text,
        "team_id": "T0",
        "user_id": "U1",
        "user_name": "ann",
        "channel_id": "C1",
        "channel_name": "general",
        "trigger_id": "1.2.x",
    }
    found = parse_slack(event_payload("slash_commands", body, 1_700_000_000_000), BOT)
    assert isinstance(found, Written)
    assert found.text.strip() == expected
    assert (found.source.person.id, found.source.person.name) == ("U1", "ann")
    assert (found.source.chat.id, found.source.chat.name) == ("C1", "general")
    assert found.source.keys == ("command:1.2.x",)
    foreign = {**body, "team_id": "T0OTHER"}
    assert parse_slack(event_payload("slash_commands", foreign, 1), BOT) is None


def test_a_button_names_who_pressed_it() -> None:
    body: Event = {
        "type": "block_actions",
        "team": {"id": "T0"},
        "user": {"id": "U2", "username": "bob", "team_id": "T0"},
        "channel": {"id": "C1", "name": "general"},
        "container": {"type": "message", "message_ts": AT},
        "message": {"ts": AT, "thread_ts": ROOT, "user": "U0BOT"},
        "actions": [{"type": "button", "value": "held:17:resume", "action_ts": AT}],
    }
    found = parse_slack(event_payload("interactive", body, 1), BOT)
    assert isinstance(found, Pressed)
    assert found.value == "held:17:resume"
    assert (found.source.person.id, found.source.thread) == ("U2", ROOT)
    foreign = {**body, "user": {"id": "U2", "team_id": "T0OTHER"}}
    assert parse_slack(event_payload("interactive", foreign, 1), BOT) is None
    modal = {**body, "type": "view_submission"}
    assert parse_slack(event_payload("interactive", modal, 1), BOT) is None


@pytest.mark.parametrize(
    ("payload", "name", "closed"),
    [
        ({"type": "channel_rename", "channel": {"id": "C1", "name": "new"}}, "new", ""),
        ({"type": "channel_archive", "channel": "C1"}, "", "the channel is archived"),
        ({"type": "channel_unarchive", "channel": "C1"}, "", ""),
        ({"type": "channel_left", "channel": "C1"}, "", "the bot was removed from the channel"),
        (
            {"type": "member_left_channel", "channel": "C1", "user": "U0BOT"},
            "",
            "the bot was removed from the channel",
        ),
        ({"type": "member_joined_channel", "channel": "C1", "user": "U0BOT"}, "", ""),
    ],
)
def test_changes_of_channels_are_told(payload: Event, name: str, closed: str) -> None:
    found = event(payload)
    assert isinstance(found, ChatChange)
    assert (found.chat.id, found.chat.name, found.closed) == ("C1", name, closed)


def test_changes_that_concern_other_people_are_of_no_interest() -> None:
    for kind in ("member_left_channel", "member_joined_channel", "app_home_opened", "unheard_of"):
        assert event({"type": kind, "channel": "C1", "user": "U1"}) is None
    assert parse_slack({"kind": "hello", "body": {}}, BOT) is None


def test_a_revoked_token_and_a_removed_app_are_the_end_of_the_account() -> None:
    revoked = down_event({"event": {"type": "tokens_revoked", "tokens": {"bot": ["U0BOT"]}}})
    assert revoked is not None
    assert revoked.code == "token_revoked"
    assert down_event({"event": {"type": "tokens_revoked", "tokens": {"oauth": ["U1"]}}}) is None
    removed = down_event({"event": {"type": "app_uninstalled"}})
    assert removed is not None
    assert removed.code == "app_uninstalled"
    assert down_event({"event": message()}) is None


def test_files_are_attachments_and_links_to_other_services_stay_text() -> None:
    files = [
        {
            "id": "F1",
            "name": "a.txt",
            "mimetype": "text/plain",
            "size": 12,
            "url_private_download": "https://files.slack.com/files-pri/T0-F1/download/a.txt",
        },
        {"id": "F2", "file_access": "check_file_info"},
        {
            "id": "F3",
            "is_external": True,
            "title": "Plan",
            "external_url": "https://docs.example.com/1",
        },
        {"id": "F4", "mode": "tombstone"},
    ]
    found = written(message(subtype="file_share", files=files, text="look"))
    assert found.text == "look\nPlan (https://docs.example.com/1)"
    assert found.attachments == (
        Attachment(
            name="a.txt",
            source="https://files.slack.com/files-pri/T0-F1/download/a.txt",
            type="text/plain",
            size=12,
        ),
        Attachment(name="file", source="F2"),
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a &lt;b&gt; &amp;amp; c", "a <b> &amp; c"),
        ("<https://example.com|the page> and <https://example.com/>", None),
        ("<mailto:a@example.com|a@example.com>", "a@example.com"),
        ("<@U2> <@U3|carl> <#C2|general> <#C3>", "@U2 @carl #general #C3"),
        ("<!here> <!subteam^S1|@ops> <!date^1392734382^{date}|Feb 18>", "@here @ops Feb 18"),
        ("5 > 3 < 4", "5 > 3 < 4"),
        ("`*bold*` _it_", "`*bold*` _it_"),
    ],
)
def test_markup_is_read_as_plain_text(text: str, expected: str | None) -> None:
    if expected is None:
        expected = "the page (https://example.com) and https://example.com/"
    assert plain_text(text) == expected


@pytest.mark.parametrize("at", ["", "x", "nan", "1e999999"])
def test_a_message_with_a_hostile_time_is_an_error_and_no_crash(at: str) -> None:
    with pytest.raises(ValueError, match="not a number"):
        event(message(ts=at))


def test_times_are_exact_in_both_directions() -> None:
    assert to_milliseconds("1700000000.123456") == 1_700_000_000_123
    assert to_time(1_700_000_000_123) == "1700000000.123000"


@pytest.mark.parametrize("body", [None, [], "text", {"event": None}, {"event": {"type": []}}])
def test_payloads_of_any_form_are_read(body: object) -> None:
    assert parse_slack({"kind": "events_api", "body": body}, BOT) is None
