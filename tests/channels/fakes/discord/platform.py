"""The server of the fake of Discord."""

from __future__ import annotations

from aiohttp import web

from tests.channels.fakes.discord.chats import API
from tests.channels.fakes.discord.rest import Rest


class FakeDiscord(Rest):
    """Discord with one server, a channel, a thread, and direct chats with as many as write."""

    def add_routes(self, router: web.UrlDispatcher) -> None:
        for method, path, handler in (
            ("GET", "/users/@me", self._get_me),
            ("GET", "/oauth2/applications/@me", self._get_application),
            ("GET", "/gateway/bot", self._get_gateway),
            ("GET", "/users/@me/guilds", self._get_servers),
            ("POST", "/users/@me/channels", self._open_direct),
            ("GET", "/channels/{chat}", self._get_channel),
            ("POST", "/channels/{chat}/messages", self._post),
            ("GET", "/channels/{chat}/messages", self._get_history),
            ("GET", "/channels/{chat}/messages/{message}", self._get_message),
            ("DELETE", "/channels/{chat}/messages/{message}", self._delete_own),
            ("POST", "/channels/{chat}/typing", self._type),
            ("PUT", "/applications/{application}/commands", self._put_commands),
            ("POST", "/interactions/{id}/{token}/callback", self._answer_interaction),
            ("DELETE", "/webhooks/{id}/{token}/messages/@original", self._delete_answer),
        ):
            router.add_route(method, API + path, handler)
        router.add_get("/gateway/", self._serve_gateway)
        router.add_get("/attachments/{chat}/{id}/{name}", self._get_file)
