"""The name of a model: a word that is handed to a command line, and never one of its options."""

from __future__ import annotations

from bullpen.core.errors import BadName
from bullpen.core.text import check_text

MAX_MODEL_NAME_CHARS = 200


def check_model(name: str, limit: int) -> str:
    """The name, if a command line can take it for one; empty is the provider's own choice."""
    check_text(name, limit, "the model's name")
    if (
        len(name) > MAX_MODEL_NAME_CHARS
        or name.startswith("-")
        or not name.isprintable()
        or " " in name
    ):
        raise BadName(
            f"{name[:40]!r} is not the name of a model",
            hint="Give one word that does not begin with -, as sonnet; '' is the provider's own.",
        )
    return name
