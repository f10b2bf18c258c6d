"""The declaration of a setting: its default, its sentence, its limits and its readers."""

from __future__ import annotations

from dataclasses import field
from typing import Any

MAX_NUMBER = 1 << 40
"""The limit of a number without a limit of its own."""


def declare(
    default: Any,  # noqa: ANN401 - as dataclasses.field itself
    doc: str,
    *,
    least: float = 0,
    most: float = MAX_NUMBER,
    reader: str = "",
    fixed: str = "",
    section: str = "",
) -> Any:  # noqa: ANN401 - as dataclasses.field itself
    """Declare a setting.

    `least` and `most` limit a number. `reader` is the only service that reads the setting. `fixed`
    is the reason why the setting can only be changed on the machine itself. `section` begins a
    section of the documentation.
    """
    metadata = {"doc": doc, "reader": reader, "fixed": fixed, "section": section}
    return field(default=default, metadata={**metadata, "least": least, "most": most})


def declare_secret(doc: str) -> Any:  # noqa: ANN401 - as dataclasses.field itself
    """Declare a setting whose value must not be shown."""
    metadata = {"doc": doc, "reader": "", "fixed": "", "section": "", "secret": True}
    return field(default="", repr=False, metadata=metadata)
