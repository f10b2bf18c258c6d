"""What `bullpen channel setup discord` finds out about a bot."""

from __future__ import annotations

from bullpen.channels.discord.events import object_of, text_of
from bullpen.channels.discord.gateway import INTENT_HINT, KEPT_SESSIONS
from bullpen.channels.discord.rest import PAGE, Rest
from bullpen.channels.platform import Finding
from bullpen.core.text import format_count

PERMISSIONS = 1 << 10 | 1 << 11 | 1 << 15 | 1 << 16 | 1 << 38
"""View channels, send messages (in threads as well), attach files, read the history."""


async def check_account(rest: Rest, application: str, content_on: bool) -> list[Finding]:
    """Check the intent, the servers, where interactions go, and the sessions of the day.

    A finding is not ok if the bot could not work; the first two are what a person may want to know.
    """
    with rest.reading():
        details = await rest.get("/oauth2/applications/@me")
        servers = len(await rest.get_guilds(PAGE, with_counts=False))
        limit = object_of((await rest.get("/gateway/bot")).get("session_start_limit"))
    left = limit.get("remaining")
    enough = isinstance(left, int) and left > KEPT_SESSIONS
    invitation = (
        f"https://discord.com/oauth2/authorize?client_id={application}"
        f"&scope=bot+applications.commands&permissions={PERMISSIONS}"
    )
    content = "the Message Content Intent is on"
    if not content_on:
        content = (
            "the Message Content Intent is off: in servers, the bot gets the text of messages that "
            "mention it, and of no others"
        )
    place = f"the bot is in {format_count(servers, 'server')}"
    if not servers:
        place = "the bot is in no server"
    findings = [
        Finding(
            ok=True, code="message_content", text=content, hint="" if content_on else INTENT_HINT
        ),
        Finding(
            ok=True,
            code="servers",
            text=place,
            hint="" if servers else f"Open {invitation} and choose one.",
        ),
        Finding(
            ok=enough,
            code="sessions",
            text=f"{left} of {limit.get('total')} sessions of this day are left",
            hint="" if enough else "Find out what else uses this token, and wait until tomorrow.",
        ),
    ]
    if text_of(details, "interactions_endpoint_url"):
        findings.append(
            Finding(
                ok=False,
                code="interactions_url",
                text="Discord sends slash commands and buttons to the Interactions Endpoint URL of "
                "the application, and not to Bullpen",
                hint="Clear the field at discord.com/developers/applications, General Information.",
            )
        )
    return findings


async def probe_chat(rest: Rest, chat: str, nonce: str) -> list[Finding]:
    """Whether a nonce returns the same message, and whether the history has it."""
    body = {
        "content": "A test of Bullpen, which deletes this message.",
        "nonce": nonce,
        "enforce_nonce": True,
        "allowed_mentions": {"parse": []},
    }
    with rest.reading():
        first = await rest.create_message(chat, body)
        second = await rest.create_message(chat, body)
        history = await rest.history(chat, int(first) - 1, PAGE, lambda _: True)
        for each in {first, second}:
            await rest.delete_message(chat, each)
    same = "one message" if first == second else "two messages"
    kept = any(text_of(each, "nonce") == nonce for each in history)
    return [
        Finding(
            ok=first == second,
            code="nonce",
            text=f"Discord made {same} of two attempts with the same nonce",
        ),
        Finding(
            ok=True,
            code="nonce_in_history",
            text=f"The history {'has' if kept else 'does not have'} the nonce",
        ),
    ]
