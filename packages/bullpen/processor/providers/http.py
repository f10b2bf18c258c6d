"""http: an agent whose lane is left to outside workers, which claim over the API."""

from __future__ import annotations

from bullpen.core.outcome import Failure
from bullpen.processor.children.stop import Stop
from bullpen.processor.providers.provider import Reply, Tell, Turn


class Http:
    """Answers nothing: a claim that was made while the provider was changed is given back."""

    def run(self, turn: Turn, stop: Stop, tell: Tell) -> Reply | Failure | None:
        """Leave it to somebody else."""
        return None
