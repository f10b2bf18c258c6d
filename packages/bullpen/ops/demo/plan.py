"""The plan of a history: its seed, size and times, and the settings that shape it."""

from __future__ import annotations

from dataclasses import dataclass

from bullpen.core.clock import DAY, HOUR
from bullpen.core.settings import Settings

MAX_ATTEMPTS = 5_000_000
MAX_DAYS = 365
MAX_ARCHIVED = 20_000
"""About how many messages are in the archive, and have their texts and the events of each step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryPlan:
    """A history to simulate; the same plan always has the same rows."""

    seed: int
    attempts: int
    """About how many runs."""
    since: int
    until: int
    retention_hours: int
    archive_days: int
    event_days: int
    attempt_days: int
    history_days: int
    response_hours: int
    retry_base_seconds: int
    retry_max_seconds: int
    max_attempts: int
    max_crashes: int
    lease_seconds: int
    claim_limit: int

    @classmethod
    def from_settings(
        cls, settings: Settings, *, seed: int, attempts: int, days: int, until: int
    ) -> HistoryPlan:
        """The plan for a store with these settings."""
        return cls(
            seed=seed,
            attempts=attempts,
            since=until - days * DAY,
            until=until,
            retention_hours=settings.retention_hours,
            archive_days=settings.archive_days,
            event_days=settings.event_days,
            attempt_days=settings.attempt_days,
            history_days=settings.history_days,
            response_hours=settings.response_hours,
            retry_base_seconds=settings.retry_base_seconds,
            retry_max_seconds=settings.retry_max_seconds,
            max_attempts=settings.max_attempts,
            max_crashes=settings.max_crashes,
            lease_seconds=settings.lease_seconds,
            claim_limit=settings.claim_limit,
        )

    @property
    def events_from(self) -> int:
        """The time from which events are kept."""
        return self._kept_from(self.event_days)

    @property
    def attempts_from(self) -> int:
        """The time from which attempts are kept."""
        return self._kept_from(self.attempt_days)

    @property
    def archived_from(self) -> int:
        """The time from which archived rows are kept."""
        return self._kept_from(self.archive_days)

    @property
    def history_from(self) -> int:
        """The time from which the history of agents is kept."""
        return self._kept_from(self.history_days)

    @property
    def live_from(self) -> int:
        """The time from which finished rows are in the live tables."""
        return self.until - self.retention_hours * HOUR

    def _kept_from(self, days: int) -> int:
        return max(self.since, self.until - days * DAY) if days else self.since
