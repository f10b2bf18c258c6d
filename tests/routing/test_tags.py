"""Tags: no text is lost, nothing in code is a tag, a stray bracket costs only itself."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bullpen.core.routing.tags import (
    Tag,
    TagKind,
    code_spans,
    parse_tags,
    render_tags,
    text_outside_tags,
)

FRAGMENTS = (
    *("[@a: ", "[#r: ", "[@a,b: ", "[send_file: ", "[@", "[", "]", "]", "]", "\\[", "\\]", "\\"),
    *("`", "``", "```\n", "~~~\n", "\n", "\n\n", " ", "x", ":", ",", "@", "é"),
)
texts = st.lists(st.sampled_from(FRAGMENTS), max_size=40).map("".join) | st.text()
plain = st.text("ab :@#,.\n", max_size=6)
balanced = st.recursive(
    plain, lambda inner: st.lists(plain | inner.map("[{}]".format), max_size=4).map("".join)
)
unbalanced = st.lists(
    st.sampled_from(("[@b: ", "[#r: ", "[", "]", "[x]", " y ", "\n")), max_size=20
).map("".join)


def tags(text: str) -> list[Tag]:
    """The tags of a text."""
    return [each for each in parse_tags(text) if isinstance(each, Tag)]


def said(text: str) -> list[tuple[str, str]]:
    """Who is told what."""
    return [(",".join(f"{tag.kind}{name}" for name in tag.to), tag.text) for tag in tags(text)]


def source(text: str) -> str:
    """The text, put together again."""
    return "".join(each if isinstance(each, str) else each.source for each in parse_tags(text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[@coder: fix it]", [("@coder", "fix it")]),
        ("[@coder:fix it]", [("@coder", "fix it")]),
        ("[@coder:\n  fix\n\n  it\n]", [("@coder", "fix\n\n  it")]),
        ("[@coder,reviewer: x]", [("@coder,@reviewer", "x")]),
        ("[@ coder , reviewer : x]", [("@coder,@reviewer", "x")]),
        ("[@coder, @reviewer: x]", [("@coder,@reviewer", "x")]),
        ("[@coder, , reviewer,: x]", [("@coder,@reviewer", "x")]),
        ("[@Code Wizard: x]", [("@Code Wizard", "x")]),
        ("[@Zoë: at 10:30: x]", [("@Zoë", "at 10:30: x")]),
        ("[#dev: x]", [("#dev", "x")]),
        ("[#dev, #ops: x]", [("#dev,#ops", "x")]),
        (f"[@{'n' * 64}: x]", [("@" + "n" * 64, "x")]),
    ],
)
def test_a_tag_is_read_as_it_is_meant(text: str, expected: list[tuple[str, str]]) -> None:
    assert said(text) == expected
    assert [tag.source for tag in tags(text)] == [text]


@pytest.mark.parametrize(
    "text", ["[send_file: a b.pdf ]", "[SEND_FILE:a b.pdf]", "[Send_File: a b.pdf]"]
)
def test_a_file_is_sent_by_its_path(text: str) -> None:
    assert parse_tags(text) == (Tag(TagKind.FILE, (), "a b.pdf", text),)


@pytest.mark.parametrize(
    "text",
    [
        *("", "hello", "@coder: x", "[coder: x]", "[@coder]", "[ @coder: x]", "[@coder: x"),
        *("[@x](http://example.org)", "[@x]: http://example.org", "[^1]: x", "[#12]", "[#12](u)"),
        *("[@coder:]", "[@coder: \n ]", "[@: x]", "[@ , @: x]", "[#: x]", "[send_file: ]"),
        *(f"[@{'n' * 65}: x]", "[@co\nder: x]", "[@co`der: x]", "[@co[der: x", "[sendfile: x]"),
        *("\\[@a: x]", "\\[@a: x\\]", "\\\\\\[@a: x]", "[@a: x\\["),
    ],
)
def test_what_is_no_tag_stays_text(text: str) -> None:
    assert parse_tags(text) == ((text,) if text else ())


def test_two_tags_to_one_agent_both_arrive() -> None:
    assert said("[@a: one] and [@a: two]") == [("@a", "one"), ("@a", "two")]


def test_the_text_between_the_tags_stands_where_it_stood() -> None:
    first, second = tags("[@a: x][#b: y]")
    assert parse_tags("so [@a: x][#b: y] it is") == ("so ", first, second, " it is")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[@a: x[0] = [[1], [2]]]", [("@a", "x[0] = [[1], [2]]")]),
        ("[@a: ask [@b: why?] first] [@b: hi]", [("@a", "ask [@b: why?] first"), ("@b", "hi")]),
        ("[see [@a: x]]", [("@a", "x")]),
        (r"[@a: from \] to \[ it]", [("@a", r"from \] to \[ it")]),
        (r"[@a: a path\\] [@b: y]", [("@a", r"a path\\"), ("@b", "y")]),
        ("[@a: []]", [("@a", "[]")]),
    ],
)
def test_brackets_that_balance_belong_to_the_tag(
    text: str, expected: list[tuple[str, str]]
) -> None:
    assert said(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "[@coder: use [a-z to match] [@tester: test it]",
            [("@coder", "use [a-z to match"), ("@tester", "test it")],
        ),
        ("[@a: one ] two] [@b: y]", [("@a", "one"), ("@b", "y")]),
        ("[@a: never closed [@b: y]", [("@b", "y")]),
        ("[@a: x [@b: y [@c: z]", [("@c", "z")]),
        ("[@a: x [ y] z [@b: y [ z]", [("@a", "x [ y"), ("@b", "y [ z")]),
        ("] ]] [ [@a: x] [", [("@a", "x")]),
        # A tag in brackets that balance stands within, also if the tag around it is not closed.
        ("[@a: x [ y [z [@c: in] z] [@b: y]", [("@a", "x [ y [z [@c: in] z"), ("@b", "y")]),
        # Better an end in code than no tag.
        ("[@a: use `x[1]` please [@b: y]", [("@a", "use `x[1"), ("@b", "y")]),
        (r"[@a: a \] b [@b: y]", [("@a", "a \\"), ("@b", "y")]),
        # No tag, as it says nothing: it ends none either.
        ("[@a: x [ [@b: ] y]", [("@a", "x [ [@b: ] y")]),
    ],
)
def test_one_stray_bracket_loses_nothing(text: str, expected: list[tuple[str, str]]) -> None:
    assert said(text) == expected
    assert source(text) == text


@given(unbalanced)
def test_whatever_brackets_came_before_a_tag_arrives(text: str) -> None:
    assert tags(f"{text}[@last: it]")[-1].source == "[@last: it]"


@given(balanced)
def test_a_body_that_balances_comes_back_whole(body: str) -> None:
    text = f"[[@a: {body}] [@b,c: {body}]"
    expected = [("@a", body.strip()), ("@b,@c", body.strip())] if body.strip() else said(text)
    assert said(text) == expected


@given(texts)
def test_nothing_of_any_text_is_lost(text: str) -> None:
    assert source(text) == text
    for tag in tags(text):
        assert tag.text
        assert all(0 < len(name) <= 64 for name in tag.to)
        assert bool(tag.to) is (tag.kind is not TagKind.FILE)


@given(texts)
def test_spans_of_code_are_in_order_and_apart(text: str) -> None:
    ends = [end for span in code_spans(text) for end in span]
    assert ends == sorted(ends)
    assert all(text[start:end].strip(" ")[0] in "`~" for start, end in code_spans(text))


CODE = [
    "`[@a: x]`",
    "``a ` [@a: x] ` b``",
    "`one\n[@a: x]`",
    "```\n[@a: x]\n```",
    "```py\n[@a: x]\n\n``\n~~~\n````",
    "   ~~~ a `tick`\n[@a: x]\n  ~~~~ ",
    "````\n```\n[@a: x]\n````",
    "```\n[@a: x]\n``` no end",
    "~~~\nnever closed [@a: x]",
    "```\r\n[@a: x]\r\n```",
]


@pytest.mark.parametrize("code", CODE)
def test_nothing_in_code_is_a_tag(code: str) -> None:
    assert tags(code) == []
    assert tags(f"so:\n{code}") == []
    assert code_spans(code) == ((0, len(code)),)


@pytest.mark.parametrize("code", CODE)
def test_code_in_a_tag_stays_in_its_text(code: str) -> None:
    body = f"]{code}[".strip("][")
    closed = "never closed" not in code and "no end" not in code
    text = f"[@b: see\n{body}\nso]" if closed else f"[@b: see] \n{body}"
    assert said(text) == [("@b", f"see\n{body}\nso" if closed else "see")]


@pytest.mark.parametrize("code", ["`]`", "``[ ` [``", "```\n]]\n```", "~~~\n[\n~~~"])
def test_brackets_in_code_do_not_count(code: str) -> None:
    assert said(f"[@a: see\n{code}\nso] [@b: y]") == [("@a", f"see\n{code}\nso"), ("@b", "y")]


@pytest.mark.parametrize(
    "text",
    [
        *("` [@a: x]", "`` [@a: x] `", "` one\n\n[@a: x] `", "` one\n \t\n[@a: x] `"),
        *("\\`[@a: x]\\`", "``` `x` ```[@a: x]", "    ```\n[@a: x]", "x ~~~\n[@a: x]"),
        *(
            "```\ncode\n   ``` \n[@a: x]",
            "```\n``` x\n~~~\n```\n[@a: x]",
            "` one\n```\ncode`\n```\n[@a: x]`",
        ),
    ],
)
def test_what_is_not_closed_is_no_code(text: str) -> None:
    assert said(text) == [("@a", "x")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[@a: x]", ""),
        ("Do this.\n\n[@a: x]\n\nThen that.\n\n[#b: y]", "Do this.\n\nThen that."),
        ("a\n\n\n\nb [@a: x]", "a\n\nb"),
        ("```\na\n\n\n\nb\n```\n\n\n\n[send_file: x]\n\nc", "```\na\n\n\n\nb\n```\n\nc"),
    ],
)
def test_what_is_outside_is_said_to_all(text: str, expected: str) -> None:
    assert text_outside_tags(parse_tags(text)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("  as it\n\n\n is ", "  as it\n\n\n is "),
        ("So: [@coder, reviewer: do it] ok", "So: @ada → @coder, @reviewer: do it ok"),
        ("[#dev: done]\n", "@ada → #dev: done\n"),
        ("see [send_file: x] there", "see there"),
        ("see[send_file: x]there", "seethere"),
        ("[send_file: x]", ""),
        (" [send_file: x]\n\nhello", "hello"),
        ("  hello [send_file: x] \n", "  hello"),
        ("a\n[send_file: x]\nb", "a\nb"),
        ("a\n\n[send_file: x]\n[send_file: y]\n\nb", "a\n\nb"),
        ("a [send_file: x]\n\n\n- b\n  - c", "a\n\n- b\n  - c"),
        ("- a\n  [send_file: x]\n  - c", "- a\n  - c"),
        ("[send_file: x] [@b: y] [send_file: z]", "@ada → @b: y"),
    ],
)
def test_people_read_who_says_what_to_whom(text: str, expected: str) -> None:
    assert render_tags(parse_tags(text), "ada") == expected


@given(texts)
def test_any_text_can_be_shown(text: str) -> None:
    segments = parse_tags(text)
    text_outside_tags(segments)
    shown = render_tags(segments, "ada")
    if not tags(text):
        assert shown == text


SIZE = 1 << 19
HEAVY = (
    *("[", "[@a: ", "[@a: x] ", "[@a: [x ", "[@a: x [b] ", "[][@a: ", "[@a:\n", "[@a,", "[@"),
    *("` ", "\\", "```\n", "[@a: `]", "\n", "a\n\n"),
)


def _seconds(text: str) -> float:
    """What one parse takes; of this process's time, as others keep the machine busy."""
    start = time.process_time()
    parse_tags(text)
    return time.process_time() - start


@pytest.mark.parametrize(
    "text",
    [
        *(each * (SIZE // len(each)) for each in HEAVY),
        " ".join("`" * length for length in range(1, 1024)),
        "[@a:" + " " * SIZE,
        "[@a: " * (SIZE // 6) + "]" * (SIZE // 6),
    ],
    ids=[*map(repr, HEAVY), "runs", "spaces", "deep"],
)
def test_eight_times_the_text_takes_about_eight_times_the_time(text: str) -> None:
    part = text[: len(text) // 8]
    small = min(_seconds(part) for _ in range(3))
    # Quadratic would be 64 times. The best of three counts; mostly the first is good enough.
    assert any(_seconds(text) < 20 * small + 0.05 for _ in range(3))
