"""Slack's Web API: one request for each call, and what each failure of it means.

    connection was not made              NotSent
    429, `ratelimited`                   RateLimited
    the token is not valid any more      ChannelDown
    the chat or person is not reachable  Undeliverable
    any other `"ok": false`              Refused
    5xx, HTML, connection lost, time-out OutcomeUnknown

Slack's documentation says of `internal_error` and `fatal_error` that a part of the request may have
succeeded. The texts of the SDK's errors are never used: they contain the answer and the URL.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Iterator, Mapping

import aiohttp
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.web.async_slack_response import AsyncSlackResponse

from bullpen.channels.failures import (
    ChannelDown,
    NotSent,
    OutcomeUnknown,
    RateLimited,
    Refused,
    SendFailed,
    Undeliverable,
)

Object = Mapping[str, object]

REQUEST_SECONDS = 25.0
CONNECT_SECONDS = 10.0
KEEP_ALIVE_SECONDS = 2.0
"""A longer idle connection may be closed just when it is used, which looks like a lost answer."""
DEFAULT_RETRY_SECONDS = 30.0

TOKEN_ERRORS: Mapping[str, str] = {
    "invalid_auth": "the token is not valid",
    "not_authed": "the token is empty",
    "token_revoked": "the token was revoked",
    "token_expired": "the token has expired",
    "account_inactive": "the token belongs to a deleted bot or workspace",
    "not_allowed_token_type": "the token is of the wrong kind",
    "no_permission": "the token does not have the permission",
    "org_login_required": "the workspace is being moved to an organization",
    "team_access_not_granted": "the app has no access to the workspace",
    "invalid_app_id": "the app does not exist any more",
    "app_uninstalled": "the app was removed from the workspace",
}
"""Errors that concern the whole account."""

REPLACE_HINT = (
    "Copy the bot token from the page OAuth & Permissions at https://api.slack.com/apps, and set "
    "bot_token."
)

UNREACHABLE: Mapping[str, str] = {
    "channel_not_found": "the chat does not exist, or the bot is not in it",
    "not_in_channel": "the bot is not in the channel",
    "is_archived": "the channel is archived",
    "user_not_found": "the person does not exist",
    "users_not_found": "the person does not exist",
    "user_disabled": "the person's account is disabled",
    "cannot_dm_bot": "a bot gets no direct messages",
    "user_not_visible": "the bot may not see the person",
    "messages_tab_disabled": "the app does not accept direct messages",
    "restricted_action": "the workspace does not let the bot write there",
    "restricted_action_read_only_channel": "only some people may write in the channel",
    "restricted_action_thread_only_channel": "the channel takes replies only",
    "restricted_action_non_threadable_channel": "the channel does not accept replies",
    "restricted_action_thread_locked": "the thread is locked",
    "thread_not_found": "the thread does not exist any more",
    "ekm_access_denied": "the workspace has suspended access to its messages",
}

UNCLEAR = frozenset({"fatal_error", "internal_error", "service_unavailable", "request_timeout"})
"""Errors after which the request may have succeeded."""


def new_session() -> aiohttp.ClientSession:
    """The connections of one account. The SDK applies no time-out to a session that it is given."""
    return aiohttp.ClientSession(
        timeout=aiohttp.ClientTimeout(total=REQUEST_SECONDS, sock_connect=CONNECT_SECONDS),
        connector=aiohttp.TCPConnector(keepalive_timeout=KEEP_ALIVE_SECONDS),
    )


def new_client(
    token: str, url: str, session: aiohttp.ClientSession, log: logging.Logger
) -> AsyncWebClient:
    """A client that sends each request once: by default, the SDK repeats a lost one."""
    quiet = log.getChild("sdk")
    quiet.setLevel(logging.WARNING)  # below that, it logs the texts of people
    return AsyncWebClient(
        token=token, base_url=url, session=session, logger=quiet, retry_handlers=[]
    )


async def ask(call: Awaitable[AsyncSlackResponse]) -> Object:
    """The answer to a request; raises the errors of `failures`, as the table above says."""
    return (await ask_with_headers(call))[0]


async def ask_with_headers(call: Awaitable[AsyncSlackResponse]) -> tuple[Object, Mapping[str, str]]:
    """The answer to a request with its headers, names in lower case."""
    try:
        response = await call
    except Exception as error:
        raise failure_of(error) from None
    return as_object(response.data), _headers(response)


def failure_of(error: Exception) -> SendFailed | ChannelDown:
    """What an error of the SDK or of a connection means."""
    if isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError):
        # Also names that cannot be resolved, and TLS that fails.
        return NotSent("Slack is not reachable", type(error).__name__)
    if not isinstance(error, SlackApiError) or not isinstance(error.response, AsyncSlackResponse):
        return OutcomeUnknown("the connection to Slack was lost", type(error).__name__)
    response = error.response
    answer = as_object(response.data)
    code = as_text(answer.get("error"))
    if response.status_code == 429 or code in ("ratelimited", "rate_limited"):
        return RateLimited(_retry_after(_headers(response)))
    if response.status_code >= 500 or not code or code in UNCLEAR:
        return OutcomeUnknown("Slack failed", code or f"HTTP {response.status_code}")
    return _refusal(code, answer)


def _refusal(code: str, answer: Object) -> SendFailed | ChannelDown:
    if code in TOKEN_ERRORS:
        reason = f"Slack refuses the account: {TOKEN_ERRORS[code]} ({code})"
        return ChannelDown(code, reason, REPLACE_HINT)
    if code == "team_added_to_org":
        return NotSent("Slack is moving the workspace", code)
    if code in UNREACHABLE:
        return Undeliverable(UNREACHABLE[code], code)
    if code == "missing_scope":
        return Refused(f"the app lacks the scope {as_text(answer.get('needed')) or '?'}", code)
    return Refused("Slack refused it", code)


def _headers(response: AsyncSlackResponse) -> Mapping[str, str]:
    return {str(name).lower(): str(value) for name, value in response.headers.items()}


def _retry_after(headers: Mapping[str, str]) -> float:
    try:
        return max(0.0, float(headers.get("retry-after", "")))
    except ValueError:
        return DEFAULT_RETRY_SECONDS


def as_object(value: object) -> Object:
    """The value if it is a JSON object, or an empty one."""
    return value if isinstance(value, dict) else {}


def as_objects(value: object) -> Iterator[Object]:
    """The objects of a JSON list."""
    if isinstance(value, list):
        yield from (each for each in value if isinstance(each, dict))


def as_text(value: object) -> str:
    """The value if it is a string, or an empty one."""
    return value if isinstance(value, str) else ""


def next_cursor(answer: Object) -> str:
    """Where the next page of a list begins; empty after the last."""
    return as_text(as_object(answer.get("response_metadata")).get("next_cursor"))
