"""Rule 2: kill -9 of the processor at every step of a run, with real children."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bullpen.core.models import ATTEMPTS, LANES, MESSAGES, SESSIONS
from bullpen.core.settings import Settings
from bullpen.core.store.base import Store
from tests.company.office import install, living, log_of, processors, wait_until_over, write
from tests.company.victim import STEPS, find_owner
from tests.conformance.verbs import hire, responses, rows, status
from tests.processor.working import SOON, environ, eventually
from tests.stores import all_stores

ROOT = Path(__file__).parents[2]
ASKED = "@coder !tool\n!sleep 0.2\n!say part one\n!sleep 0.2\n!say [@mate: !say mine] part two"


def die(settings: Settings, step: str) -> None:
    """Let a processor run until it comes to this step."""
    with Path(settings.home / "victim.out").open("wb") as out:
        done = subprocess.run(
            [sys.executable, "-m", "tests.company.victim", step, "run", "processor"],
            env=environ(settings, BULLPEN_LEASE_SECONDS="1", **install(settings)),
            cwd=ROOT,
            stdout=out,
            stderr=out,
            timeout=SOON,
            check=False,
        )
    assert done.returncode == -signal.SIGKILL, Path(settings.home / "victim.out").read_text()


def leases_are_over(store: Store) -> bool:
    """Whether what the dead processor had may be taken back."""
    ends = [row["lease_expires_at"] for row in rows(store, LANES)]
    return all(end is None or end < time.time_ns() // 1_000_000 for end in ends)


POSTGRESQL = [*STEPS][::2]
CASES = [
    *(("sqlite", step) for step in STEPS if all_stores() or step not in POSTGRESQL),
    *(pytest.param("postgresql", step, marks=pytest.mark.postgres) for step in POSTGRESQL),
]
"""A step is in the processor, not in a store: PostgreSQL has every second one."""


def test_every_step_is_a_place_in_the_code() -> None:
    for step, (where, name, _) in STEPS.items():
        assert hasattr(find_owner(where), name), step


@pytest.mark.parametrize(("kind", "step"), CASES)
def test_kill_9_at_any_step_leaves_one_answer_one_handoff_and_no_orphan(
    settings: Settings, store: Store, step: str
) -> None:
    hire(store, "coder", provider="claude")
    hire(store, "mate")
    asked = write(store, ASKED)
    die(settings, step)
    eventually(lambda: living(settings) == [], "what it had started is ended")
    # A scheduler looks when it begins, and then not for five seconds.
    eventually(lambda: leases_are_over(store), "its leases are over")
    with processors(settings) as made:
        assert wait_until_over(store) == {"completed": 2}
        made.stop()
    assert [each["message"].splitlines()[0] for each in responses(store)] == ["part one", "mine"]
    assert [row["from_agent"] for row in rows(store, MESSAGES)] == [None, "coder"]
    attempts = [row["outcome"] for row in rows(store, ATTEMPTS) if row["message_id"] == asked]
    assert attempts == (["completed"] if step == "after its commit" else ["crashed", "completed"])
    assert len(rows(store, SESSIONS)) == 1
    assert living(settings) == []
    assert [line for line in log_of(settings) if line[2] == "overlap"] == []
    assert status(store, asked) == "completed"
