"""The real command lines in a sandbox: they answer, go on, use tools, and see nobody's files."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bullpen.core.roster.agents import Permission, Sandbox
from bullpen.core.roster.programs import BUBBLEWRAP
from tests.real.clis import Cli
from tests.real.office import Office
from tests.real.reply import Say


@pytest.fixture(autouse=True)
def _bubblewrap() -> None:
    """Where no sandbox can be made, nothing runs in one."""
    if problem := BUBBLEWRAP.problem():
        pytest.skip(problem)


def test_in_a_sandbox_it_answers_goes_on_and_sees_nobodys_files(office: Office, cli: Cli) -> None:
    office.hire(
        "ann", cli, Permission.FULL, system_prompt="You count sheep.", sandbox=Sandbox.BUBBLEWRAP
    )
    (office.user / "diary").write_text("mine alone")
    look = f"cat {office.user}/diary {office.store.settings.home}/bullpen.db; ls /proc; echo end"
    cli.server.answers(replace(cli.shell(look), say="I look."), Say("Seven."), Say("Eight."))
    with office.processor():
        assert office.answer("ann", "How many?") == "I look.\n\nSeven."
        session = office.session()
        assert office.answer("ann", "And now?") == "Eight."
        assert office.session() == session
    assert "You count sheep." in cli.server.told(cli.server.requests[0].body)
    result = cli.server.tool_result(cli.server.requests[1].body) or ""
    assert "end" in result
    assert "mine alone" not in result
    assert "SQLite" not in result
    assert "How many?" in str(cli.server.requests[-1].body), "it goes on where it ended"
    assert cli.sessions() == [], "it has sessions of its own"
