"""Parts fit, end at good places, and lose and repeat nothing, whoever splits the rest."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bullpen.channels.text.discord import render_discord
from bullpen.channels.text.plain import render_sms, render_whatsapp
from bullpen.channels.text.split import next_end
from bullpen.channels.text.tree import Code, Document, Item, Paragraph, Row
from tests.channels.text.corpus import CASES, FAMILY
from tests.channels.text.platforms import PLATFORMS, Platform, parts, split
from tests.channels.text.strategies import markdown

Fits = Callable[[Document], bool]


def in_characters(limit: int) -> Fits:
    return lambda document: len(render_whatsapp(document)) <= limit


LIMITS = st.one_of(
    st.integers(300, 2_000).map(in_characters), st.sampled_from([each.fits for each in PLATFORMS])
)


def squeezed(text: str) -> str:
    return re.sub(r"\s+", "", text)


@given(markdown, LIMITS)
@settings(max_examples=150, deadline=None)
def test_parts_fit_and_together_are_the_whole(text: str, fits: Fits) -> None:
    document = Document.parse(text)
    ends = list(split(document, fits))
    pieces = parts(document, fits)
    assert ends == sorted(set(ends))
    assert (ends or [0])[-1] == document.length
    assert all(fits(each) for each in pieces)
    assert "".join(each.text for each in pieces) == document.text
    assert squeezed("".join(each.plain() for each in pieces)) == squeezed(document.plain())


@given(markdown, LIMITS, LIMITS, st.integers(0, 20))
@settings(max_examples=150, deadline=None)
def test_what_is_delivered_is_not_sent_again_after_an_upgrade_that_splits_otherwise(
    text: str, before: Fits, after: Fits, delivered: int
) -> None:
    document = Document.parse(text)
    ends = list(split(document, before))[:delivered]
    upto = ends[-1] if ends else 0
    rest = list(split(document, after, upto))
    borders = [0, *ends, *rest]
    pieces = [document.slice(*each) for each in pairwise(borders)]
    assert "".join(each.text for each in pieces) == document.text


@given(markdown, *4 * [st.integers(0, 120)])
@settings(max_examples=150, deadline=None)
def test_a_slice_of_a_slice_is_a_slice(text: str, a: int, b: int, c: int, d: int) -> None:
    document = Document.parse(text)
    once = document.slice(a, a + b)
    assert once.text == document.text[a : a + b]
    assert once.slice(c, c + d) == document.slice(a + c, min(a + c + d, a + b))


@pytest.mark.parametrize("platform", PLATFORMS, ids=lambda each: each.name)
@pytest.mark.parametrize("name", CASES)
def test_hostile_answers_are_split_within_the_limits(platform: Platform, name: str) -> None:
    document = Document.parse(CASES[name])
    pieces = parts(document, platform.fits)
    assert all(platform.fits(each) for each in pieces)
    assert "".join(each.text for each in pieces) == document.text
    if platform.fits(document):
        assert len(pieces) <= 1


@pytest.mark.parametrize(
    ("name", "character", "most"),
    [
        ("slack", "x", 10_000), ("slack", "é", 10_000), ("slack", "😀", 10_000),
        ("telegram", "x", 4_096), ("telegram", "é", 4_096), ("telegram", "😀", 2_048),
        ("discord", "x", 2_000), ("discord", "日", 2_000), ("discord", "😀", 1_000),
        ("whatsapp", "x", 1_600), ("whatsapp", "é", 1_600), ("whatsapp", "😀", 800),
        ("sms", "x", 1_600), ("sms", "日", 1_600), ("sms", "😀", 800),
    ],
)  # fmt: skip
def test_a_text_at_the_limit_is_one_part_and_one_more_is_two(
    name: str, character: str, most: int
) -> None:
    (fits,) = (each.fits for each in PLATFORMS if each.name == name)
    counts = [len(parts(Document.parse(character * n), fits)) for n in (most - 1, most, most + 1)]
    assert counts == [1, 1, 2]


def test_a_part_ends_between_paragraphs_if_that_costs_less_than_half_of_it() -> None:
    document = Document.parse(f"{'First one. ' * 60}\n\n{'Second one. ' * 60}")
    (first, *_) = document.blocks
    assert next_end(document, 0, in_characters(1_000)) == first.length
    assert next_end(document, 0, in_characters(1_350)) < first.length + 700
    short = Document.parse(f"Intro.\n\n{'A sentence. ' * 200}")
    assert next_end(short, 0, in_characters(1_000)) > 900


@pytest.mark.parametrize(
    ("text", "ends"),
    [
        ("one two three\nfour five six", "one two three\n"),
        ("One two three. Four five six", "One two three. "),
        ("onetwothree fourfive sixseveneight", "onetwothree fourfive "),
        ("x" * 100, "x" * 24),
    ],
)
def test_a_paragraph_ends_at_a_line_a_sentence_a_space_or_anywhere(text: str, ends: str) -> None:
    document = Document.parse(text)
    assert document.text[: next_end(document, 0, in_characters(24))] == ends


def test_a_heading_stays_with_what_it_is_about() -> None:
    document = Document.parse(f"{'Words. ' * 100}\n\n## Heading\n\n{'More. ' * 100}")
    pieces = parts(document, in_characters(720))
    assert isinstance(pieces[1].blocks[0], Paragraph)
    assert pieces[1].blocks[0].level == 2


@pytest.mark.parametrize(
    "cluster", [FAMILY, "🇩🇪", "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "❤️", "👍🏽", "e\u0301\u0323", "각", "1️⃣", "கி"]
)
def test_no_cut_is_inside_what_people_see_as_one_character(cluster: str) -> None:
    document = Document.parse(cluster * 300)
    for limit in range(40, 90, 7):
        for end in split(document, in_characters(limit)):
            assert end % len(cluster) == 0


def test_a_cluster_without_end_is_cut_nevertheless() -> None:
    document = Document.parse("e" + "\u0301" * 5_000)
    assert all(len(each.text) <= 1_600 for each in parts(document, in_characters(1_600)))


def test_a_fence_that_is_cut_is_closed_and_opened_again_with_its_language() -> None:
    lines = "\n".join(f"    line {n}" for n in range(100))
    pieces = parts(Document.parse(f"```python\n{lines}\n```"), in_characters(500))
    assert len(pieces) > 2
    for each in pieces:
        (code,) = each.blocks
        assert isinstance(code, Code)
        assert code.language == "python"
        rendered = render_discord(each)
        assert rendered.startswith("```python\n    line ")
        assert rendered.endswith("\n```")


def test_a_list_that_is_cut_keeps_its_numbers_and_repeats_no_marker() -> None:
    document = Document.parse("".join(f"{n}. {'word ' * 30}\n" for n in range(7, 20)))
    rendered = [render_sms(each) for each in parts(document, in_characters(400))]
    numbers = re.findall(r"^(\d+)\. ", "\n".join(rendered), re.MULTILINE)
    assert numbers == [str(n) for n in range(7, 20)]
    (item,) = document.slice(200, 210).blocks[0].inside
    assert item == Item(8)


def test_an_item_that_is_cut_repeats_no_marker() -> None:
    document = Document.parse(f"7. {'word ' * 200}\n8. end")
    rendered = [render_sms(each) for each in parts(document, in_characters(400))]
    assert len(rendered) > 2
    assert rendered[0].startswith("7. word")
    assert all(each.startswith("word") for each in rendered[1:-1])


def test_a_part_of_an_address_is_not_a_link() -> None:
    document = Document.parse(f"https://example.com/{'a' * 900}")
    for piece in parts(document, in_characters(400)):
        (block,) = piece.blocks
        assert isinstance(block, Paragraph)
        assert not any(each.link for each in block.inline.spans)


def test_no_part_is_blank_because_the_text_after_the_blank_lines_is_long() -> None:
    """Platforms refuse an empty message."""
    blank_lines = "\n" * 12_000
    document = Document.parse(f"```\n{blank_lines}{'x' * 13_000}{blank_lines}{'y' * 13_000}\n```")
    for platform in PLATFORMS:
        assert all(each.text.strip() for each in parts(document, platform.fits))


def test_a_table_that_is_cut_repeats_its_header() -> None:
    rows = "".join(f"| name {n} | {n} |\n" for n in range(60))
    pieces = parts(Document.parse(f"| Name | Size |\n|---|---|\n{rows}"), in_characters(600))
    assert len(pieces) > 1
    for each in pieces:
        assert render_discord(each).startswith("```\nName    | Size\n")
    rows_of = [row for each in pieces for row in each.blocks if isinstance(row, Row)]
    assert len(rows_of) == 61


@pytest.mark.parametrize("platform", PLATFORMS, ids=lambda each: each.name)
@pytest.mark.parametrize("cluster", [FAMILY, "e\u0301\u0323", "❤️", "🇩🇪"])
def test_parts_of_the_platforms_begin_with_a_whole_character(
    platform: Platform, cluster: str
) -> None:
    document = Document.parse(cluster * (30_000 // len(cluster)))
    ends = list(split(document, platform.fits))
    assert [each % len(cluster) for each in ends] == [0] * len(ends)
    shortest = min(b - a for a, b in pairwise([0, *ends[:-1]]))
    assert not platform.fits(document.slice(0, shortest + len(cluster))), "the space is used"
