"""What `bullpen channel setup discord` finds out about a bot."""

from __future__ import annotations

from bullpen.channels.discord_events import object_of, text_of
from bullpen.channels.discord_gateway import INTENT_HINT, KEPT_SESSIONS
from bullpen.channels.discord_rest import PAGE, Rest
from bullpen.channels.platform import Finding
from bullpen.core.text import format_count

PERMISSIONS = 1 << 10 | 1 << 11 | 1 << 15 | 1 << 16 | 1 << 38
"""View channels, send messages (in threads as well), attach files, read the history."""


async def check_account(rest: Rest, application: str, content_on: bool) -> list[Finding]:
    """Check the intent, the servers, where interactions go, and the sessions of the day."""
    with rest.reading():
        details = await rest.get("/oauth2/applications/@me")
        servers = len(await rest.get_guilds(PAGE, with_counts=False))
        limit = object_of((await rest.get("/gateway/bot")).get("session_start_limit"))
    left = limit.get("remaining")
    invitation = (
        f"https://discord.com/oauth2/authorize?client_id={application}"
        f"&scope=bot+applications.commands&permissions={PERMISSIONS}"
    )
    elsewhere = bool(text_of(details, "interactions_endpoint_url"))
    return [
        Finding(
            ok=content_on,
            code="message_content",
            text="The Message Content Intent is on."
            if content_on
            else "The Message Content Intent is off: in servers, the bot gets the text of messages "
            "that mention it, and not the text of replies without a mention.",
            hint="" if content_on else INTENT_HINT,
        ),
        Finding(
            ok=servers > 0,
            code="servers",
            text=f"The bot is in {format_count(servers, 'server')}.",
            hint="" if servers else f"Open {invitation} and choose a server.",
        ),
        Finding(
            ok=not elsewhere,
            code="interactions_url",
            text="Discord sends slash commands and buttons to the Interactions Endpoint URL of the "
            "application."
            if elsewhere
            else "Slash commands and buttons come through the gateway.",
            hint="Empty the field at discord.com/developers/applications, General Information."
            if elsewhere
            else "",
        ),
        Finding(
            ok=isinstance(left, int) and left > KEPT_SESSIONS,
            code="sessions",
            text=f"{left} of {limit.get('total')} sessions of this day are left.",
        ),
    ]


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
            text=f"Discord made {same} of two attempts with the same nonce.",
        ),
        Finding(
            ok=True,
            code="nonce_in_history",
            text=f"The history {'has' if kept else 'does not have'} the nonce.",
        ),
    ]
