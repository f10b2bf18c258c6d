"""Answers for property tests: any characters, and pieces of markdown that stand badly together."""

# ruff: noqa: E501
from __future__ import annotations

from hypothesis import strategies as st

from tests.channels.text.corpus import CASES

_PIECES = [
    "a", "word ", "Sentence. ", "\n", "\n\n", "  ", "\t", "# ", "> ", "- ", "7. ", "    ", "```", "````",
    "```py\n", "~~~\n", "`", "``", "*", "**", "***", "_", "__", "~~", "|", "| a | b |\n|---|:-:|\n",
    "|---|\n", "[", "](", ")", "]", "![", "<", ">", "\\", "&", "&lt;", "&#x202e;", "https://x.com/a_b",
    "(https://u:p@x.com)", "[l](https://x.com/", "javascript:", "tg://user?id=1", "@everyone", "@bob",
    "/stop", "<@1>", "<!channel>", "</cmd:1>", "<br>", "---\n", "[ ] ", "日本", "「", "」。", "שלום",
    "👨‍👩‍👧‍👦", "🇩🇪", "❤️", "e\u0301", "\u202e", "\u2066", "\u200b", "\x00", "\x1b[1m", "\r\n", "\u2028",
    "\ud83d", "[r]: https://x.com\n", "[r]", "[^1]", "x" * 70, "y z " * 20,
]  # fmt: skip

characters = st.text(st.characters(exclude_categories=()), max_size=200)
pieces = st.lists(st.sampled_from(_PIECES), max_size=80).map("".join)
cases = st.sampled_from(sorted(text for text in CASES.values() if len(text) < 3_000))

markdown = st.one_of(pieces, pieces, characters, st.tuples(cases, pieces).map("".join))
"""Any answer."""
