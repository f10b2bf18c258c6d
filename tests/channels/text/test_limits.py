"""What is sent stays within each platform's limits, counted apart from the predicates `fits_…`."""

from __future__ import annotations

import json

import pytest

from bullpen.channels.text.discord import fits_discord, render_discord
from bullpen.channels.text.plain import fits_sms, fits_whatsapp, render_sms, render_whatsapp
from bullpen.channels.text.slack import fits_slack, render_slack
from bullpen.channels.text.telegram import fits_telegram, render_telegram
from bullpen.channels.text.tree import Document
from tests.channels.text.corpus import CASES
from tests.channels.text.live import elements
from tests.channels.text.platforms import parts

LONG = {
    **CASES,
    "many rows": "| a | b |\n|---|---|\n" + "| x | y |\n" * 400,
    "many rules": "text\n\n---\n\n" * 120,
    "many tables": "| a |\n|---|\n| 1 |\n\ntext\n\n" * 60,
    "many items": "- item\n" * 1_200,
    "many links": "[label](https://example.com/a/long/path/to/something) " * 300,
    "emoji": "👍🏽 " * 3_000,
}


def units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


@pytest.mark.parametrize("name", LONG)
def test_slack_accepts_each_part(name: str) -> None:
    for part in parts(Document.parse(LONG[name]), fits_slack):
        sent = render_slack(part)
        assert len(sent.blocks) <= 50
        assert len(sent.text) < 4_000
        found = list(elements(list(sent.blocks)))
        tables = [each for each in found if each["type"] == "table"]
        assert len(tables) <= 1
        for table in tables:
            rows = table["rows"]
            assert isinstance(rows, list)
            assert len(rows) <= 100
            assert all(len(row) <= 20 for row in rows)
        written = [str(each[key]) for each in found for key in ("text", "url") if key in each]
        assert sum(len(each) for each in written) <= 10_000
        assert all(len(str(each.get("url", ""))) <= 3_000 for each in found)
        assert len(json.dumps(sent.blocks)) < 200_000


@pytest.mark.parametrize("name", LONG)
def test_telegram_accepts_each_part(name: str) -> None:
    for part in parts(Document.parse(LONG[name]), fits_telegram):
        sent = render_telegram(part)
        assert units(sent.text) <= 4_096
        assert len(sent.entities) <= 100


@pytest.mark.parametrize("name", LONG)
def test_discord_whatsapp_and_sms_accept_each_part(name: str) -> None:
    document = Document.parse(LONG[name])
    assert all(units(render_discord(each)) <= 2_000 for each in parts(document, fits_discord))
    assert all(units(render_whatsapp(each)) <= 1_600 for each in parts(document, fits_whatsapp))
    assert all(units(render_sms(each)) <= 1_600 for each in parts(document, fits_sms))
