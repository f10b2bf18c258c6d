"""Check an account live in a process of its own: `cli` must not import the channels."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass

from bullpen.core.ids import RUN_VARIABLE
from bullpen.core.settings import ENVIRONMENT_PREFIX, Settings
from bullpen.core.settings.accounts import account_variable
from bullpen.core.strict_json import read_json

CHECK_SECONDS = 90.0
REASON_CHARS = 300


@dataclass(frozen=True, slots=True)
class Finding:
    """One result of a check, in the platform's own terms."""

    ok: bool
    code: str
    text: str
    hint: str = ""


def check_account(
    settings: Settings, account: str, values: Mapping[str, str], *, probe: str = ""
) -> list[Finding]:
    """Connect to the platform with these settings and check them; `probe` is the owner's chat.

    The secrets are in the environment of the process, not in its arguments.
    """
    command = [sys.executable, "-m", "bullpen", "run", "channel", account, "--check"]
    command += ["--probe", probe] if probe else []
    try:
        done = subprocess.run(
            command,
            env=_environment(settings, account, values),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=CHECK_SECONDS,
        )
    except subprocess.TimeoutExpired:
        text = f"no result within {CHECK_SECONDS:.0f} seconds"
        return [Finding(ok=False, code="unreachable", text=text)]
    findings = _read(done.stdout)
    if findings is None:
        said = done.stderr.decode(errors="replace").strip().removeprefix("Error: ")
        text = said.partition("\n")[0][:REASON_CHARS] or "the check ended without a result"
        return [Finding(ok=False, code="failed", text=_hide(text, values))]
    return findings


def _environment(settings: Settings, account: str, values: Mapping[str, str]) -> dict[str, str]:
    environ = {name: text for name, text in os.environ.items() if name != RUN_VARIABLE}
    environ[f"{ENVIRONMENT_PREFIX}HOME"] = str(settings.home)
    for name, value in values.items():
        environ[account_variable(f"{account}.{name}")] = value
    return environ


def _read(out: bytes) -> list[Finding] | None:
    try:
        found = read_json(out.decode())
    except ValueError:
        return None
    if not isinstance(found, list):
        return None
    return [_finding(each) for each in found if isinstance(each, dict)]


def _finding(fields: Mapping[str, object]) -> Finding:
    def text(name: str) -> str:
        return str(fields.get(name) or "")

    return Finding(fields.get("ok") is True, text("code"), text("text"), text("hint"))


def _hide(text: str, values: Mapping[str, str]) -> str:
    for each in values.values():
        text = text.replace(each, "********") if len(each) >= 8 else text
    return text


def write_findings(findings: list[Finding]) -> str:
    """The findings of a probe as the store keeps them."""
    return json.dumps([{"ok": each.ok, "code": each.code, "text": each.text} for each in findings])
