"""One real run of one word: what it says, and that it leaves and touches nothing."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from bullpen.cli import probe as probe_module
from bullpen.cli.probe import ProbeResult, probe
from bullpen.core.roster.providers import CustomProvider, Harness, add_custom_provider
from bullpen.core.settings import Settings
from bullpen.core.store.base import Store
from tests.company.office import install
from tests.conformance.verbs import do, dump
from tests.processor.working import SOON, eventually
from tests.stores import Stores

KEY = "sk-ant-quite-secret-indeed"
HANGS = "#!/bin/sh\nsleep 1000 &\nsleep 1000\n"
SAYS_ITS_KEY = '#!/bin/sh\necho "authentication failed for $ANTHROPIC_API_KEY" >&2\nexit 1\n'
TELLS = """#!/bin/sh
read asked
printf '{"type":"result","is_error":false,"session_id":"s","result":"%s in %s as %s %s"}\\n' \
    "pong" "$PWD" "$BULLPEN_HOME" "$ANTHROPIC_AUTH_TOKEN"
"""


@pytest.fixture
def home(tmp_path: Path, stores: Stores) -> Settings:
    """A home with a database."""
    return stores.settings("sqlite")


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where whatever is temporary lies, which is to be empty at the end."""
    made = tmp_path / "tmp"
    made.mkdir()
    monkeypatch.setattr(probe_module, "START_SECONDS", SOON)
    monkeypatch.setenv("TMPDIR", str(made))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return made


def program(
    settings: Settings, text: str, monkeypatch: pytest.MonkeyPatch, name: str = "claude"
) -> None:
    """Put a command line where it is looked for."""
    path = settings.home / "bin" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{path.parent}:{os.environ['PATH']}")


def test_echo_answers(home: Settings, scratch: Path) -> None:
    found = probe(home, "echo")
    assert (found.provider, found.ok, found.kind, found.error) == ("echo", True, "", "")
    assert "pong" in found.answer
    assert not list(scratch.iterdir())


def test_an_empty_answer_is_none_and_nothing_of_the_run_is_left(
    home: Settings, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The stand-in says what its prompt orders, and a probe orders nothing.
    monkeypatch.setenv("PATH", install(home)["PATH"])
    found = probe(home, "claude")
    assert (found.ok, found.kind, found.error) == (
        False,
        "retryable",
        "the answer is empty",
    )
    assert not (home.home / "runs.log").exists()  # which the stand-in writes into its home
    assert not list(scratch.iterdir())


def test_it_runs_in_a_home_and_a_directory_that_are_nobodys(
    home: Settings, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(home, TELLS, monkeypatch)
    before = sorted(each for each in home.home.rglob("*"))
    found = probe(home, "claude", model="small")
    assert (found.ok, found.model) == (True, "small")
    _, place, own = (each.split()[0] for each in found.answer.replace(" as ", " in ").split(" in "))
    assert place.startswith(str(scratch))
    assert own.startswith(str(scratch))
    assert not list(scratch.iterdir())
    assert sorted(each for each in home.home.rglob("*")) == before


def test_a_program_that_is_not_there_is_said_so(
    home: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(home.home / "nowhere"))
    found = probe(home, "claude")
    assert (found.ok, found.kind) == (False, "setup")
    assert "claude is not installed" in found.error


def test_one_that_does_not_end_is_ended_with_all_that_it_started(
    home: Settings, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(home, HANGS, monkeypatch)
    found = probe(home, "claude", seconds=1)
    assert (found.ok, found.kind) == (False, "retryable")
    assert "1 s" in found.error
    assert 1 <= found.seconds < 15
    assert not _running_in(scratch)
    assert not list(scratch.iterdir())


def test_when_it_is_ended_what_it_started_ends(
    home: Settings, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(home, HANGS, monkeypatch)
    module = [sys.executable, "-m", "bullpen.processor.probe", "--provider", "claude"]
    with subprocess.Popen(module, stdout=subprocess.PIPE) as child:
        eventually(lambda: bool(_running_in(scratch)), "it runs")
        child.send_signal(signal.SIGTERM)
        out, _ = child.communicate(timeout=SOON)
    assert json.loads(out)["error"] == "the test was stopped before it ended"
    eventually(lambda: not _running_in(scratch), "nothing of it runs")


def test_a_key_is_handed_over_and_never_shown(
    home: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(home, SAYS_ITS_KEY, monkeypatch)
    found = probe(replace(home, anthropic_api_key=KEY), "claude")
    assert (found.ok, found.kind) == (False, "auth")
    assert "authentication failed for [hidden]" in found.error
    assert KEY not in repr(found)


def test_a_custom_provider_is_found_in_the_store_which_is_only_read(
    home: Settings, stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(home, TELLS, monkeypatch)
    with stores.opened(home) as store:
        _add(store)
        before = dump(store)
        found = probe(home, "custom:mine")
        assert dump(store) == before
    assert found.ok
    assert "[hidden]" in found.answer
    assert KEY not in repr(found)


def _add(store: Store) -> None:
    service = CustomProvider(
        id="mine", harness=Harness.CLAUDE, base_url="http://127.0.0.1:1", api_key=KEY
    )
    do(store, add_custom_provider, service)


@pytest.mark.parametrize("provider", ["nonsense", "custom:nobody", "http"])
def test_what_cannot_run_is_said_so(tmp_path: Path, provider: str) -> None:
    found = probe(Settings(home=tmp_path / "none", workspace=tmp_path / "ws"), provider)
    assert isinstance(found, ProbeResult)
    assert (found.ok, found.kind) == (False, "setup")
    assert found.error
    assert not (tmp_path / "none").exists()


def test_its_status_and_its_document_say_the_same(tmp_path: Path) -> None:
    environ = {**os.environ, "BULLPEN_HOME": str(tmp_path / "none")}
    for provider, status in (("echo", 0), ("nonsense", 1)):
        done = subprocess.run(
            [sys.executable, "-m", "bullpen.processor.probe", "--provider", provider],
            env=environ,
            capture_output=True,
            timeout=SOON,
        )
        assert done.returncode == status
        assert json.loads(done.stdout)["ok"] is (status == 0)


def _running_in(directory: Path) -> list[int]:
    """The processes that work somewhere below."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.cwd().startswith(str(directory)):
                found.append(process.pid)
        except psutil.Error:
            continue
    return found
