"""Text of a model never becomes a mention, a command or a link to elsewhere, on any platform."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bullpen.channels.text.plain import render_sms, render_whatsapp
from bullpen.channels.text.tree import Document, Paragraph
from tests.channels.text.corpus import CASES
from tests.channels.text.live import live_on_discord, live_on_slack, live_on_telegram
from tests.channels.text.platforms import PLATFORMS, parts
from tests.channels.text.strategies import markdown


def links(document: Document) -> list[tuple[str, str]]:
    """The labels and addresses of a document of paragraphs."""
    paragraphs = [each for each in document.blocks if isinstance(each, Paragraph)]
    return [
        (span.text, span.link) for each in paragraphs for span in each.inline.spans if span.link
    ]


@pytest.mark.parametrize("name", CASES)
def test_no_part_of_a_hostile_answer_is_live(name: str) -> None:
    document = Document.parse(CASES[name])
    for platform, live in zip(
        PLATFORMS, (live_on_slack, live_on_telegram, live_on_discord), strict=False
    ):
        for part in parts(document, platform.fits):
            assert not live(part), platform.name


@given(markdown, st.integers(0, 300), st.integers(1, 300))
@settings(max_examples=150, deadline=None)
def test_no_part_of_any_answer_is_live(text: str, start: int, length: int) -> None:
    document = Document.parse(text).slice(start, start + length)
    assert not live_on_slack(document)
    assert not live_on_telegram(document)
    assert not live_on_discord(document)


@pytest.mark.parametrize(
    "markdown",
    ["[x](javascript:alert(1))", "[x](JaVaScRiPt:alert(1))", "[x](&#106;avascript:alert(1))",
     "![x](javascript:alert(1))", "<javascript:alert(1)>", "[x](java\tscript:alert(1))",
     "[x](tg://user?id=1)", "[x](vbscript:y)", "[x](//evil.com)", "[x](https:evil.com)",
     "[x](https://)", "[x](mailto:)"],
)  # fmt: skip
def test_what_is_no_web_or_mail_address_is_no_link(markdown: str) -> None:
    assert links(Document.parse(markdown)) == []


@pytest.mark.parametrize(
    ("markdown", "address"),
    [
        ("https://user:secret@host.com/x", "https://host.com/x"),
        ("[x](https://user:secret@host.com/x)", "https://host.com/x"),
        ("<https://user:secret@host.com/x>", "https://host.com/x"),
        ("https://bank.com@evil.com/", "https://evil.com/"),
        ("[https://u:secret@host.com](https://u:secret@host.com)", "https://host.com"),
    ],
)
def test_credentials_in_addresses_are_dropped(markdown: str, address: str) -> None:
    text = render_whatsapp(Document.parse(markdown))
    assert address in text
    assert "secret" not in text
    assert "bank" not in text


@pytest.mark.parametrize(
    "label",
    ["https://bank.com", "bank.com", "BANK.COM/login", "**bank**.com", "see bank.com",
     "bank\u200b.com",
     "bank\uff0ecom", "https://bank.com\u2066", "bank.com:443", "evil.com.bank.com"],
)  # fmt: skip
def test_a_label_that_is_another_address_does_not_hide_the_real_one(label: str) -> None:
    document = Document.parse(f"[{label}](https://evil.com/x)")
    for rendered in (render_sms(document), render_whatsapp(document)):
        assert "https://evil.com/x" in rendered
    assert links(document) == [("https://evil.com/x", "https://evil.com/x")]


@pytest.mark.parametrize("label", ["docs", "Node.js", "www.evil.com", "evil.com/x", "v1.2", "e.g."])
def test_an_honest_label_stays_a_link(label: str) -> None:
    document = Document.parse(f"[{label}](https://evil.com/x)")
    assert links(document) == [(label, "https://evil.com/x")]
