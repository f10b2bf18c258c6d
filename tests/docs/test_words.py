"""Bullpen's texts use plain technical English: none of the words that readers stumbled over."""

from __future__ import annotations

from pathlib import Path

from tests.docs.words import Text, find_banned, read_texts

STUMBLED_OVER = (
    "@assistant is hired and answers with echo.",
    "What it may do; edit, if never said.",
    "Of no use after so long, as 2h, or after 2026-12-24T18:00.",
    "So many at the most, the oldest first.",
    "It opens nothing after so many days.",
    "how long it is kept what was said; 0 is for ever",
    "Something waits for your word.",
    "Its messages wait. When this is mended: bullpen agent resume coder",
    "'5' is no length of time",
    "One that is idle stands still, for nobody is there to wake it.",
)
"""Sentences of earlier releases, each of which readers had to read twice."""


def test_no_text_that_people_read_uses_a_banned_word() -> None:
    found = [str(each) for each in find_banned(read_texts())]
    assert not found, "\n".join(found)


def test_sentences_that_readers_stumbled_over_are_found() -> None:
    missed = [each for each in STUMBLED_OVER if not list(find_banned([Text(Path("x"), 1, each)]))]
    assert not missed
