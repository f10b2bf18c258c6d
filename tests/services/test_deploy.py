"""What deploy/ says fits what it starts."""

from __future__ import annotations

import configparser
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from bullpen.core.settings import Settings
from tests.cli.command import Bullpen

ROOT = Path(__file__).resolve().parents[2]
UNIT = ROOT / "deploy" / "systemd" / "bullpen.service"
CONTAINER = (ROOT / "deploy" / "container" / "Containerfile").read_text()


def unit() -> configparser.RawConfigParser:
    """The systemd unit."""
    parser = configparser.RawConfigParser()
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    parser.read(UNIT)
    return parser


def test_systemd_stays_in_the_foreground_and_waits_for_the_grace_of_the_runs() -> None:
    service = unit()["Service"]
    program, *words = shlex.split(service["ExecStart"])
    assert Path(program).name == "bullpen"
    assert words == ["up", "--foreground"]
    assert int(service["TimeoutStopSec"]) > Settings().grace_seconds + 90
    assert service["KillMode"] == "mixed"  # the signal to stop is for `up` alone


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd here")
def test_systemd_finds_no_fault_with_the_unit(tmp_path: Path) -> None:
    program = tmp_path / "bullpen"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    copy = tmp_path / "bullpen.service"
    copy.write_text(UNIT.read_text().replace("%h/.local/bin/bullpen", str(program)))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--user", str(copy)],
        env={"XDG_RUNTIME_DIR": str(tmp_path), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    if "Failed to initialize manager" in done.stderr:
        pytest.skip("systemd cannot look at units here")
    assert (done.returncode, done.stderr) == (0, "")


def test_the_container_starts_the_same_and_is_not_root() -> None:
    lines = CONTAINER.splitlines()
    assert 'ENTRYPOINT ["tini", "--", "bullpen"]' in lines
    assert 'CMD ["up", "--foreground"]' in lines
    assert lines.index("USER bullpen") < lines.index('CMD ["up", "--foreground"]')
    for source in re.findall(r"^COPY (\S+) ", CONTAINER, flags=re.MULTILINE):
        assert (ROOT / source).exists(), source


def test_what_the_containers_health_asks_is_the_state_of_the_services(empty: Bullpen) -> None:
    assert 'CMD ["bullpen", "status"]' in CONTAINER
    assert empty("status").status == 3
