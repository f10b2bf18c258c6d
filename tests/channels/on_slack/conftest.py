from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.channels.fakes.slack import FakeSlack
from tests.channels.on_slack.account import Account


@pytest.fixture
def account(tmp_path: Path) -> Iterator[Account]:
    """An account on a fake of its own."""
    with FakeSlack() as fake:
        yield Account(fake, tmp_path)
