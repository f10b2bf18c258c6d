"""The files of people: where they lie, and which may be named."""

from __future__ import annotations

from collections.abc import Sequence

from bullpen.api.context import api
from bullpen.core.answers.files import Refused, allowed
from bullpen.core.errors import UnknownFile


def sendable(names: Sequence[str]) -> tuple[str, ...]:
    """The real paths of these uploaded files; one that may not be sent is an error."""
    roots = (api().settings.files,)
    found = [allowed(name, roots) for name in names]
    for each in found:
        if isinstance(each, Refused):
            raise UnknownFile(str(each))
    return tuple(str(each) for each in found)
