"""What answers a claim."""

from __future__ import annotations

import threading
from typing import Protocol

from bullpen.core.message import Claim
from bullpen.core.outcome import Failure, Outcome


class Provider(Protocol):
    """One way to answer."""

    def run(self, claim: Claim, stop: threading.Event) -> Outcome | Failure | None:
        """Answer the claim's messages; None if it was stopped before it had an answer."""
        ...
