"""A home in which all is well has nothing found, with its services and without."""

from __future__ import annotations

import json

import pytest

from bullpen.ops.doctor.examine import ALL_CHECKS
from tests.cli.command import Bullpen
from tests.doctor.examined import LONG, checks
from tests.processor.working import eventually


def told(bullpen: Bullpen, *args: str) -> dict[str, str]:
    """The checks that found something or could not be made, with their severity."""
    found = checks(bullpen, *args)
    assert list(found) == [each.id for each in ALL_CHECKS]
    return {
        id_: f"{each['severity']} {each['state']}"
        for id_, each in found.items()
        if each["state"] not in ("ok", "skipped")
    }


def test_where_nothing_was_ever_made_nothing_is_wrong_and_nothing_is_made(
    empty: Bullpen,
) -> None:
    home = empty.home / "none"
    nowhere = Bullpen(home, empty.environ)
    said = nowhere("doctor")
    assert said.status == 0, said
    assert "bullpen up" in said.out
    assert not home.exists()
    assert told(nowhere) == {"fs.home_missing": "info found"}
    assert told(empty) == {"db.missing": "info found", "service.supervisor": "info found"}


def test_a_home_before_its_first_start_is_fine(on_both: Bullpen) -> None:
    assert told(on_both) == {
        "service.supervisor": "info found",
        "agent.default_missing": "info found",
        "backup.none": "info found",
    }
    assert on_both("doctor").status == 0


@pytest.mark.slow
@pytest.mark.one_store
def test_a_home_at_work_is_fine_and_so_it_is_when_it_is_looked_at_closely(
    on_both: Bullpen,
) -> None:
    on_both.ok("up")
    assert on_both.ok("send", "hello").out

    def all_is_well() -> bool:
        return told(on_both) == {"backup.none": "info found"}

    # A service that this machine stops in the middle of reading is a reader that does not end.
    eventually(all_is_well, "nothing is found", LONG)
    eventually(lambda: on_both("doctor", "--deep").status == 0, "nor by a close look", LONG)
    deep = on_both("doctor", "--deep", "--json")
    by_id = {each["id"]: each for each in json.loads(deep.out)["checks"]}
    assert by_id["provider.silent"]["text"] == "answered: echo"
    assert {each["state"] for each in by_id.values()} == {"ok", "skipped", "found"}
    on_both.ok("down")
    assert told(on_both) == {"backup.none": "info found", "service.supervisor": "info found"}
