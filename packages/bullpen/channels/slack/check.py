"""The check of a Slack account during its setup, and the probe of what Slack does not document."""

from __future__ import annotations

import asyncio
import re
import uuid
from collections.abc import Awaitable
from dataclasses import dataclass

from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.web.async_slack_response import AsyncSlackResponse

from bullpen.channels.failures import ChannelDown, Refused, SendFailed
from bullpen.channels.platform import ChannelContext, Finding, Identity
from bullpen.channels.slack.api import (
    REPLACE_HINT,
    Object,
    as_object,
    as_objects,
    as_text,
    ask,
    ask_with_headers,
)
from bullpen.channels.slack.events import METADATA_EVENT, SlackBot
from bullpen.channels.slack.manifest import OPTIONAL_SCOPES, SCOPES
from bullpen.channels.slack.socket import CONNECTIONS_HINT, Connection

PROBE_SECONDS = 10.0
PROBE_INTERVAL = 0.5

_KINDS = {
    "xapp-": "an app-level token",
    "xoxp-": "a user token",
    "xoxe": "a configuration token",
    "xoxb-": "a bot token",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedIn:
    """The answer to the bot token."""

    identity: Identity
    bot: SlackBot
    scopes: frozenset[str]
    """The granted scopes; empty if Slack did not name them."""


async def sign_in(web: AsyncWebClient, context: ChannelContext) -> SignedIn:
    """Who the bot is; raises `ChannelDown` if the token is not that of a bot."""
    _check_kind(context.setting("bot_token"), "xoxb-", "bot_token", REPLACE_HINT)
    if context.setting("transport") == "socket":
        _check_kind(context.setting("app_token"), "xapp-", "app_token", CONNECTIONS_HINT)
    answer, headers = await ask_with_headers(web.auth_test())
    if not as_text(answer.get("bot_id")):
        raise ChannelDown("wrong_token", "the token is not that of a bot", REPLACE_HINT)
    teams = {as_text(answer.get("team_id")), as_text(answer.get("enterprise_id"))} - {""}
    bot = SlackBot(
        user=as_text(answer.get("user_id")),
        bot=as_text(answer.get("bot_id")),
        teams=frozenset(teams),
        agent_view=context.setting("agent_view") == "on",
        shared_channels=context.setting("shared_channels") == "on",
    )
    name, team = as_text(answer.get("user")), as_text(answer.get("team"))
    scopes = frozenset(filter(None, re.split(r"[,\s]+", headers.get("x-oauth-scopes", ""))))
    return SignedIn(identity=Identity(bot.user, name, f"workspace {team}"), bot=bot, scopes=scopes)


def _check_kind(token: str, prefix: str, setting: str, hint: str) -> None:
    if token.strip().startswith(prefix):
        return
    kind = next((kind for begin, kind in _KINDS.items() if token.startswith(begin)), "another text")
    raise ChannelDown("wrong_token", f"{setting} is {kind}, and must begin with {prefix}", hint)


async def check_slack(web: AsyncWebClient, context: ChannelContext) -> list[Finding]:
    """Check the tokens, the scopes and the connections of other processes."""
    try:
        signed_in = await sign_in(web, context)
    except ChannelDown as error:
        return [Finding(ok=False, code=error.code, text=error.reason, hint=error.hint)]
    except SendFailed as error:
        return [_unreachable(error)]
    found = _check_scopes(signed_in.scopes)
    if context.setting("transport") == "socket":
        found += await _check_socket(web, context.setting("app_token"))
    return found


def _unreachable(error: Exception) -> Finding:
    return Finding(
        ok=False,
        code="unreachable",
        text=f"Slack did not answer: {error}",
        hint="Check the connection to https://slack.com, and the setting api_url.",
    )


def _check_scopes(granted: frozenset[str]) -> list[Finding]:
    if not granted:
        return [Finding(ok=True, code="scopes", text="Slack did not name the scopes")]
    if missing := sorted(set(SCOPES) - granted):
        return [
            Finding(
                ok=False,
                code="missing_scope",
                text=f"the app lacks the scopes {', '.join(missing)}",
                hint="Add them on the page OAuth & Permissions, and install the app again.",
            )
        ]
    missing = sorted(set(OPTIONAL_SCOPES) - granted)
    text = (
        f"all required scopes, without the optional {', '.join(missing)}"
        if missing
        else "all scopes"
    )
    return [Finding(ok=True, code="scopes", text=text)]


async def _check_socket(web: AsyncWebClient, app_token: str) -> list[Finding]:
    """Connect once, and read how many connections the app has."""
    connection = Connection(app_token, web, lambda *_: None)
    try:
        await connection.connect()
    except ChannelDown as error:
        return [Finding(ok=False, code=error.code, text=error.reason, hint=error.hint)]
    except Exception as error:
        text = f"Socket Mode cannot connect ({type(error).__name__})"
        hint = "Allow outgoing WebSocket connections to wss-primary.slack.com."
        return [Finding(ok=False, code="no_websocket", text=text, hint=hint)]
    finally:
        await connection.close()
    if connection.down is not None:
        down = connection.down
        return [Finding(ok=False, code=down.code, text=down.reason, hint=down.hint)]
    found = [Finding(ok=True, code="app_token", text="Socket Mode is enabled")]
    if (others := connection.total - 1) > 0:
        found.append(
            Finding(
                ok=True,
                code="other_connections",
                text=f"{others} other connections use the app-level token",
                hint="The service of this account has 2. With more, another process gets a part of "
                "the messages.",
            )
        )
    return found


async def probe_slack(web: AsyncWebClient, context: ChannelContext, chat: str) -> list[Finding]:
    """Find out in a chat what Slack's documentation leaves open; the posts are deleted again."""
    posted: list[str] = []
    try:
        key = f"probe-{uuid.uuid4().hex[:12]}"
        at = await _post(web, chat, posted, key=key)
        return [
            await _probe_metadata(web, context, chat, at, key),
            await _probe_send_key(web, chat, posted),
            await _probe_call(
                "status",
                "assistant.threads.setStatus, for status lines",
                web.assistant_threads_setStatus(channel_id=chat, thread_ts=at, status="is testing"),
            ),
            await _probe_call(
                "sessions",
                "agents.sessions.setStatus, for the Stop button",
                web.api_call(
                    "agents.sessions.setStatus",
                    json={"channel_id": chat, "thread_ts": at, "status": "active"},
                ),
            ),
        ]
    except (Refused, ChannelDown) as error:
        return [Finding(ok=False, code=error.code, text=f"Slack refuses the test: {error}")]
    except SendFailed as error:
        return [_unreachable(error)]
    finally:
        for at in posted:
            await _probe_call("delete", "", web.chat_delete(channel=chat, ts=at))


async def _post(
    web: AsyncWebClient, chat: str, posted: list[str], *, key: str = "", client_msg_id: str = ""
) -> str:
    given: dict[str, object] = {"channel": chat, "text": "Testing, please ignore."}
    if key:
        given["metadata"] = {"event_type": METADATA_EVENT, "event_payload": {"key": key}}
    if client_msg_id:
        given["client_msg_id"] = client_msg_id
    at = as_text((await ask(web.api_call("chat.postMessage", json=given))).get("ts"))
    if at not in posted:
        posted.append(at)
    return at


async def _probe_metadata(
    web: AsyncWebClient, context: ChannelContext, chat: str, at: str, key: str
) -> Finding:
    """Whether, and how soon, history has the metadata of our own message."""
    began = context.clock.monotonic()
    while (waited := context.clock.monotonic() - began) < PROBE_SECONDS * 1000:
        answer = await ask(
            web.conversations_history(
                channel=chat, oldest=at, inclusive=True, limit=1, include_all_metadata=True
            )
        )
        if any(_key(each) == key for each in as_objects(answer.get("messages"))):
            text = f"the key of a post is in the history after {waited} ms"
            return Finding(ok=True, code="metadata", text=text)
        await asyncio.sleep(PROBE_INTERVAL)
    return Finding(
        ok=False,
        code="metadata",
        text=f"the key of a post is not in the history after {PROBE_SECONDS:g} s",
        hint="Responses without an answer of Slack stay unknown until a person looks at them.",
    )


def _key(message: Object) -> str:
    return as_text(as_object(as_object(message.get("metadata")).get("event_payload")).get("key"))


async def _probe_send_key(web: AsyncWebClient, chat: str, posted: list[str]) -> Finding:
    """Whether two posts with one client_msg_id are one message."""
    send_key = str(uuid.uuid4())
    try:
        first = await _post(web, chat, posted, client_msg_id=send_key)
        once = await _post(web, chat, posted, client_msg_id=send_key) == first
        text = "one message" if once else "two messages"
    except SendFailed as error:
        text = f"refused: {error}"
    return Finding(ok=True, code="client_msg_id", text=f"two posts with one client_msg_id: {text}")


async def _probe_call(code: str, text: str, call: Awaitable[AsyncSlackResponse]) -> Finding:
    try:
        await ask(call)
    except (SendFailed, ChannelDown) as error:
        # Not every plan has it, and there is something in place of it.
        return Finding(ok=True, code=code, text=f"{text}: not available ({error})")
    return Finding(ok=True, code=code, text=f"{text}: available")
