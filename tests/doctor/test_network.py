"""What can be reached over the network, and by whom."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

import pytest

from bullpen.core.access.keys import Scope, add_key
from tests.cli.command import Bullpen
from tests.conformance.verbs import do
from tests.doctor.examined import fine, found, seen, store_of

OFFICE = {"BULLPEN_API_HOST": "0.0.0.0"}


def test_a_port_that_another_program_has(bullpen: Bullpen) -> None:
    fine(bullpen, "net.port_taken")
    with socket.create_server(("127.0.0.1", int(bullpen.environ["BULLPEN_API_PORT"]))):
        text = found(bullpen, "net.port_taken", "critical")
        assert f"process {os.getpid()}" in text


def test_a_port_that_a_program_with_the_homes_environment_has(bullpen: Bullpen) -> None:
    code = (
        "import socket, sys, time;"
        "server = socket.create_server(('127.0.0.1', int(sys.argv[1])));"
        "print(flush=True); time.sleep(60)"
    )
    port = bullpen.environ["BULLPEN_API_PORT"]
    with subprocess.Popen(
        [sys.executable, "-c", code, port], env=bullpen.environment(), stdout=subprocess.PIPE
    ) as other:
        try:
            assert other.stdout is not None
            assert other.stdout.readline()
            assert f"process {other.pid}" in found(bullpen, "net.port_taken", "critical")
        finally:
            other.kill()


def test_beyond_this_machine_without_a_key(bullpen: Bullpen) -> None:
    fine(bullpen, "net.bind_public_no_auth")
    assert "0.0.0.0" in found(bullpen, "net.bind_public_no_auth", "critical", **OFFICE)
    with store_of(bullpen) as store:
        do(store, add_key, "office", [Scope.READ])
    fine(bullpen, "net.bind_public_no_auth", **OFFICE)


def test_beyond_this_machine_in_plain_text(bullpen: Bullpen) -> None:
    assert seen(bullpen, "net.tls_missing_public")["state"] == "skipped"
    found(bullpen, "net.tls_missing_public", "warning", **OFFICE)


def test_beyond_this_machine_without_a_name(bullpen: Bullpen) -> None:
    fine(bullpen, "net.host_allowlist_missing")
    found(bullpen, "net.host_allowlist_missing", "warning", **OFFICE)
    named = {**OFFICE, "BULLPEN_API_NAMES": "office"}
    fine(bullpen, "net.host_allowlist_missing", **named)
    star = {"BULLPEN_API_NAMES": "*"}
    assert "`*`" in found(bullpen, "net.host_allowlist_missing", "warning", **star)


@pytest.mark.parametrize(
    ("origins", "severity"),
    [
        ("https://a.example.org,null", "critical"),
        ("*", "warning"),
        ("https://*.example.org", "warning"),
        ("http://office.example.org", "warning"),
    ],
)
def test_pages_that_anybody_can_be(bullpen: Bullpen, origins: str, severity: str) -> None:
    found(bullpen, "net.origin_wildcard", severity, BULLPEN_API_ORIGINS=origins)


def test_pages_of_ones_own(bullpen: Bullpen) -> None:
    own = "https://a.example.org,http://localhost:8080,http://127.0.0.1:1"
    fine(bullpen, "net.origin_wildcard", BULLPEN_API_ORIGINS=own)


@pytest.mark.parametrize("token", ["", "short"])
def test_a_token_that_could_be_guessed(bullpen: Bullpen, token: str) -> None:
    path = bullpen.home / "token"
    path.write_text("bp_" + "x" * 40)
    fine(bullpen, "net.token_short")
    path.write_text(token)
    found(bullpen, "net.token_short", "critical")
