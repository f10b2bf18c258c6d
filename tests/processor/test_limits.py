"""Limits: who is silent for too long is ended, and who takes too long, with all that it started."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from bullpen.processor.children.child import ChildExit, ExitReason, Limit, Limits
from tests.processor.running import Running, family, go, run
from tests.processor.turns import Place
from tests.processor.watch import Watch
from tests.processor.working import eventually

EXIT = ExitReason.EXITED
LONG = 1e9


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Watch:
    """The clock of the limits, which stands until it is moved."""
    made = Watch()
    monkeypatch.setattr("bullpen.processor.children.child.time", SimpleNamespace(monotonic=made))
    return made


def test_nothing_that_it_started_outlives_an_idle_timeout(hasty: Place, watch: Watch) -> None:
    running = family(hasty, "sleep 1000", Limits(idle=1, total=LONG))
    go(hasty)

    def over() -> bool:
        watch.now += 0.1
        return running.over

    eventually(over, "it was silent for too long")
    assert running.end() == ChildExit(EXIT, -9)
    assert running.child.timeout is Limit.IDLE
    assert running.living == []


def test_nothing_that_it_started_outlives_a_total_timeout(hasty: Place, watch: Watch) -> None:
    running = family(hasty, limits=Limits(idle=LONG, total=1))
    eventually(lambda: b"still there" in running.out, "it says something")
    watch.now += 1
    assert running.end() == ChildExit(EXIT, -9)
    assert running.child.timeout is Limit.TOTAL
    assert running.living == []


SAYS = """for each in 1 2 3 4; do
    until [ -e $each ]; do sleep 0.01; done
    echo $each >&{}
done
"""


@pytest.mark.parametrize("stream", [1, 2])
def test_what_it_says_on_either_stream_keeps_it_from_being_idle(
    place: Place, watch: Watch, stream: int
) -> None:
    limits = Limits(idle=2, total=60)
    running = Running(place, "sh", "-c", SAYS.format(stream), limits=limits)
    said = b""
    for each in range(1, 5):
        (place.yard / f"{each}").touch()
        said += b"%d\n" % each
        eventually(lambda said=said: running.out + running.err == said, f"it says {each}")  # type: ignore[misc]
        watch.now += 1.5
    assert running.end() == ChildExit(EXIT, 0)
    assert running.child.timeout is None


@pytest.mark.parametrize(
    ("limits", "limit"),
    [(Limits(idle=0.2, total=LONG), Limit.IDLE), (Limits(idle=LONG, total=0.2), Limit.TOTAL)],
)
def test_the_limit_that_it_broke_is_told(place: Place, limits: Limits, limit: Limit) -> None:
    running = Running(place, "sleep", "1000", limits=limits)
    assert running.end() == ChildExit(EXIT, -2)
    assert running.child.timeout is limit
    assert not running.child.stopped


def test_who_never_falls_silent_has_a_limit_all_the_same(place: Place) -> None:
    running = Running(place, "yes", limits=Limits(idle=LONG, total=0.3))
    assert running.end() == ChildExit(EXIT, -2)
    assert running.child.timeout is Limit.TOTAL


def test_limits_of_years_are_no_limits(place: Place) -> None:
    assert run(place, "true", limits=Limits(1e12, 1e12))[0] == ChildExit(EXIT, 0)
