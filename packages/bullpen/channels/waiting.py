"""A wait for an event that ends after some time."""

from __future__ import annotations

import asyncio


async def wait_at_most(event: asyncio.Event, seconds: float | None) -> None:
    """Wait for the event, at most this time."""
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        pass
