"""Places and times as people write them."""

from __future__ import annotations

import pytest

from bullpen.core.clock import DAY, MINUTE, SECOND, format_interval, parse_duration, parse_time
from bullpen.core.errors import BadPlace, BadSchedule
from bullpen.core.message import ReplyTo
from bullpen.core.outbox.addresses import NOWHERE, DeliveryAddress, parse_address
from bullpen.core.settings import Settings


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("nowhere", NOWHERE),
        ("owner", DeliveryAddress("cli")),
        ("telegram:123", DeliveryAddress("telegram", "123", ReplyTo("123"))),
        ("telegram:-100123/7", DeliveryAddress("telegram", "-100123", ReplyTo("-100123", "7"))),
        ("slack:C0123456789", DeliveryAddress("slack", "C0123456789", ReplyTo("C0123456789"))),
        ("discord:123456789012345678",
         DeliveryAddress("discord", "123456789012345678", ReplyTo("123456789012345678"))),
        ("sms:+491701234567", DeliveryAddress("sms", "+491701234567")),
        ("whatsapp:+491701234567", DeliveryAddress("whatsapp", "+491701234567")),
        ("cli", DeliveryAddress("cli")),
        ("cli:", DeliveryAddress("cli")),
        ("web:ann", DeliveryAddress("web", "ann")),
    ],
)  # fmt: skip
def test_places_are_read_and_written_alike(text: str, place: DeliveryAddress) -> None:
    assert parse_address(text, Settings()) == place
    assert parse_address(str(place), Settings()) == place


@pytest.mark.parametrize(
    "text",
    [
        *("", "here", "telegram", "telegram:", "telegram:ann", "telegram:0", "telegram:1/x"),
        *("slack:general", "slack:C0123456789/x", "discord:12", "sms:0170", "sms:+49 170"),
        *("carrier-pigeon:7", "telegram:1\n", "telegram:٣", "web:a b", "sms:+491701234567/1"),
        *("telegram:" + "1" * 5000, "telegram:tinyagi-schedule:x", "slack:\x1fC0123456789"),
    ],
)
def test_an_address_that_its_channel_cannot_read_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(BadPlace) as caught:
        parse_address(text, Settings())
    assert ":" in caught.value.hint or "nowhere" in caught.value.hint


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("30m", 30 * MINUTE),
        ("1h30m", 90 * MINUTE),
        (" 2 D ", 2 * DAY),
        ("1w", 7 * DAY),
        ("90s", 90 * SECOND),
    ],
)
def test_lengths_of_time(text: str, milliseconds: int) -> None:
    assert parse_duration(text) == milliseconds
    assert parse_duration(format_interval(milliseconds)) == milliseconds


@pytest.mark.parametrize(
    "text", ["", "m", "30", "-5m", "1.5h", "5 minutes", "1h 2x", "9" * 400 + "h"]
)
def test_what_is_no_length_of_time_is_refused(text: str) -> None:
    with pytest.raises(BadSchedule):
        parse_duration(text)


def test_moments_have_an_offset_or_a_zone() -> None:
    assert parse_time("2026-12-24T18:00Z", "Europe/Berlin") == parse_time(
        "2026-12-24T19:00", "Europe/Berlin"
    )
    assert parse_time("2026-12-24 18:00+01:00", "UTC") == parse_time("2026-12-24T17:00", "UTC")


@pytest.mark.parametrize(
    "text", ["", "tomorrow", "2026-13-01", "25:00", "0000-00-00T00:00", "9" * 400]
)
def test_what_is_no_moment_is_refused(text: str) -> None:
    with pytest.raises(BadSchedule):
        parse_time(text, "UTC")
