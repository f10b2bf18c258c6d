"""The check of a Twilio account during its setup, in Twilio's own terms. Everything here blocks.

A finding that is not `ok` means that the account cannot work. What only limits it has a hint.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from twilio.base.exceptions import TwilioRestException
from twilio.rest import Client

from bullpen.channels.platform import Finding

WHATSAPP = "whatsapp:"
SANDBOX_NUMBER = f"{WHATSAPP}+14155238886"
PROBE_TEXT = "This is a test of Bullpen. It needs no answer."
LOOK_UPS = 5
LOOK_UP_SECONDS = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """The account that is checked."""

    account: str
    own: str
    """Its number as Twilio writes it: with `whatsapp:` before it on WhatsApp."""
    webhook: str
    """The URL for messages; empty if there is no public URL."""
    service: str
    """The SID of a messaging service; may be empty."""
    api_key: str
    client: Client = field(repr=False)
    token_client: Client = field(repr=False)
    """The same API with the auth token, which webhooks are verified with."""


def check_setup(setup: Setup) -> list[Finding]:
    """What is right and wrong, the most important first."""
    findings = [*_check_account(setup)]
    if setup.own.startswith(WHATSAPP):
        findings += _check_sender(setup)
    else:
        findings += _check_number(setup)
    if not setup.webhook:
        findings.append(
            Finding(
                ok=True,
                code="no_public_url",
                text="without a public URL, messages are read from Twilio's list once a minute, "
                "no files are sent, and nobody learns that an answer did not arrive",
                hint=f"Put a proxy with TLS before the listener, and run "
                f"`bullpen config set {setup.account}.public_url URL`.",
            )
        )
    return findings


def _check_account(setup: Setup) -> Iterator[Finding]:
    """The kinds of credentials, and the account, which only the auth token may read."""
    if setup.api_key:
        yield Finding(ok=True, code="api_key", text=f"calls use the API key {setup.api_key}")
    else:
        yield Finding(
            ok=True,
            code="auth_token",
            text="calls use the auth token",
            hint="A standard API key can be revoked alone: create one in the Twilio console, and "
            f"set `{setup.account}.api_key` and `{setup.account}.api_secret`.",
        )
    try:
        found = setup.token_client.api.v2010.accounts(setup.token_client.account_sid).fetch()
    except TwilioRestException as error:
        yield Finding(
            ok=False,
            code="auth_token_refused",
            text=f"Twilio refuses the auth token ({error.code}), so webhooks would be refused",
            hint="Copy the live auth token from the Twilio console: "
            f"`bullpen config set {setup.account}.auth_token`.",
        )
        return
    status = str(found.status)
    yield Finding(
        ok=status == "active",
        code="account",
        text=f"the account {found.friendly_name} is {status}",
        hint="" if status == "active" else "Open the Twilio console and read the notice.",
    )
    if found.type == "Trial":
        yield Finding(
            ok=True,
            code="trial",
            text="this is a trial account: Twilio writes a sentence before each text, and sends "
            "to verified numbers only",
            hint="Verify your number in the Twilio console, or upgrade the account.",
        )


def _check_number(setup: Setup) -> Iterator[Finding]:
    """Whether the number belongs to the account, and where its messages go."""
    found = setup.client.incoming_phone_numbers.list(phone_number=setup.own, limit=1)
    if not found:
        yield _not_owned(setup)
        return
    number = found[0]
    can = number.capabilities if isinstance(number.capabilities, dict) else {}
    names = ", ".join(name.upper() for name in ("sms", "mms") if can.get(name)) or "no messages"
    yield Finding(
        ok=bool(can.get("sms")), code="number", text=f"{setup.own} can send and receive {names}"
    )
    if setup.service:
        service = setup.client.messaging.v1.services(setup.service).fetch()
        if not service.use_inbound_webhook_on_number:
            yield _webhook(setup, service.inbound_request_url, "POST", "the messaging service")
            return
    if number.sms_application_sid:
        yield _webhook(setup, "a TwiML app", number.sms_method, "the number")
        return
    yield _webhook(setup, number.sms_url, number.sms_method, "the number")


def _check_sender(setup: Setup) -> Iterator[Finding]:
    """Whether the number is a WhatsApp sender of the account, and where its messages go."""
    if setup.own == SANDBOX_NUMBER:
        yield Finding(
            ok=True,
            code="sandbox",
            text="this is the WhatsApp sandbox: each person must join it every three days",
            hint=f"Set {setup.webhook} as its webhook in the Twilio console.",
        )
        return
    senders = setup.client.messaging.v2.channels_senders.list(channel="whatsapp")
    found = next((each for each in senders if each.sender_id == setup.own), None)
    if found is None:
        yield _not_owned(setup)
        return
    online = str(found.status).startswith("ONLINE")
    yield Finding(ok=online, code="number", text=f"the WhatsApp sender is {found.status}")
    webhook = found.webhook if isinstance(found.webhook, dict) else {}
    url, method = webhook.get("callback_url"), webhook.get("callback_method")
    yield _webhook(setup, url, method, "the WhatsApp sender")


def _not_owned(setup: Setup) -> Finding:
    return Finding(
        ok=False,
        code="number_not_owned",
        text=f"the number {setup.own.removeprefix(WHATSAPP)} is not a sender of this account",
        hint=f"Set a number of the account: `bullpen config set {setup.account}.number NUMBER`.",
    )


def _webhook(setup: Setup, url: object, method: object, owner: str) -> Finding:
    """Whether messages are pushed to this installation."""
    if not setup.webhook:
        return Finding(ok=True, code="webhook", text="no webhook is used")
    if url == setup.webhook and method in ("POST", None, ""):
        return Finding(ok=True, code="webhook", text=f"the webhook of {owner} is {url}")
    # It may be set later, and the list of messages has everything until then.
    now = f"{url} ({method or 'POST'})" if url else "not set"
    return Finding(
        ok=True,
        code="webhook_missing",
        text=f"messages arrive up to five minutes late, because the webhook of {owner} is {now}",
        hint=f"Set it to {setup.webhook} with POST in the Twilio console.",
    )


def probe_account(setup: Setup, to: str) -> list[Finding]:
    """Find out, with one message to the owner, how soon the list shows a message."""
    sent = setup.client.messages.create(to=to, from_=setup.own, body=PROBE_TEXT)

    def is_listed(**options: object) -> bool:
        listed = setup.client.messages.list(to=to, from_=setup.own, limit=50, **options)
        return any(each.sid == sent.sid for each in listed)

    findings = [
        _look_up("list", "the list of messages", lambda: is_listed()),
        _look_up(
            "list_by_date",
            "the list filtered by date",
            lambda: is_listed(date_sent_after=sent.date_created),
        ),
    ]
    if to.startswith(WHATSAPP):
        findings.append(_probe_typing(setup, to))
    return findings


def _look_up(code: str, what: str, is_listed: Callable[[], bool]) -> Finding:
    for count in range(LOOK_UPS):
        if is_listed():
            text = f"{what} shows a message within {count * LOOK_UP_SECONDS:g} s of sending"
            return Finding(ok=True, code=code, text=text)
        time.sleep(LOOK_UP_SECONDS)
    seconds = LOOK_UPS * LOOK_UP_SECONDS
    return Finding(
        ok=False, code=code, text=f"{what} does not show a message {seconds:g} s after sending"
    )


def _probe_typing(setup: Setup, person: str) -> Finding:
    """Whether these credentials may show that the bot is typing."""
    received = setup.client.messages.list(to=setup.own, from_=person, limit=1)
    if not received:
        return Finding(ok=False, code="typing", text="this person has written no message yet")
    try:
        setup.client.messaging.v2.typing_indicator.create(
            channel="whatsapp", message_id=str(received[0].sid)
        )
    except TwilioRestException as error:
        text = f"Twilio refuses the typing indicator ({error.code})"
        return Finding(ok=False, code="typing", text=text)
    return Finding(ok=True, code="typing", text="the typing indicator works")
