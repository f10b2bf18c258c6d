"""The hostile answers look on each platform as a person has reviewed them."""

from __future__ import annotations

import pytest

from tests.channels.text.golden import FILES, offsets, shown
from tests.channels.text.platforms import PLATFORMS, Platform

COMMAND = (
    "if it is meant: .venv/bin/python -m tests.channels.text.golden, and review the difference"
)


@pytest.mark.parametrize("platform", PLATFORMS, ids=lambda each: each.name)
def test_hostile_answers_look_as_reviewed(platform: Platform) -> None:
    reviewed = (FILES / f"{platform.name}.txt").read_text(encoding="utf-8")
    assert shown(platform) == reviewed, COMMAND


def test_offsets_are_those_of_earlier_releases() -> None:
    """A response that is half sent goes on at an offset that an earlier release has recorded."""
    assert offsets() == (FILES / "offsets.txt").read_text(encoding="utf-8"), COMMAND
