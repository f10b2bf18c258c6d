"""The channels under test, and what each platform has."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tests.channels.fakes.channels import FAKES
from tests.channels.fakes.harness import Harness


@dataclass(frozen=True)
class Kind:
    """One channel under test."""

    channel: str
    groups: bool = True
    """Whether it has groups."""
    edits: bool = True
    recovers: bool = True
    """Whether an unknown part can be looked up."""
    acknowledges: bool = True
    """Whether the platform gets an acknowledgement of each message."""

    @contextmanager
    def make(self) -> Iterator[Harness]:
        """A fake of the platform."""
        fake = FAKES[self.channel]
        with fake.platform() as platform:
            yield fake.harness(platform)


KINDS = {
    each.channel: each
    for each in (
        Kind("slack"),
        Kind("sms", groups=False, edits=False),
        Kind("whatsapp", groups=False, edits=False),
        Kind("discord", acknowledges=False),
        Kind("telegram", recovers=False),
    )
}
