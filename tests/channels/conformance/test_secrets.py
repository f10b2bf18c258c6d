"""The secrets of an account are in no log, row, event or file, whatever an error says."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from pkgutil import resolve_name
from urllib.parse import quote

import aiohttp
import pytest
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

from bullpen.channels import Note, Platform, Sending, client
from bullpen.channels.failures import ChannelDown, NotSent, OutcomeUnknown, Refused
from bullpen.channels.main import check_channel, find_channel
from bullpen.core.logs import TextFormatter
from bullpen.core.models.base import TABLES
from bullpen.core.settings.accounts import is_account_secret
from tests.channels.conformance.conftest import Account
from tests.conformance.verbs import rows
from tests.processor.working import eventually


def secrets_of(account: Account) -> list[str]:
    """The secrets, and the forms in which a URL has them."""
    named = account.store.settings.accounts.named
    found = [value for name, value in named.items() if is_account_secret(name) and value]
    assert found
    return sorted({form for each in found for form in (each, quote(each), quote(each, safe=""))})


def sdk_error(secret: str) -> aiohttp.ClientResponseError:
    """An error of an HTTP client, whose text has the URL."""
    url = URL(f"https://api.example.com/bot{quote(secret, safe='')}/send?token={secret}")
    request = aiohttp.RequestInfo(url, "POST", CIMultiDictProxy(CIMultiDict()), url)
    return aiohttp.ClientResponseError(request, (), status=401, message=f"bad token {secret}")


def platform_class(account: Account) -> type[Platform]:
    """The class of the platform."""
    found = resolve_name(find_channel(account.channel, account.store.settings).factory)
    assert isinstance(found, type)
    assert issubclass(found, Platform)
    return found


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> Iterator[logging.Logger]:
    """Everything that a service logs."""
    with caplog.at_level(logging.INFO):
        yield logging.getLogger()


def places_with(account: Account, caplog: pytest.LogCaptureFixture, secret: str) -> list[str]:
    """Where a secret is written."""
    settings = account.store.settings
    formatter = TextFormatter(settings.secrets())
    found = [line for each in caplog.records if secret in (line := formatter.format(each))]
    for table in TABLES:
        found += [
            f"{table.name}: {row}" for row in rows(account.store, table) if secret in str(row)
        ]
    run = [each for each in Path(settings.run).rglob("*") if each.is_file()]
    return found + [str(each) for each in run if secret.encode() in each.read_bytes()]


def test_oc_106562_no_error_of_a_client_shows_a_secret(
    stopped: Account,
    log: logging.Logger,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    secrets = secrets_of(stopped)
    (first, *_), shown = secrets, " and ".join(secrets)
    starts = [
        OSError(f"cannot connect: {shown}"),
        sdk_error(first),
        ChannelDown("odd", f"refused {shown}", f"hint {shown}", retry_seconds=0.1),
    ]
    sends = [
        NotSent(f"no connection: {shown}"),
        sdk_error(first),
        OutcomeUnknown(f"no answer: {shown}"),
        Refused(f"refused: {shown}"),
    ]
    kind = platform_class(stopped)
    right_start, right_send = kind.start, kind.send

    async def fail(*given: object) -> object:
        raise sdk_error(first)

    async def start(self: Platform) -> object:
        if starts:
            raise starts.pop(0)
        return await right_start(self)

    async def send(self: Platform, sending: Sending, note: Note) -> object:
        if sends:
            raise sends.pop(0)
        return await right_send(self, sending, note)

    for name in ("show", "recover", "missed", "newest", "chats", "person_name", "locate"):
        monkeypatch.setattr(kind, name, fail)
    monkeypatch.setattr(kind, "start", start)
    monkeypatch.setattr(kind, "send", send)
    monkeypatch.setattr(client, "MAX_TROUBLE_SECONDS", 0.1)
    stopped.start()
    stopped.up()
    assert not starts
    for number in range(1, 5):
        stopped.respond(f"number {number}", number=number)
    stopped.say("with a file", 5, files=[("a.txt", b"data")])
    eventually(lambda: not sends, "all sends failed")
    eventually(lambda: any(each["status"] == "dead" for each in stopped.responses()), "one is dead")
    stopped.stop()
    found = {each: places_with(stopped, caplog, each) for each in secrets}
    assert not any(found.values()), found


def test_a_check_shows_no_secret(stopped: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    info = find_channel(stopped.channel, stopped.store.settings)
    secrets = secrets_of(stopped)
    text = " and ".join(secrets)
    for error in (OSError(text), ChannelDown("odd", text, text)):

        async def start(self: Platform, error: Exception = error) -> object:
            raise error

        monkeypatch.setattr(platform_class(stopped), "start", start)
        found = str(check_channel(stopped.store.settings, info))
        assert not [each for each in secrets if each in found], found
