"""The directories of a running home."""

from __future__ import annotations

from bullpen.core.settings import Settings


def make_directories(settings: Settings) -> None:
    """Make what is missing of them, for the owner alone."""
    for each in (settings.home, settings.logs, settings.run):
        each.mkdir(mode=0o700, parents=True, exist_ok=True)
