"""Any answer can be rendered, and what is sent is what a platform accepts."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bullpen.channels.text.discord import render_discord
from bullpen.channels.text.plain import render_sms, render_whatsapp, segments
from bullpen.channels.text.slack import render_slack
from bullpen.channels.text.telegram import render_telegram
from bullpen.channels.text.tree import Document
from tests.channels.text.corpus import CASES
from tests.channels.text.live import elements
from tests.channels.text.platforms import utf16
from tests.channels.text.strategies import markdown

REFUSED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def rendered(document: Document) -> list[str]:
    slack = render_slack(document)
    return [
        json.dumps(slack.blocks, ensure_ascii=False).replace("\\t", "\t"),
        slack.text,
        render_telegram(document).text,
        render_discord(document),
        render_whatsapp(document),
        render_sms(document),
    ]


@given(markdown, st.integers(0, 200), st.integers(1, 200))
@settings(max_examples=150, deadline=None)
def test_any_answer_is_rendered_without_characters_that_a_platform_refuses(
    text: str, start: int, length: int
) -> None:
    for each in rendered(Document.parse(text).slice(start, start + length)):
        assert not REFUSED.search(each)
        assert len(each.encode("utf-8")) >= len(each)


@given(markdown, st.integers(0, 200), st.integers(1, 200))
@settings(max_examples=150, deadline=None)
def test_telegram_entities_are_inside_the_text_and_cut_no_character(
    text: str, start: int, length: int
) -> None:
    sent = render_telegram(Document.parse(text).slice(start, start + length))
    units = len(sent.text.encode("utf-16-le")) // 2
    for each in sent.entities:
        assert isinstance(each["offset"], int)
        assert isinstance(each["length"], int)
        assert each["length"] > 0
        assert 0 <= each["offset"] <= each["offset"] + each["length"] <= units
        utf16(sent.text, each["offset"], each["length"])  # fails in the middle of a pair


def test_telegram_entities_are_at_their_words_behind_emoji_and_broken_mentions() -> None:
    sent = render_telegram(Document.parse("😀 @alice /stop **bold** 👍🏽 `code` @bob _it_"))
    shown = [
        (each["type"], utf16(sent.text, each["offset"], each["length"])) for each in sent.entities
    ]
    assert shown == [("bold", "bold"), ("code", "code"), ("italic", "it")]


def test_code_cannot_end_its_fence() -> None:
    document = Document.parse("~~~~\n```\n@everyone\n`````\n~~~~")
    for text in (render_discord(document), render_whatsapp(document)):
        assert text.startswith("```")
        assert text.endswith("```")
        assert "```" not in text[3:-3]


def test_an_address_cannot_carry_a_mention() -> None:
    text = render_discord(Document.parse("https://x.com/@everyone [x](https://x.com/@here)"))
    assert text == "<https://x.com/%40everyone> [x](<https://x.com/%40here>)"


@given(markdown, st.integers(0, 200), st.integers(1, 200))
@settings(max_examples=150, deadline=None)
def test_slack_gets_no_empty_text_and_rows_of_one_length(
    text: str, start: int, length: int
) -> None:
    sent = render_slack(Document.parse(text).slice(start, start + length))
    assert bool(sent.blocks) == bool(sent.text)
    for each in elements(list(sent.blocks)):
        assert each.get("text") != ""
        assert each.get("elements") != []
        if each["type"] == "table":
            rows = each["rows"]
            assert isinstance(rows, list)
            assert len({len(row) for row in rows}) == 1
    assert sum(each["type"] == "table" for each in sent.blocks) <= 1


@pytest.mark.parametrize(
    "text", ["", " \n\t", "\u00a0\u3000", "\u200b\u2060", "\u2800\u3164", "-\n", "#"]
)
def test_a_text_that_nobody_can_see_renders_to_nothing(text: str) -> None:
    document = Document.parse(text)
    assert document.length == 0
    assert rendered(document) == ["[]", "", "", "", "", ""]


def test_an_answer_that_the_parser_fails_on_is_delivered_as_plain_text(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Broken:
        def parse(self, text: str, env: object) -> object:
            raise RecursionError

    monkeypatch.setattr("bullpen.channels.text.markdown._parser", Broken)
    document = Document.parse("**One** @everyone\n\n- two\x00\n\n \n\n# three")
    assert document.plain() == "**One** @everyone\n\n- two\ufffd\n\n# three"
    assert len(document.blocks) == 3
    assert render_discord(document).startswith("\\*\\*One\\*\\* @\u200beveryone\n\n\\- two")


def test_nothing_that_a_person_reads_is_lost_by_the_parser() -> None:
    """GFM drops cells beyond the header, the parser what is nested too deep, footnotes vanish."""
    text = (
        "| a | b |\n|---|---|\n| `x|y` | z | extra |\n\n[^1]: note\n\n"
        + ">" * 200
        + " quoted\n\n"
        + "- " * 100
        + "item"
    )
    plain = Document.parse(text).plain()
    for each in ("x|y", "z", "extra", "note", "quoted", "item"):
        assert each in plain


@pytest.mark.parametrize(
    "text",
    ["2*3*4", "a*b*c", "x**2 + y**2", "__init__", "snake_case_name", "~5 min", "f(*a, **kw)"],
)
def test_code_and_arithmetic_without_backticks_keep_their_characters(text: str) -> None:
    assert Document.parse(text).text == text
    assert Document.parse(f"see {text} there").text == f"see {text} there"


def test_discord_shows_what_the_answer_says() -> None:
    """Read back as markdown, the escaped text has the characters of the answer."""
    for name in ("literal markup", "emphasis", "CJK emphasis", "backticks", "headings"):
        document = Document.parse(CASES[name])
        again = Document.parse(render_discord(document).replace("\u200b", " "))
        assert re.sub(r"\s+", "", again.text) == re.sub(r"\s+", "", document.text), name


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("", 1), ("x" * 160, 1), ("x" * 161, 2), ("x" * 306, 2), ("x" * 307, 3), ("€" * 80, 1),
        ("€" * 81, 2), ("日" * 70, 1), ("日" * 71, 2), ("日" * 134, 2), ("日" * 135, 3),
        ("😀" * 35, 1),
        ("😀" * 36, 2), ("é" * 160, 1), ("`" * 71, 2), ("x" * 152 + "€" + "x" * 152, 3),
    ],
)  # fmt: skip
def test_segments_are_counted_as_they_are_charged(text: str, count: int) -> None:
    assert segments(text) == count


def test_sms_is_folded_only_if_that_saves_money() -> None:
    assert render_sms(Document.parse("“It’s” – fine…")) == '"It\'s" - fine...'
    assert render_sms(Document.parse("“日本”")) == "“日本”"


@pytest.mark.parametrize(
    ("markdown", "text"),
    [
        ("**b** _i_ ~~s~~", "*b* _i_ ~s~"),
        ("un**believ**able", "un**believ**able"),
        ("日**本**語", "日本語"),
        ("**a**, **b**.", "*a*, *b*."),
        ("**two\nlines**", "two\nlines"),
        ("**a\\*b**", "a*b"),
        ("`code`", "`code`"),
        ("```\ncode\n```", "```code```"),
    ],
)
def test_whatsapp_has_markers_only_where_it_reads_them(markdown: str, text: str) -> None:
    assert render_whatsapp(Document.parse(markdown)) == text
