"""Agents: what they may do, where they work, what they cost, and what is to answer for them."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

import pytest

from bullpen.core.roster.agents import Permission, Reach, Sandbox
from bullpen.core.roster.providers import (
    CustomProvider,
    Harness,
    add_custom_provider,
    remove_custom_provider,
)
from tests.cli.command import Bullpen
from tests.conformance.verbs import do, hire
from tests.doctor.examined import checks, fine, fixed, found, seen, store_of

KEY = "sk-ant-quite-secret-indeed"
PONG = """#!/bin/sh
case "$1" in --version) echo 1.2.3; exit 0;; esac
cat > /dev/null
echo '{"type":"result","is_error":false,"session_id":"s","result":"pong"}'
"""
BROKEN = "#!/bin/sh\necho 'no such library' >&2\nexit 127\n"
LOGGED_OUT = """#!/bin/sh
case "$1" in --version) echo 1.2.3; exit 0;; esac
echo "Not logged in. Please run /login ($ANTHROPIC_API_KEY)" >&2
exit 1
"""


def install(bullpen: Bullpen, text: str, name: str = "claude") -> dict[str, str]:
    """Put a command line where it is found; gives the environment for that."""
    path = bullpen.home / "bin" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return {"PATH": f"{path.parent}:{bullpen.environment()['PATH']}"}


def test_the_default_agent_is_missing(bullpen: Bullpen) -> None:
    with store_of(bullpen) as store:
        hire(store, "coder")
        assert "coder" in seen(bullpen, "agent.default_missing")["remedy"]
        found(bullpen, "agent.default_missing", "warning")
        hire(store, "assistant")
    fine(bullpen, "agent.default_missing")


def test_an_agent_that_may_do_everything(on_both: Bullpen) -> None:
    with store_of(on_both) as store:
        hire(store, "careful", permission=Permission.EDIT)
        fine(on_both, "agent.skip_permissions")
        hire(store, "coder", permission=Permission.FULL)
    text = found(on_both, "agent.skip_permissions", "warning")
    assert "@coder" in text
    assert "@careful" not in text


def test_an_agent_that_works_where_everything_is(bullpen: Bullpen) -> None:
    person = Path(bullpen.environ["HOME"])
    project = person / "project"
    project.mkdir()
    with store_of(bullpen) as store:
        hire(store, "modest", directory=str(project))
        fine(bullpen, "agent.workspace_is_home")
        hire(store, "wide", directory=str(person))
        assert "@wide" in found(bullpen, "agent.workspace_is_home", "warning")
        hire(store, "widest", directory="/tmp")
    assert "@widest (/tmp, which contains Bullpen's" in found(
        bullpen, "agent.workspace_is_home", "critical"
    )


def test_a_workspace_that_holds_the_home(bullpen: Bullpen) -> None:
    inside = {"BULLPEN_WORKSPACE": str(bullpen.home.parent)}
    text = found(bullpen, "agent.workspace_is_home", "critical", **inside)
    assert "the workspace" in text


def test_a_directory_that_is_gone_is_made(bullpen: Bullpen) -> None:
    gone = bullpen.home / "projects" / "mine"
    with store_of(bullpen) as store:
        hire(store, "coder", provider="claude", directory=str(gone))
    assert str(gone) in found(bullpen, "agent.directory_missing", "warning")
    fixed(bullpen, "agent.directory_missing")
    assert gone.is_dir()
    gone.rmdir()
    gone.touch()
    assert seen(bullpen, "agent.directory_missing")["fixable"] is False


def test_a_budget_that_is_none(bullpen: Bullpen) -> None:
    with store_of(bullpen) as store:
        hire(store, "free")
        fine(bullpen, "budget.none")
        hire(store, "coder", provider="claude")
    assert "@coder" in found(bullpen, "budget.none", "info")
    fine(bullpen, "budget.none", BULLPEN_MAX_COST="5")


def test_a_provider_that_does_not_exist(on_both: Bullpen) -> None:
    service = CustomProvider(
        id="mine", harness=Harness.CLAUDE, base_url="http://127.0.0.1:1", api_key=KEY
    )
    with store_of(on_both) as store:
        do(store, add_custom_provider, service)
        hire(store, "coder", provider="custom:mine")
        fine(on_both, "provider.unknown")
        do(store, remove_custom_provider, "mine")
    assert "@coder (custom:mine)" in found(on_both, "provider.unknown", "critical")


def test_a_program_that_is_not_installed(bullpen: Bullpen) -> None:
    with store_of(bullpen) as store:
        hire(store, "assistant")
        fine(bullpen, "provider.not_installed")
        hire(store, "coder", provider="claude")
    assert "claude (for @coder)" in found(bullpen, "provider.not_installed", "critical")
    fine(bullpen, "provider.not_installed", **install(bullpen, PONG))


def test_a_program_that_does_not_start(bullpen: Bullpen) -> None:
    with store_of(bullpen) as store:
        hire(store, "coder", provider="claude")
    path = install(bullpen, PONG)
    assert seen(bullpen, "provider.broken", **path)["text"] == "claude 1.2.3"
    install(bullpen, BROKEN)
    assert "no such library" in found(bullpen, "provider.broken", "critical", **path)


def test_a_login_of_which_there_is_no_sign(bullpen: Bullpen) -> None:
    with store_of(bullpen) as store:
        hire(store, "coder", provider="claude")
    path = install(bullpen, PONG)
    assert "claude" in found(bullpen, "provider.login", "warning", **path)
    fine(bullpen, "provider.login", **path, BULLPEN_ANTHROPIC_API_KEY=KEY)
    fine(bullpen, "provider.login", **path, ANTHROPIC_API_KEY=KEY)
    own = Path(bullpen.environ["HOME"], ".claude")
    own.mkdir()
    (own / ".credentials.json").touch()
    fine(bullpen, "provider.login", **path)


def test_a_provider_that_does_not_answer_is_found_where_each_is_asked(bullpen: Bullpen) -> None:
    with store_of(bullpen) as store:
        hire(store, "coder", provider="claude", model="small")
        hire(store, "free")
    path = install(bullpen, PONG)
    assert seen(bullpen, "provider.silent", **path)["state"] == "skipped"
    assert seen(bullpen, "provider.silent", "--deep", **path)["text"] == "answered: claude, echo"
    install(bullpen, LOGGED_OUT)
    told = {**path, "BULLPEN_ANTHROPIC_API_KEY": KEY}
    text = found(bullpen, "provider.silent", "critical", "--deep", **told)
    assert "claude (small)" in text
    assert "(auth)" in text
    assert KEY not in text


@pytest.mark.parametrize("text", ["evil\x1b[31mred", "a\nb"])
def test_what_an_agent_is_called_cannot_move_the_cursor(bullpen: Bullpen, text: str) -> None:
    with store_of(bullpen) as store:
        hire(store, "coder", provider=text)
    assert "coder" in checks(bullpen)["provider.unknown"]["text"]
    assert "\x1b" not in bullpen("doctor").out


def test_an_agent_that_may_do_everything_in_a_sandbox_is_no_problem(bullpen: Bullpen) -> None:
    with store_of(bullpen) as store:
        hire(store, "boxed", permission=Permission.FULL, sandbox=Sandbox.BUBBLEWRAP)
    fine(bullpen, "agent.skip_permissions")


def test_a_sandbox_that_cannot_be_set_up(bullpen: Bullpen) -> None:
    broken = install(bullpen, "#!/bin/sh\necho 'bwrap: no namespaces' >&2\nexit 1\n", "bwrap")
    with store_of(bullpen) as store:
        hire(store, "free")
        fine(bullpen, "agent.sandbox_broken", **broken)
        hire(store, "boxed", sandbox=Sandbox.BUBBLEWRAP)
    text = found(bullpen, "agent.sandbox_broken", "warning", **broken)
    assert (
        "@boxed cannot run: bubblewrap does not work on this machine: bwrap: no namespaces" in text
    )
    works = install(bullpen, "#!/bin/sh\nexit 0\n", "bwrap")
    fine(bullpen, "agent.sandbox_broken", **works)


def test_an_account_that_no_agent_can_run_as(bullpen: Bullpen) -> None:
    with store_of(bullpen) as store:
        hire(store, "boxed", sandbox=Sandbox.USER)
    text = found(bullpen, "agent.sandbox_broken", "warning")
    assert "@boxed cannot run: the setting sandbox_user is empty" in text
    nobody = {"BULLPEN_SANDBOX_USER": "none-of-that-name-{agent}"}
    text = found(bullpen, "agent.sandbox_broken", "warning", **nobody)
    if os.geteuid() == 0:
        assert "the account none-of-that-name-boxed does not exist" in text
    else:
        assert "only a processor of root" in text


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start another user's programs")
def test_an_account_that_cannot_pass_to_the_workspace_or_can_enter_the_home(
    bullpen: Bullpen,
) -> None:
    account = {"BULLPEN_SANDBOX_USER": "nobody"}
    with store_of(bullpen) as store:
        hire(store, "boxed", sandbox=Sandbox.USER)
    text = found(bullpen, "agent.sandbox_broken", "warning", **account)
    assert "nobody may not enter" in text
    place = Path(tempfile.mkdtemp())
    try:
        place.chmod(0o711)
        fine(bullpen, "agent.sandbox_broken", **account, BULLPEN_WORKSPACE=str(place))
        bullpen.home.chmod(0o711)
        text = found(bullpen, "agent.sandbox_broken", "warning", **account)
        assert "nobody can enter" in text
    finally:
        bullpen.home.chmod(0o700)
        place.rmdir()


def test_an_agent_that_reads_everything(bullpen: Bullpen) -> None:
    with store_of(bullpen) as store:
        hire(store, "near", reach=Reach.PEOPLE)
        fine(bullpen, "agent.wide_reach")
        hire(store, "wide", reach=Reach.ALL)
    assert "@wide" in found(bullpen, "agent.wide_reach", "info")
