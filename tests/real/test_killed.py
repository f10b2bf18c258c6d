"""A run that is ended takes along whatever it had started, and its message is answered once."""

from __future__ import annotations

import os
import signal
import uuid

import pytest

from bullpen.core.queue.manage import cancel
from bullpen.core.roster.agents import Permission
from tests.conformance.verbs import do, message, responses, statuses
from tests.processor.turns import parent
from tests.processor.working import child, eventually
from tests.real.clis import Cli
from tests.real.office import Office
from tests.real.reply import Hang, Say


@pytest.fixture
def marker() -> str:
    """A number of seconds that no other process sleeps."""
    return f"1000.{uuid.uuid4().int % 10**12}"


def tool(cli: Cli, marker: str) -> None:
    """Let the model ask for a tool that takes long, and that leaves something behind as well."""
    command = f"setsid sleep {marker}1 & nohup sleep {marker}2 & sleep {marker}3"
    cli.server.answers(cli.shell(command), Say("Done."))


def three_sleep(office: Office, marker: str) -> None:
    """Wait until the tool runs."""
    sleeping = f"sleep {marker}"
    eventually(
        lambda: sum(each.split(" ", 1)[1].startswith(sleeping) for each in office.running()) == 3,
        "the tool runs",
    )


def test_what_runs_for_a_cancelled_message_is_gone_at_once(
    office: Office, cli: Cli, marker: str
) -> None:
    office.hire("ann", cli, Permission.FULL)
    tool(cli, marker)
    with office.processor():
        asked = office.ask("ann", "Sleep.")
        three_sleep(office, marker)
        do(office.store, cancel, asked)
        eventually(lambda: not office.running(marker), "the tool is gone")
        cli.server.answers(Say("Awake."))
        assert office.answer("ann", "Are you there?") == "Awake."
    assert office.answers(asked) == []
    assert statuses(office.store) == {"cancelled": 1, "completed": 1}
    assert [each["outcome"] for each in office.attempts()] == ["cancelled", "completed"]


def test_what_ran_for_a_killed_processor_is_gone_and_the_message_answered_once(
    office: Office, cli: Cli, marker: str
) -> None:
    office.hire("ann", cli, Permission.FULL)
    tool(cli, marker)
    with office.processor(lease_seconds=3) as first:
        asked = office.ask("ann", "Sleep.")
        three_sleep(office, marker)
        first.kill()
        first.wait()
        eventually(lambda: not office.running(), "all of it is gone")
    cli.server.answers(Say("Awake."))
    with child(office.store.settings, "scheduler"), office.processor():
        office.becomes(asked, "completed")
    assert [row["message"] for row in responses(office.store)] == ["Awake."]
    assert message(office.store, asked)["crash_count"] == 1
    assert [each["outcome"] for each in office.attempts()] == ["crashed", "completed"]


def test_what_a_run_leaves_behind_is_gone_when_it_has_answered(
    office: Office, cli: Cli, marker: str
) -> None:
    office.hire("ann", cli, Permission.FULL)
    command = f"setsid sleep {marker} >/dev/null 2>&1 & echo started"
    cli.server.answers(cli.shell(command), Say("Done."))
    with office.processor():
        assert office.answer("ann", "Leave something.") == "Done."
        eventually(lambda: not office.running(marker), "what it left is gone")
    assert "started" in (cli.server.tool_result(cli.server.requests[1].body) or "")


def test_a_program_that_is_killed_is_started_again(office: Office, cli: Cli) -> None:
    office.hire("ann", cli)
    cli.server.answers(Hang(), Say("Now."))
    with office.processor():
        asked = office.ask("ann", "hello")
        eventually(lambda: len(cli.server.requests) == 1, "the model is asked")
        pids = {int(each.split()[0]) for each in office.running(cli.command)}
        (first,) = (pid for pid in pids if parent(pid) not in pids)
        os.kill(first, signal.SIGKILL)
        office.becomes(asked, "completed")
    assert office.answers(asked) == ["Now."]
    (failed, _) = office.attempts()
    assert failed["error_kind"] == "retryable"
    assert "SIGKILL" in failed["error"]


def test_a_processor_that_stops_gives_its_message_back_uncounted(
    office: Office, cli: Cli, marker: str
) -> None:
    office.hire("ann", cli, Permission.FULL)
    tool(cli, marker)
    with office.processor():
        asked = office.ask("ann", "Sleep.")
        three_sleep(office, marker)
    row = message(office.store, asked)
    assert (row["status"], row["retry_count"], row["crash_count"]) == ("pending", 0, 0)
    assert responses(office.store) == []
