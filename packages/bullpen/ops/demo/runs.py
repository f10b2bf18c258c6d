"""The runs of a simulation: how long each takes, how it ends, and what it costs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from bullpen.core.clock import HOUR, SECOND
from bullpen.core.message import NO_USAGE, ErrorKind, Usage
from bullpen.core.queue.attempts import AttemptOutcome
from bullpen.ops.demo.company import AGENTS, TARGETS, AgentProfile
from bullpen.ops.demo.state import QueuedMessage
from bullpen.ops.demo.texts import DAILY_ERRORS, fill_error
from bullpen.ops.demo.traffic import Incident, TrafficHour

SPREAD = 0.7
"""The standard deviation of the logarithm of lengths and tokens."""
MEAN_OF_SPREAD = math.exp(SPREAD**2 / 2)
MAX_UTILISATION = 0.5
"""Of the busiest agent in the busiest hour: with more messages, runs are shorter."""
HANDOFF_ROUNDS = 6
STUBBORN_SHARE = 0.35
"""The share of later runs of a message that fail after its first failure."""

ENDS: tuple[tuple[ErrorKind | AttemptOutcome, float], ...] = (
    (ErrorKind.RETRYABLE, 0.72),
    (ErrorKind.RATE_LIMIT, 0.06),
    (ErrorKind.PERMANENT, 0.05),
    (ErrorKind.CRASH, 0.05),
    (ErrorKind.NEEDS_PERSON, 0.02),
    (AttemptOutcome.RELEASED, 0.06),
    (AttemptOutcome.CANCELLED, 0.04),
)
"""How the runs end that do not complete, on a normal day."""


@dataclass(slots=True, eq=False)
class Run:
    """A claim with its run, whose end is decided when it begins."""

    agent: AgentProfile
    messages: list[QueuedMessage]
    worker: str
    claimed_at: int
    started_at: int
    finished_at: int
    end: ErrorKind | AttemptOutcome
    error: str

    @property
    def primary(self) -> QueuedMessage:
        """The message that it answers."""
        return self.messages[0]


class RunModel:
    """Decides about runs by chance, by the agent and by incidents."""

    def __init__(
        self, random: Random, attempts: int, hours: Sequence[TrafficHour], lease_ms: int
    ) -> None:
        self._random = random
        self._lease_ms = lease_ms
        self._spread = [math.exp(random.gauss(0, SPREAD)) for _ in range(4096)]
        self._kinds = [kind for kind, _ in ENDS]
        self._shares = [share for _, share in ENDS]
        visits = expected_visits()
        self.per_arrival = sum(visits.values()) * 1.07
        """About how many runs a message of a person causes."""
        busiest = max(each.weight for each in hours) / sum(each.weight for each in hours)
        load = max(
            attempts * busiest * visits[each.id] / sum(visits.values())
            * each.seconds * SECOND * MEAN_OF_SPREAD / HOUR
            for each in AGENTS
        )  # fmt: skip
        self._pace = min(1.0, MAX_UTILISATION / load)

    def plan(
        self, agent: AgentProfile, messages: list[QueuedMessage], worker: str, now: int,
        incidents: Sequence[Incident],
    ) -> Run:  # fmt: skip
        """The run of these messages, claimed a moment from now."""
        random, pace = self._random, self._pace
        claimed_at = now + 1 + (random.getrandbits(3) if pace == 1 else 0)
        started_at = claimed_at + 1 + int((20 + random.getrandbits(6)) * pace)
        length = 1 + int(SECOND * agent.seconds * pace * self._spread[random.getrandbits(12)])
        end, error = self._end(agent, messages[0], now, incidents)
        match end:
            case AttemptOutcome.COMPLETED:
                finished_at = started_at + length
            case ErrorKind.CRASH:
                # Its lease expires after the last extension.
                finished_at = started_at + length // 3 + int(self._lease_ms * pace)
                error = (
                    f"{worker} stopped responding: it did not extend its lease of"
                    f" {self._lease_ms // SECOND} s"
                )
            case ErrorKind.AUTH | ErrorKind.RATE_LIMIT:
                finished_at = started_at + 1 + length // 40
            case _:
                finished_at = started_at + 1 + length // 4
        return Run(agent, messages, worker, claimed_at, started_at, finished_at, end, error)

    def usage(self, run: Run) -> Usage:
        """The usage that the provider reported at the end."""
        agent, random = run.agent, self._random
        match run.end:
            case ErrorKind.CRASH | AttemptOutcome.RELEASED | AttemptOutcome.CANCELLED:
                return NO_USAGE
            case AttemptOutcome.COMPLETED:
                share = 1.0
            case ErrorKind.RETRYABLE | ErrorKind.NEEDS_PERSON:
                share = 0.25
            case _:
                share = 0.0
        model = agent.model if random.random() < 0.9 else agent.fallback
        spread = self._spread
        tokens_in = int(share * agent.input_tokens * spread[random.getrandbits(12)])
        tokens_out = int(share * agent.output_tokens * spread[random.getrandbits(12)])
        cost = (tokens_in * model.input_price + tokens_out * model.output_price) / 1e6
        return Usage(
            provider=model.provider,
            model=model.name,
            input_tokens=tokens_in,
            output_tokens=tokens_out,
            cost=round(cost, 6),
            started_at=run.started_at,
        )

    def _end(
        self, agent: AgentProfile, primary: QueuedMessage, now: int, incidents: Sequence[Incident]
    ) -> tuple[ErrorKind | AttemptOutcome, str]:
        random = self._random
        if primary.fails_for_good:
            return ErrorKind.PERMANENT, self._error(DAILY_ERRORS[ErrorKind.PERMANENT])
        for each in incidents:
            if (
                each.begin <= now < each.end
                and each.hits(agent.id, agent.model.provider)
                and random.random() < each.share
            ):
                return each.kind, self._error(each.errors)
        share = STUBBORN_SHARE if primary.retry_count else agent.failures
        if random.random() >= share:
            return AttemptOutcome.COMPLETED, ""
        end = random.choices(self._kinds, self._shares)[0]
        errors = DAILY_ERRORS.get(end, ()) if isinstance(end, ErrorKind) else ()
        return end, self._error(errors)

    def _error(self, templates: Sequence[str]) -> str:
        if not templates:
            return ""
        return fill_error(self._random, self._random.choice(templates))


def expected_visits() -> dict[str, float]:
    """How many runs of each agent a message of a person causes, without failures."""
    direct = dict.fromkeys((each.id for each in AGENTS), 0.0)
    for target in TARGETS:
        direct[target.agent] += target.share
    visits, step = dict(direct), direct
    for _ in range(HANDOFF_ROUNDS):
        following = dict.fromkeys(direct, 0.0)
        for each in AGENTS:
            for agent, share in each.handoffs:
                following[agent] += step[each.id] * share
        step = following
        for agent, count in step.items():
            visits[agent] += count
    return visits
