"""Twilio's errors: the failure that each code, or an answer that never came, means."""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterator

import requests
from twilio.base.exceptions import (
    TwilioException,
    TwilioRestException,
    TwilioServiceException,
)
from twilio.http.response import Response
from urllib3.exceptions import NewConnectionError

from bullpen.channels.failures import (
    ChannelDown,
    NotSent,
    OptedOut,
    OutcomeUnknown,
    RateLimited,
    Refused,
    SendFailed,
    Undeliverable,
    WindowClosed,
)

OWN_CODES = 10_000
"""Codes below are HTTP statuses: something other than Twilio's API answered."""

_DOWN = {
    10001: "account_inactive",
    20003: "credentials_refused",
    20005: "account_inactive",
    20006: "permission_missing",
    20008: "test_credentials",
    20403: "account_inactive",
    20404: "account_not_found",
    21603: "number_not_owned",
    21606: "number_not_owned",
    21609: "public_url_refused",
    21659: "number_not_owned",
    21660: "number_not_owned",
    21701: "messaging_service_refused",
    21703: "messaging_service_refused",
    30002: "account_inactive",
    63007: "number_not_owned",
    70051: "permission_missing",
}

_REASONS = {
    "account_inactive": (
        "the account is suspended or closed",
        "Open the Twilio console and read the notice about the account.",
    ),
    "account_not_found": (
        "Twilio does not know the account SID",
        "Copy the account SID from the Twilio console: `bullpen config set {account}.account_sid`.",
    ),
    "credentials_refused": (
        "Twilio refuses the credentials",
        "Set the API key and its secret again, or the auth token: "
        "`bullpen config set {account}.auth_token`.",
    ),
    "messaging_service_refused": (
        "the messaging service does not exist or has no sender",
        "Check the senders of the messaging service, or run "
        "`bullpen config unset {account}.messaging_service`.",
    ),
    "number_not_owned": (
        "the number is not a sender of this account",
        "Set a number of the account: `bullpen config set {account}.number`.",
    ),
    "permission_missing": (
        "the API key has no permission for messages",
        "Use a standard API key, or allow it to read and write messages in the Twilio console.",
    ),
    "public_url_refused": (
        "Twilio refuses the public URL for status callbacks",
        "Set a public URL with a valid host name, without an underscore: "
        "`bullpen config set {account}.public_url`.",
    ),
    "test_credentials": (
        "these are test credentials, with which Twilio sends nothing",
        "Use the live credentials: `bullpen config set {account}.auth_token`.",
    ),
}

_LIMITS = {14107: 5.0, 20429: 5.0, 21611: 60.0, 63018: 5.0, 63038: 3600.0}
"""Seconds to wait, where Twilio says none."""
_ACCOUNT_LIMITS = frozenset({21611, 63038})
"""A full queue of the number, and the limit of a day. Others end with the next request."""

_UNDELIVERABLE = {
    21211: "the number is not valid",
    21214: "the number cannot be reached",
    21265: "the recipient is a short code",
    21408: "the account may not send to this country; allow it in the geo permissions",
    21608: "a trial account sends to verified numbers only",
    21612: "Twilio cannot reach this number from the sender's number",
    21614: "the number is not a mobile number",
    21635: "the number is a landline",
    30003: "the phone is off or out of reach",
    30004: "the recipient blocks messages",
    30005: "the number does not exist",
    30006: "the number is a landline or cannot be reached",
    63003: "the recipient is not on WhatsApp",
    63024: "the recipient is not on WhatsApp",
    63049: "WhatsApp chose not to deliver the message",
}

_REFUSED = {
    12300: "Twilio cannot send files of this type",
    21617: "the text is longer than 1600 characters",
    21620: "Twilio refuses the URL of the file",
    21656: "the variables of the template are invalid",
    30001: "the queue at Twilio is full",
    30007: "a carrier filtered the message as spam",
    30008: "the carrier gave no reason",
    30017: "the network of the carrier is congested",
    30034: "the number is not registered for A2P 10DLC",
    30036: "the time of the answer ran out in the queue at Twilio",
    63013: "the template or its variables break a rule of WhatsApp",
    63018: "WhatsApp limits the messages of this number",
}

_OPTED_OUT = "the person has sent STOP"
_WINDOW_CLOSED = "the person's last WhatsApp message is more than 24 hours old"


def failure(error: Exception, account: str) -> Exception:
    """What an exception of the SDK means: a failure, or that the account does not work.

    Nothing of the request is in its text, because URLs of requests have phone numbers.
    """
    if isinstance(error, SendFailed | ChannelDown):
        return error
    if isinstance(error, TwilioRestException | TwilioServiceException):
        return _answered(int(error.status), int(error.code or 0), account)
    if isinstance(error, TwilioException):
        # Lists raise this one, with the answer.
        for answer in error.args:
            if isinstance(answer, Response):
                return _answered(answer.status_code, _code_of(answer.text), account)
    if isinstance(error, requests.ConnectionError) and _never_connected(error):
        return NotSent("Twilio cannot be reached")
    return OutcomeUnknown(f"no valid answer from Twilio: {type(error).__name__}")


def undelivered(code: str) -> str:
    """The reason in a status callback, in words."""
    if not code.isdecimal():
        return "Twilio gave no reason"
    number = int(code)
    known = {**_UNDELIVERABLE, **_REFUSED, 21610: _OPTED_OUT, 63016: _WINDOW_CLOSED}
    if number in _DOWN:
        return f"{_REASONS[_DOWN[number]][0]} ({number})"
    return f"{known.get(number, 'Twilio did not deliver it')} ({number})"


def _answered(status: int, code: int, account: str) -> Exception:
    """What an error of Twilio's API means."""
    if code in _LIMITS or status == 429:
        return RateLimited(_LIMITS.get(code, 5.0), account=code in _ACCOUNT_LIMITS)
    if status >= 500 or (code < OWN_CODES and status not in (401, 403)):
        return OutcomeUnknown(f"Twilio answered with the HTTP status {status}")
    word = _DOWN.get(code) or ("credentials_refused" if status in (401, 403) else "")
    if word:
        reason, hint = _REASONS[word]
        return ChannelDown(word, f"{reason} ({code})", hint.format(account=account))
    if code == 21610:
        return OptedOut(_OPTED_OUT, str(code))
    if code == 63016:
        return WindowClosed(_WINDOW_CLOSED, str(code))
    if code in _UNDELIVERABLE:
        return Undeliverable(_UNDELIVERABLE[code], str(code))
    return Refused(_REFUSED.get(code, "Twilio refused the message"), str(code))


def _code_of(text: str) -> int:
    """The code in the body of an error; 0 if it is not one of Twilio's."""
    try:
        found: object = json.loads(text)
    except ValueError:
        return 0
    code: object = found.get("code") if isinstance(found, dict) else None
    return code if isinstance(code, int) else 0


def _never_connected(error: requests.ConnectionError) -> bool:
    """Whether the request certainly did not leave."""
    if isinstance(error, requests.ConnectTimeout | requests.exceptions.ProxyError):
        return True
    found = (NewConnectionError, ssl.SSLCertVerificationError)
    return any(isinstance(each, found) for each in _causes(error))


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The exception, and those that it was made of."""
    seen: set[int] = set()
    waiting: list[object] = [error]
    while waiting:
        each = waiting.pop()
        if isinstance(each, BaseException) and id(each) not in seen:
            seen.add(id(each))
            yield each
            waiting += [*each.args, getattr(each, "reason", None), each.__cause__]
