"""The message body that every peer carries."""

from typing import Final

PAYLOAD: Final = "x" * 200
