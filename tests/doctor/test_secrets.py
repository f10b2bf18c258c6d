"""Where secrets lie open; what they are is never said."""

from __future__ import annotations

import stat
import subprocess
import sys

import pytest

from bullpen.core.roster.providers import CustomProvider, Harness, add_custom_provider
from tests.cli.command import Bullpen
from tests.conformance.verbs import do
from tests.doctor.examined import fine, fixed, found, seen, store_of

KEY = "sk-ant-quite-secret-indeed"
TOKEN = "bp_" + "Aq7-_" * 9
SLEEPS = "import sys; print('here', flush=True); sys.stdin.read()"


def test_settings_with_a_secret_that_others_may_read(bullpen: Bullpen) -> None:
    file = bullpen.home / "settings.toml"
    file.write_text("max_runs = 3\n")
    file.chmod(0o644)
    fine(bullpen, "secret.in_config")  # there is none in it
    file.write_text(f'anthropic_api_key = "{KEY}"\n')
    assert "644" in found(bullpen, "secret.in_config", "warning")
    bullpen.home.chmod(0o755)
    found(bullpen, "secret.in_config", "critical")
    fixed(bullpen, "secret.in_config")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_settings_with_the_password_of_a_database(bullpen: Bullpen) -> None:
    file = bullpen.home / "settings.toml"
    file.write_text('database_url = "postgresql://ann:hunter2secret@127.0.0.1:1/none"\n')
    file.chmod(0o644)
    found(bullpen, "secret.in_config", "warning")


@pytest.mark.parametrize("which", ["setting", "token", "key of Bullpen's own", "provider"])
def test_a_process_that_was_called_with_a_secret(bullpen: Bullpen, which: str) -> None:
    fine(bullpen, "secret.in_argv", BULLPEN_OPENAI_API_KEY=KEY)
    secret, more = KEY, {}
    if which == "setting":
        more = {"BULLPEN_OPENAI_API_KEY": KEY}
    elif which == "token":
        secret = "of-an-older-version-0123456789"
        (bullpen.home / "token").write_text(secret)
    elif which == "provider":
        service = CustomProvider(
            id="mine", harness=Harness.CLAUDE, base_url="http://127.0.0.1:1", api_key=KEY
        )
        with store_of(bullpen) as store:
            do(store, add_custom_provider, service)
    else:
        secret = TOKEN
    with subprocess.Popen(
        [sys.executable, "-c", SLEEPS, f"Authorization: Bearer {secret}"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"here\n"
        text = found(bullpen, "secret.in_argv", "critical", **more)
        said = bullpen("doctor", **more)
    assert f"process {process.pid}" in text
    assert secret not in said.out + said.err + text


def test_a_log_with_a_secret_in_it(bullpen: Bullpen) -> None:
    logs = bullpen.home / "logs"
    assert seen(bullpen, "secret.log_hit")["state"] == "skipped"
    logs.mkdir(mode=0o700)
    (logs / "api.log").write_text(f"it said: x{KEY}x, which is another word, and bp_short\n")
    fine(bullpen, "secret.log_hit", BULLPEN_OPENAI_API_KEY=KEY)
    (logs / "api.log").write_text(f"it said: {KEY}.\n")
    fine(bullpen, "secret.log_hit")  # which nobody knows for a secret
    text = found(bullpen, "secret.log_hit", "critical", BULLPEN_OPENAI_API_KEY=KEY)
    assert "api.log" in text
    assert KEY not in text
    (logs / "api.log").write_text(f"GET / Authorization: {TOKEN}\n")
    assert TOKEN not in found(bullpen, "secret.log_hit", "critical")


def test_the_beginning_of_a_long_log_is_looked_at_closely(bullpen: Bullpen) -> None:
    logs = bullpen.home / "logs"
    logs.mkdir(mode=0o700)
    (logs / "api.log").write_text(f"{TOKEN}\n" + "nothing\n" * 500_000)
    fine(bullpen, "secret.log_hit")
    found(bullpen, "secret.log_hit", "critical", "--deep")


def test_a_pipe_among_the_logs_keeps_nobody_waiting(bullpen: Bullpen) -> None:
    logs = bullpen.home / "logs"
    logs.mkdir(mode=0o700)
    subprocess.run(["mkfifo", logs / "pipe.log"], check=True)
    fine(bullpen, "secret.log_hit")
