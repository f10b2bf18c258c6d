"""Loads modules for good: what they are made of stays to the end and is no garbage."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def keep_imports() -> Iterator[None]:
    """Whatever the block imports, nobody looks through it for garbage.

    Python would, again and again while it loads and once more at the end: a fifth of the time that
    a short command takes, and that a service needs to begin.
    """
    watched = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if watched:
            gc.enable()
