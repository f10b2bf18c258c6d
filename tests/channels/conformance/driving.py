"""What the platforms do in ways of their own: bots, buttons, native commands, threads, the past."""

from __future__ import annotations

from typing import Any

from tests.channels.conformance.conftest import Account
from tests.channels.fakes.discord import THREAD

TOPICS = ("77", "78")


def fake_of(account: Account) -> Any:  # noqa: ANN401 - each platform's is of another type
    """The fake behind the harness."""
    return account.platform.fake


def bot_says(account: Account, text: str) -> None:
    """Another bot writes to the bot, in the direct chat of the first person."""
    chat, person, fake = account.direct(), account.person(), fake_of(account)
    match account.kind.channel:
        case "slack":
            fake.say(chat, person, text, bot_id="B0OTHER", app_id="A0OTHER")
        case "discord":
            author = {**fake.person(1), "bot": True}
            fake.say(chat, person, text, author=author)
        case "telegram":
            other = {"id": 4242, "is_bot": True, "first_name": "Other"}
            fake.say(chat, int(person), text, fields={"from": other})
        case _:
            fake.say("BANK", text)  # a name has no number, so nobody answers it


def webhook_says(account: Account, text: str) -> None:
    """A hook or a channel writes in the first person's chat, in the platform's form of it."""
    chat, person, fake = account.direct(), account.person(), fake_of(account)
    match account.kind.channel:
        case "slack":
            fake.say(chat, person, text, subtype="bot_message", bot_id="B0HOOK")
        case "discord":
            fake.say(chat, person, text, webhook_id="700000000000009999")
        case "telegram":
            sender = {"id": -1009, "type": "channel", "title": "news"}
            fake.say(chat, int(person), text, fields={"sender_chat": sender})
        case _:
            fake.say(account.platform.settings()["number"], text)  # its own number


def press(account: Account, chat: str, number: int, value: str) -> None:
    """A person presses the button with this value."""
    account.platform.press(chat, account.person(number), value)


def native_command(account: Account, name: str, number: int = 1) -> bool:
    """A person uses a command of the platform's menu; False where there are none."""
    chat, person, fake = account.direct(number), account.person(number), fake_of(account)
    match account.kind.channel:
        case "slack":
            fake.command(chat, person, "/bullpen", name)
        case "discord":
            fake.command(chat, person, name)
        case "telegram":
            text = f"/{name}"
            entity = {"type": "bot_command", "offset": 0, "length": len(text)}
            fake.say(chat, int(person), text, fields={"entities": [entity]})
        case _:
            return False
    return True


def threads(account: Account) -> list[tuple[str, str]]:
    """Two threads of one group, each as the chat and the thread to write to."""
    group, fake = account.platform.chat(False), fake_of(account)
    match account.kind.channel:
        case "slack":
            roots = [fake.say(group, account.person(5), "a root", mention=False) for _ in range(2)]
            return [(group, each) for each in roots]
        case "discord":
            return [(group, ""), (THREAD, "")]
        case _:
            return [(group, each) for each in TOPICS]
