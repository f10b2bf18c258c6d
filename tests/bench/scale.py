"""How much a run measures: all of it, a quick look, or just enough to see that it works."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """The counts of a run."""

    rounds: int
    """Turns that each contender has; small ones, for the machine changes its mind by the second."""
    warm_up: int
    """Turns before the first that counts: files reach their size, statements are prepared."""
    cycles: int
    """Single messages in a turn."""
    processes: tuple[int, ...]
    process_rounds: int
    process_seconds: float
    archived: int
    """Finished messages that are archived meanwhile."""
    depths: tuple[int, ...]
    depth_rounds: int
    wakes: int
    lost_wakes: int
    idle_warm_up: float
    idle_seconds: float
    schedules: int
    runs: int
    """Runs of a command line."""
    streams: tuple[int, int]
    """So many follow the events over SSE, and so many over WebSocket."""
    stream_seconds: float
    commands: int
    """Turns of a short command."""
    starts: int
    """New homes that are brought up."""
    channels: tuple[str, ...]
    paced: int
    """Messages in and out on each channel, one after the other."""
    burst: int
    """Messages on a channel at once."""
    bursts: int
    client_seconds: float
    """For how long the processor time of the clients is measured."""
    attempts: int
    """Runs in the history that the reports are computed from."""
    read_attempts: int
    """Runs in the history whose reports are shown."""
    source_attempts: int
    """Runs in the history that the data source reads; its start counts less if there are many."""
    source_rounds: int
    writer_attempts: int
    """Runs in the history of which reports are computed beside writers."""
    writer_seconds: float
    writer_rounds: int


FULL = Scale(
    rounds=40,
    warm_up=10,
    cycles=20,
    processes=(1, 4, 8),
    process_rounds=5,
    process_seconds=3.0,
    archived=300_000,
    depths=(1_000, 100_000, 1_000_000),
    depth_rounds=40,
    wakes=400,
    lost_wakes=15,
    idle_warm_up=5.0,
    idle_seconds=15.0,
    schedules=10_000,
    runs=200,
    streams=(500, 100),
    stream_seconds=20.0,
    commands=40,
    starts=5,
    channels=("slack", "sms", "whatsapp", "discord", "telegram"),
    paced=200,
    burst=200,
    bursts=5,
    client_seconds=30.0,
    attempts=5_000_000,
    read_attempts=50_000,
    source_attempts=5_000_000,
    source_rounds=3,
    writer_attempts=300_000,
    writer_seconds=40.0,
    writer_rounds=3,
)

QUICK = Scale(
    rounds=10,
    warm_up=5,
    cycles=10,
    processes=(1, 8),
    process_rounds=1,
    process_seconds=1.0,
    archived=50_000,
    depths=(1_000, 100_000),
    depth_rounds=10,
    wakes=300,
    lost_wakes=5,
    idle_warm_up=5.0,
    idle_seconds=5.0,
    schedules=10_000,
    runs=50,
    streams=(500, 100),
    stream_seconds=5.0,
    commands=10,
    starts=2,
    channels=("slack", "sms", "whatsapp", "discord", "telegram"),
    paced=50,
    burst=200,
    bursts=2,
    client_seconds=10.0,
    attempts=200_000,
    read_attempts=50_000,
    source_attempts=200_000,
    source_rounds=2,
    writer_attempts=100_000,
    writer_seconds=20.0,
    writer_rounds=2,
)

TINY = Scale(
    rounds=1,
    warm_up=0,
    cycles=1,
    processes=(8,),
    process_rounds=1,
    process_seconds=0.1,
    archived=10_000,
    depths=(1_000, 2_000),
    depth_rounds=1,
    wakes=3,
    lost_wakes=1,
    idle_warm_up=0.0,
    idle_seconds=0.2,
    schedules=100,
    runs=1,
    streams=(3, 2),
    stream_seconds=0.2,
    commands=1,
    starts=1,
    channels=("slack", "sms", "whatsapp", "discord", "telegram"),
    paced=3,
    burst=5,
    bursts=1,
    client_seconds=0.2,
    attempts=2_000,
    read_attempts=500,
    source_attempts=200,
    source_rounds=1,
    writer_attempts=2_000,
    writer_seconds=1.0,
    writer_rounds=1,
)
"""Nothing of it says how fast anything is, only that it is measured."""
