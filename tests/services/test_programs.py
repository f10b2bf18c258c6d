"""A service is one more file, and is started when what it needs is set."""

from __future__ import annotations

from bullpen.core.registry import CHANNELS
from bullpen.core.settings import Settings
from bullpen.ops.services.crash_guard import CRASH_WINDOW_SECONDS, MAX_CRASHES, CrashCounter
from bullpen.ops.services.programs import list_programs, supervisor_config, tmux_config
from bullpen.ops.services.supervisor import CORE_SERVICES, OWN_SERVICES


def test_every_service_and_every_channel_with_a_client_has_a_file() -> None:
    programs = {each.name: each for each in list_programs(Settings())}
    channels = {each.name for each in CHANNELS.built_in.values() if each.factory}
    assert set(programs) == OWN_SERVICES | channels
    assert all(programs[name].set_up(Settings()) for name in CORE_SERVICES)
    assert supervisor_config().is_file()
    assert tmux_config().is_file()


def test_crashes_count_within_their_time_only() -> None:
    crashes = CrashCounter()
    assert not any(crashes.record(float(number)) for number in range(MAX_CRASHES - 1))
    assert crashes.record(float(MAX_CRASHES))
    slow = CrashCounter()
    assert not any(
        slow.record(number * CRASH_WINDOW_SECONDS / (MAX_CRASHES - 2)) for number in range(100)
    )
    crashes.reset()
    assert not crashes.record(float(MAX_CRASHES + 1))
