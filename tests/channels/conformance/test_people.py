"""Who is heard: people, and neither bots nor the bot's own messages; commands in every form."""

from __future__ import annotations

import pytest

from tests.channels.conformance import driving
from tests.channels.conformance.conftest import Account
from tests.processor.working import eventually


def test_the_echo_of_the_bots_own_messages_is_no_message(served: Account) -> None:
    ids = [served.respond("an answer"), served.respond("/agents")]
    for each in ids:
        served.ends(each, "acked")
    served.say("after")
    served.stored("after")
    assert len(served.posts()) == 2


def test_another_bot_is_not_answered(served: Account) -> None:
    driving.bot_says(served, "hello, bot")
    driving.bot_says(served, "/agents")
    driving.webhook_says(served, "news")
    served.say("after")
    served.stored("after")
    assert not served.responses()


@pytest.mark.parametrize("name", ["agents", "whoami", "help"])
def test_a_native_command_is_the_same_as_the_text(served: Account, name: str) -> None:
    served.say(f"/{name}")
    eventually(lambda: len(served.posts()) == 1, "the answer to the text")
    if not driving.native_command(served, name):
        pytest.skip("the platform has no commands of its own")
    eventually(lambda: len(served.posts()) == 2, "the answer to the command")
    typed, native = served.posts()
    assert typed == native
    assert not served.messages()


def test_an_answer_stays_in_its_thread_and_two_threads_are_two_conversations(
    served: Account,
) -> None:
    if not served.kind.groups:
        pytest.skip("the platform has no groups")
    places = driving.threads(served)
    for number, (chat, thread) in enumerate(places):
        served.allow(chat)
        served.say(f"question {number}", chat=chat, thread=thread)
    served.stored("question 0", "question 1")
    conversations = {each["conversation_id"] for each in served.messages()}
    assert len(conversations) == 2
    for number in range(len(places)):
        served.answer(f"answer {number}")
    for number, (chat, thread) in enumerate(places):

        def is_there(chat: str = chat, text: str = f"answer {number}") -> bool:
            return any(text in each for each in served.posts(chat))

        eventually(is_there, f"answer {number} in {chat}/{thread}")
        (post,) = (each for each in served.platform.parts(chat) if f"answer {number}" in each.text)
        assert post.thread == (thread or ("" if chat == served.platform.chat(False) else chat))
