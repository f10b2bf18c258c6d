"""The gateway of Discord: the websocket on which events come, with its session.

The reconnection of the SDK is not used. Each new session is counted and pauses grow, because
Discord resets the token of a bot that begins too many sessions.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from typing import NoReturn

import aiohttp
import discord
from discord.errors import ConnectionClosed
from discord.gateway import DiscordWebSocket, ReconnectWebSocket
from yarl import URL

from bullpen.channels.discord.dispatch import Dispatch
from bullpen.channels.discord.events import object_of, text_of
from bullpen.channels.discord.rest import Rest, token_hint
from bullpen.channels.failures import ChannelDown
from bullpen.channels.platform import ChannelContext
from bullpen.core.clock import SECOND

INTENT_HINT = (
    "Switch on Message Content Intent at discord.com/developers/applications, Bot, "
    "Privileged Gateway Intents."
)
CONNECT_SECONDS = 60.0
CLOSE_SECONDS = 1.0
STABLE_SECONDS = 30.0
"""A connection that lasts so long ends the count of failures."""
MAX_SESSIONS = 5
"""New sessions in a row that did not last. Discord allows 1 000 a day, then resets the token."""
KEPT_SESSIONS = 50
"""Sessions of the day that are left for a person who looks into a fault."""
UNSTABLE_RETRY_SECONDS = 1_800.0


class Gateway:
    """The websocket on which Discord sends events. It keeps its session over reconnections."""

    def __init__(
        self,
        client: discord.Client,
        rest: Rest,
        dispatch: Dispatch,
        context: ChannelContext,
        pauses: tuple[float, ...],
    ) -> None:
        """`pauses` are the seconds before connecting again."""
        self._client, self._rest, self._dispatch = client, rest, dispatch
        self._url = context.setting("gateway_url")
        self._account, self._clock, self._chance = context.account, context.clock, context.chance
        self._log = context.log
        self._pauses = pauses
        # The SDK's own handlers would build a model of everything in every server.
        client._connection.parsers = {each: partial(self._take, each) for each in dispatch.handlers}
        self._socket: DiscordWebSocket | None = None
        self._resumable: DiscordWebSocket | None = None
        self._sessions = 0
        self._failures = 0
        self._ready_at: int | None = None
        gateway = self

        class Socket(DiscordWebSocket):
            def __init__(
                self,
                socket: aiohttp.ClientWebSocketResponse,
                *,
                loop: asyncio.AbstractEventLoop,
            ) -> None:
                super().__init__(socket, loop=loop)
                gateway._socket = self  # known before the handshake, so that it is closed after one

            async def received_message(self, msg: object, /) -> None:
                dispatch.heard()
                await super().received_message(msg)

        self._connect = Socket.from_client

    async def run(self) -> NoReturn:
        """Receive until cancelled; raises `ChannelDown`."""
        while True:
            reason = await self._serve()
            self._dispatch.lost(reason)
            self._log.info("the connection to Discord ended: %s", reason)
            pause = self._pauses[min(self._failures, len(self._pauses) - 1)]
            self._failures += 1
            if self._failures > len(self._pauses):
                self._resumable = None  # the server of the session may never be back
            await asyncio.sleep(pause * (0.5 + self._chance()))

    def _take(self, name: str, data: object) -> None:
        if name in ("READY", "RESUMED"):
            self._ready_at = self._clock.monotonic()
        try:
            self._dispatch.handlers[name](object_of(data))
        except Exception as error:  # it would end the connection
            # The text of the error may have a part of the event, which is a person's.
            kind = type(error).__name__
            self._log.error("an event %s was ignored, because it cannot be read: %s", name, kind)

    async def _serve(self) -> str:
        """One connection; returns why it ended."""
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                socket = await self._open()
            while True:
                await socket.poll_event()
        except asyncio.CancelledError:
            await self._close(1000)  # the bot is shown as offline at once
            raise
        except ReconnectWebSocket as request:
            self._keep(request.resume)
            return "Discord asked to connect again" if request.resume else "the session has ended"
        except ConnectionClosed as error:
            raise self._refused(error.code) from None
        except discord.HTTPException as error:
            if error.status == 401:
                raise self._refused(4004) from None
            return f"Discord answered {error.status}"
        except (OSError, aiohttp.ClientError, TimeoutError, discord.DiscordException) as error:
            self._keep(True)
            return type(error).__name__
        except (ValueError, KeyError, TypeError) as error:
            self._keep(False)
            return f"an answer of Discord cannot be read ({type(error).__name__})"
        finally:
            await self._close(4000)

    def _keep(self, resume: bool) -> None:
        """Keep the session to resume it, and count what did not last."""
        lasted = self._ready_at is not None and (
            self._clock.monotonic() - self._ready_at >= STABLE_SECONDS * SECOND
        )
        if lasted:
            self._failures = self._sessions = 0
        socket, self._ready_at = self._socket, None
        if not resume:
            self._resumable = None
        elif socket is not None and socket.session_id:
            self._resumable = socket

    async def _open(self) -> DiscordWebSocket:
        """Connect, and resume the session or begin one."""
        kept = self._resumable
        if kept is not None:
            return await self._connect(
                self._client,
                gateway=URL(self._url) if self._url else kept.gateway,
                session=kept.session_id,
                sequence=kept.sequence,
                resume=True,
            )
        answer = await self._rest.get("/gateway/bot")
        limit = object_of(answer.get("session_start_limit"))
        left, reset = limit.get("remaining"), limit.get("reset_after")
        if isinstance(left, int) and isinstance(reset, int | float) and left <= KEPT_SESSIONS:
            raise ChannelDown(
                "session_limit",
                f"the bot has {left} of its daily sessions left, and Discord resets its token at 0",
                "Find out what else uses this token; the channel starts again when Discord allows.",
                retry_seconds=reset / SECOND,
            )
        if self._sessions >= MAX_SESSIONS:
            self._sessions = 0
            raise ChannelDown(
                "sessions_fail",
                f"Discord ended {MAX_SESSIONS} new sessions in a row",
                "Look at discordstatus.com, and whether another program uses this token.",
                retry_seconds=UNSTABLE_RETRY_SECONDS,
            )
        url = URL(self._url or text_of(answer, "url"))
        # `initial`, because pauses are made here and not in the SDK.
        socket = await self._connect(self._client, initial=True, gateway=url)
        self._sessions += 1
        return socket

    def _refused(self, code: int) -> ChannelDown:
        """What a close code means after which Discord does not want another connection."""
        self._resumable = None
        match code:
            case 4004:
                hint = token_hint(self._account)
                return ChannelDown("token_invalid", "Discord refused the bot token", hint)
            case 4014 | 4013:
                reason = "the Message Content Intent of the bot is off"
                return ChannelDown("intent_off", reason, INTENT_HINT)
            case 4011:
                return ChannelDown(
                    "too_many_servers",
                    "the bot is in more servers than one connection supports",
                    "Remove it from servers; Bullpen supports about 2 500.",
                )
        return ChannelDown(f"closed_{code}", f"Discord closed the connection with code {code}")

    async def _close(self, code: int) -> None:
        socket, self._socket = self._socket, None
        if socket is not None:
            with suppress(Exception):
                async with asyncio.timeout(CLOSE_SECONDS):
                    await socket.close(code)
