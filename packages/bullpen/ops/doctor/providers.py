"""Checks of what answers for the agents: is it installed, does it start, is somebody logged in."""

from __future__ import annotations

import queue
import shutil
import subprocess
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from bullpen.core.roster.agents import HTTP, Agent, list_agents
from bullpen.core.roster.programs import PROGRAMS
from bullpen.core.roster.providers import (
    BUILT_IN_PROVIDERS,
    CUSTOM_PREFIX,
    list_custom_providers,
    plugin_provider_names,
)
from bullpen.ops.doctor.check import (
    PASSED,
    CheckState,
    Needs,
    Problem,
    Severity,
    Verdict,
    check,
    skipped,
)
from bullpen.ops.doctor.installation import AskProvider, Installation

VERSION_SECONDS = 1.7
PROBE_SECONDS = 180.0
MAX_PARALLEL_PROBES = 3
ERROR_CHARS = 200


@dataclass(frozen=True, slots=True)
class Login:
    """How one can see, without a run, that somebody is logged in."""

    settings: tuple[str, ...]
    variables: tuple[str, ...]
    directory: str
    """The variable that names where the program keeps its own files."""
    place: str
    files: tuple[str, ...]


LOGINS: Mapping[str, Login] = {
    "claude": Login(
        settings=("anthropic_api_key", "anthropic_oauth_token"),
        variables=(
            *("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"),
            *("CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY"),
        ),
        directory="CLAUDE_CONFIG_DIR",
        place="~/.claude",
        files=(".credentials.json",),
    ),
    "codex": Login(
        settings=("openai_api_key",),
        variables=("OPENAI_API_KEY", "CODEX_API_KEY"),
        directory="CODEX_HOME",
        place="~/.codex",
        files=("auth.json",),
    ),
}


def _agents(patient: Installation) -> list[Agent]:
    with patient.store.read() as tx:
        return list_agents(tx)


def _programs(patient: Installation) -> dict[str, list[str]]:
    """The command lines that agents need, and which agents those are."""
    with patient.store.read() as tx:
        agents = list_agents(tx)
        harness = {
            f"{CUSTOM_PREFIX}{each.id}": each.harness.value for each in list_custom_providers(tx)
        }
    found: dict[str, list[str]] = {}
    for each in agents:
        program = harness.get(each.provider, each.provider)
        if program in PROGRAMS:
            found.setdefault(program, []).append(each.id)
    return found


def _names(agents: list[str]) -> str:
    return ", ".join(f"@{each}" for each in agents[:4]) + (" and more" if len(agents) > 4 else "")


@check("provider.unknown", Severity.CRITICAL, Needs.SCHEMA)
def unknown_provider(patient: Installation) -> Problem | Verdict:
    """Agents have a provider that does not exist: what is sent to them cannot be answered."""
    with patient.store.read() as tx:
        agents = list_agents(tx)
        custom = {f"{CUSTOM_PREFIX}{each.id}" for each in list_custom_providers(tx)}
    known = {*BUILT_IN_PROVIDERS, *plugin_provider_names(), *custom}
    lost = [each for each in agents if each.provider not in known]
    if not lost:
        return PASSED
    told = ", ".join(f"@{each.id} ({each.provider[:60]})" for each in lost[:4])
    return Problem(
        text=f"there is no such provider: {told}",
        remedy=f"bullpen agent set {lost[0].id} --provider echo; bullpen provider list",
    )


@check("provider.not_installed", Severity.CRITICAL, Needs.SCHEMA)
def not_installed(patient: Installation) -> Problem | Verdict:
    """A program that agents need is not there."""
    path = patient.environ.get("PATH")
    gone = {
        name: agents
        for name, agents in _programs(patient).items()
        if shutil.which(name, path=path) is None
    }
    if not gone:
        return PASSED
    told = "; ".join(f"{name} (for {_names(agents)})" for name, agents in sorted(gone.items()))
    name, agents = sorted(gone.items())[0]
    return Problem(
        text=f"not installed, or not on the PATH: {told}",
        remedy=f"Install {name} and log in, or: bullpen agent set {agents[0]} --provider echo",
    )


@check("provider.broken", Severity.CRITICAL, Needs.SCHEMA)
def broken(patient: Installation) -> Problem | Verdict:
    """A program that agents need is there and does not start."""
    versions, bad = [], []
    for name in sorted(_programs(patient)):
        program = shutil.which(name, path=patient.environ.get("PATH"))
        if program is None:
            continue  # provider.not_installed says so
        version, error = _version(program, patient.environ)
        if error:
            bad.append(f"{name}: {error}")
        elif version:
            versions.append(f"{name} {version}")
    if not bad:
        return Verdict(CheckState.OK, ", ".join(versions))
    return Problem(text=f"it does not start: {'; '.join(bad)}", remedy="Install it again.")


def _version(program: str, environ: Mapping[str, str]) -> tuple[str, str]:
    """What it says of its version, or why it says nothing; slow ones are left alone."""
    try:
        done = subprocess.run(
            [program, "--version"],
            env={name: environ[name] for name in ("PATH", "HOME", "LANG") if name in environ},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=VERSION_SECONDS,
            cwd="/",
        )
    except subprocess.TimeoutExpired:
        return "", ""
    except OSError as error:
        return "", error.strerror or str(error)
    said = (done.stdout + b"\n" + done.stderr).decode(errors="replace").strip()
    first = said.partition("\n")[0][:ERROR_CHARS]
    return (first, "") if done.returncode == 0 else ("", f"status {done.returncode}: {first}")


@check("provider.login", Severity.WARNING, Needs.SCHEMA)
def login_missing(patient: Installation) -> Problem | Verdict:
    """There is no sign that somebody is logged in to a program that agents need."""
    out = []
    with patient.store.read() as tx:
        used = {each.provider for each in list_agents(tx)}
    for name, how in LOGINS.items():
        if name in used and shutil.which(name, path=patient.environ.get("PATH")):
            out += [] if _logged_in(patient, how) else [name]
    if not out:
        return PASSED
    return Problem(
        text=f"there is no sign of a login or a key for {', '.join(out)}",
        remedy=f"Run {out[0]} once and log in, or: bullpen config set {LOGINS[out[0]].settings[0]}",
    )


def _logged_in(patient: Installation, how: Login) -> bool:
    if any(getattr(patient.settings, each) for each in how.settings):
        return True
    if any(patient.environ.get(each) for each in how.variables):
        return True
    directory = Path(patient.environ.get(how.directory) or how.place)
    with suppress(RuntimeError):  # nobody's home is known
        return any((directory.expanduser() / each).exists() for each in how.files)
    return False


@check("provider.silent", Severity.CRITICAL, Needs.SCHEMA, deep=True, seconds=PROBE_SECONDS)
def provider_silent(patient: Installation) -> Problem | Verdict:
    """A provider that agents use does not answer: each is asked for one word."""
    ask = patient.ask
    if ask is None:
        return skipped("nobody is there to ask them")
    wanted = sorted({(each.provider, each.model) for each in _agents(patient)})
    wanted = [each for each in wanted if each[0] != HTTP]
    errors = _ask_all(ask, wanted)
    bad = [
        f"{provider}{f' ({model})' if model else ''}: {errors[provider, model][:ERROR_CHARS]}"
        for provider, model in wanted
        if errors[provider, model]
    ]
    if not bad:
        return Verdict(text=f"answered: {', '.join(sorted({name for name, _ in wanted}))}")
    return Problem(text="; ".join(bad), remedy="bullpen provider list; log in, or set a key")


def _ask_all(ask: AskProvider, wanted: list[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """Why each did not answer; empty where it did."""
    errors: dict[tuple[str, str], str] = {}
    waiting = queue.SimpleQueue[tuple[str, str]]()
    for each in wanted:
        waiting.put(each)

    def work() -> None:
        with suppress(queue.Empty):
            while True:
                each = waiting.get_nowait()
                errors[each] = "it could not be asked"
                errors[each] = ask(*each)

    # Daemons: who ends the command does not wait for them, and what they started ends with it.
    threads = [
        threading.Thread(target=work, name="ask", daemon=True) for _ in range(MAX_PARALLEL_PROBES)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return errors


CHECKS = (unknown_provider, not_installed, broken, login_missing, provider_silent)
