"""Waits that end after some time."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any


async def wait_at_most(event: asyncio.Event, seconds: float | None) -> None:
    """Wait for the event, at most this time."""
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        pass


async def wait_for_first(*works: Coroutine[Any, Any, object], seconds: float) -> None:
    """Wait until one of these ends, at most this time, and cancel the others."""
    tasks = [asyncio.create_task(each) for each in works]
    try:
        await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in tasks:
            each.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
