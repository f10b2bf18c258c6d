"""Ids of a history: in the form of real ones, unique without a list of those that were given."""

from __future__ import annotations

import string
from random import Random

from bullpen.core.ids import ID_CHARS

ALPHABET = string.digits + string.ascii_lowercase
_RANGE = len(ALPHABET) ** ID_CHARS
_TRIPLE = len(ALPHABET) ** 3
_STEP = 1_743_392_200_199
"""Without a common factor with the range, so that an id returns only after all others."""


class IdSequence:
    """Gives ids in an order that looks random and is decided by the seed."""

    def __init__(self, random: Random) -> None:
        self._place = random.randrange(_RANGE)
        pairs = [first + second for first in ALPHABET for second in ALPHABET]
        self._pairs = pairs
        self._triples = [pair + last for pair in pairs for last in ALPHABET]

    def new(self, prefix: str) -> str:
        """A new id, such as `slack_a1b2c3d4`."""
        place = self._place = (self._place + _STEP) % _RANGE
        rest, low = divmod(place, _TRIPLE)
        high, middle = divmod(rest, _TRIPLE)
        return f"{prefix}_{self._triples[low]}{self._triples[middle]}{self._pairs[high]}"
