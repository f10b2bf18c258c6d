"""The time for an answer grows with its length, whatever is in it."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from bullpen.channels.text.tree import Document
from tests.channels.text.platforms import PLATFORMS, split

HOSTILE: dict[str, Callable[[int], str]] = {
    "open brackets": lambda n: "[" * n,
    "open images": lambda n: "![" * (n // 2),
    "open links": lambda n: "[a](" * (n // 4),
    "closed brackets": lambda n: "[" * (n // 2) + "]" * (n // 2),
    "emphasis": lambda n: "_a_" * (n // 3),
    "stars": lambda n: "*a **b " * (n // 7),
    "backticks": lambda n: "".join("`" * (each % 200) + " " for each in range(n // 100)),
    "quotes": lambda n: ">" * n,
    "list in one line": lambda n: "- " * (n // 2),
    "short items": lambda n: "- a\n" * (n // 4),
    "rows": lambda n: "|a|\n|-|\n" + "|1|\n" * (n // 4),
    "one row": lambda n: f"|{'a|' * (n // 8)}\n|{'-|' * (n // 8)}\n|{'1|' * (n // 4)}\n",
    "pipes": lambda n: "|\n" * (n // 2),
    "one word": lambda n: "x" * n,
    "one address": lambda n: "https://x.com/" + ")" * n,
    "addresses": lambda n: "https://x.com/a_b " * (n // 18),
    "links": lambda n: "[l _b_](https://x.com/) " * (n // 24),
    "definitions": lambda n: "[a]: x\n" * (n // 7),
    "combining marks": lambda n: "e" + "\u0301" * n,
    "spans in a cell": lambda n: f"|a|\n|-|\n|{'_x_ ' * (n // 4)}|\n",
}


def seconds(text: str) -> float:
    begin = time.process_time()
    document = Document.parse(text)
    for platform in PLATFORMS[2:3]:
        for _ in split(document, platform.fits):
            pass
    return time.process_time() - begin


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_answers_take_linear_time(name: str) -> None:
    """Eight times the text may take up to 24 times as long; square time would be 64."""
    small, large = HOSTILE[name](4_000), HOSTILE[name](32_000)
    first = min(seconds(small) for _ in range(3))
    for _ in range(3):
        if seconds(large) < 0.1 + 24 * first:
            return
    pytest.fail(f"{first:.3f} s for 4 000 characters, {seconds(large):.3f} s for 32 000")


def test_an_answer_of_140_kb_is_split_in_about_half_a_second() -> None:
    page = (
        "## Heading\n\nA paragraph with **bold** text, `code` and a [link](https://example.com). "
        + "It goes on for a while. " * 12
        + "\n\n- one\n- two\n  - three\n\n```py\nprint(1)\n```\n\n"
        + "| a | b |\n|---|---|\n| 1 | 2 |\n\n"
    )
    text = (page * (140_000 // len(page) + 1))[:140_000]
    assert min(seconds(text) for _ in range(3)) < 3  # 0.6 s on an idle machine
