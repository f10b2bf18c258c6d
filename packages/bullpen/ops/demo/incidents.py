"""Incidents: hours in which a provider, the processors or a channel do not work."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from bullpen.core.clock import DAY, HOUR, MINUTE
from bullpen.core.message import ErrorKind
from bullpen.ops.demo.traffic import next_office_hour


@dataclass(frozen=True, slots=True)
class Incident:
    """One cause of failures, from its begin to its end."""

    name: str
    begin: int
    end: int
    share: float
    """The share of runs, or of tries to deliver, that fail."""
    kind: ErrorKind = ErrorKind.RETRYABLE
    errors: tuple[str, ...] = ()
    provider: str | None = None
    """The provider whose runs fail; None is every provider."""
    agents: tuple[str, ...] = ()
    """The agents whose runs fail; empty is every agent."""
    channel: str | None = None
    """The channel whose deliveries fail; then no runs do."""

    def hits(self, agent: str, provider: str) -> bool:
        """Whether it can make runs of this agent fail."""
        return (
            self.channel is None
            and self.provider in (None, provider)
            and (not self.agents or agent in self.agents)
        )


@dataclass(frozen=True, slots=True)
class _Kind:
    """An incident before its time is known."""

    name: str
    at: float
    """The part of the history that has passed when it begins."""
    minutes: int
    share: float
    kind: ErrorKind = ErrorKind.RETRYABLE
    errors: tuple[str, ...] = ()
    provider: str | None = None
    agents: tuple[str, ...] = ()
    channel: str | None = None


_KINDS = (
    _Kind(
        name="claude overloaded",
        at=0.17,
        minutes=170,
        share=0.6,
        errors=("API Error: 529 overloaded_error (request {hex})", "stream closed after {n} ms"),
        provider="claude",
    ),
    _Kind(
        name="telegram unreachable",
        at=0.31,
        minutes=110,
        share=0.85,
        errors=("api.telegram.org: connection timed out",),
        channel="telegram",
    ),
    _Kind(
        name="codex logged out",
        at=0.45,
        minutes=95,
        share=1.0,
        kind=ErrorKind.AUTH,
        errors=("401 Unauthorized: the access token has expired",),
        provider="codex",
    ),
    _Kind(
        name="processors out of memory",
        at=0.62,
        minutes=80,
        share=0.3,
        kind=ErrorKind.CRASH,
        agents=("coder", "tester", "researcher"),
    ),
    _Kind(
        name="rate limits of opencode",
        at=0.74,
        minutes=150,
        share=0.4,
        kind=ErrorKind.RATE_LIMIT,
        errors=("429 Too Many Requests: retry after {n} s",),
        provider="opencode",
    ),
    _Kind(
        name="billing API changed",
        at=0.88,
        minutes=200,
        share=0.5,
        kind=ErrorKind.PERMANENT,
        errors=("tool invoices.list failed: unknown field customer_ref in response {hex}",),
        agents=("billing",),
    ),
)


def plan_incidents(random: Random, since: int, until: int) -> tuple[Incident, ...]:
    """The incidents of a history: they begin in office hours, and end before the history does."""
    found = []
    for each in _KINDS:
        jitter = random.uniform(-0.03, 0.03) if until - since > 10 * DAY else 0.0
        begin = next_office_hour(since + int((each.at + jitter) * (until - since)))
        begin += random.randrange(0, 90) * MINUTE
        end = begin + int(each.minutes * random.uniform(0.8, 1.2)) * MINUTE
        if end < until - HOUR:
            found.append(
                Incident(
                    name=each.name,
                    begin=begin,
                    end=end,
                    share=each.share,
                    kind=each.kind,
                    errors=each.errors,
                    provider=each.provider,
                    agents=each.agents,
                    channel=each.channel,
                )
            )
    return tuple(found)


def in_hour(incidents: Sequence[Incident], begin: int, end: int) -> tuple[Incident, ...]:
    """The incidents that overlap with these times."""
    return tuple(each for each in incidents if each.begin < end and begin < each.end)
