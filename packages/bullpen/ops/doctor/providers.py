"""Checks of providers: installed, starts, logged in, answers."""

from __future__ import annotations

import queue
import shutil
import subprocess
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from bullpen.core.registry import PROVIDERS, Login, ProviderInfo
from bullpen.core.roster.agents import HTTP, list_agents
from bullpen.core.roster.providers import (
    BUILT_IN_PROVIDERS,
    CUSTOM_PREFIX,
    installed_providers,
    list_custom_providers,
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


def _providers() -> dict[str, ProviderInfo]:
    return {info.name: info for _, info in installed_providers()}


def _programs(installation: Installation) -> dict[str, list[str]]:
    """The programs that agents need, and the ids of these agents."""
    with installation.store.read() as tx:
        agents = list_agents(tx)
        programs: dict[str, str | None] = {
            f"{CUSTOM_PREFIX}{each.id}": each.harness.value for each in list_custom_providers(tx)
        }
    programs |= {name: info.program for name, info in _providers().items()}
    needed: dict[str, list[str]] = {}
    for each in agents:
        if program := programs.get(each.provider):
            needed.setdefault(program, []).append(each.id)
    return needed


def _names(agents: list[str]) -> str:
    return ", ".join(f"@{each}" for each in agents[:4]) + (" and more" if len(agents) > 4 else "")


@check("provider.unknown", Severity.CRITICAL, Needs.SCHEMA)
def unknown_provider(installation: Installation) -> Problem | Verdict:
    """The provider of an agent does not exist; its messages cannot be answered."""
    with installation.store.read() as tx:
        agents = list_agents(tx)
        custom = {f"{CUSTOM_PREFIX}{each.id}" for each in list_custom_providers(tx)}
    known = {*BUILT_IN_PROVIDERS, *PROVIDERS.plugin_names(), *custom}
    lost = [each for each in agents if each.provider not in known]
    if not lost:
        return PASSED
    told = ", ".join(f"@{each.id} ({each.provider[:60]})" for each in lost[:4])
    return Problem(
        text=f"unknown provider: {told}",
        remedy=f"bullpen agent set {lost[0].id} --provider echo; bullpen provider list",
    )


@check("provider.not_installed", Severity.CRITICAL, Needs.SCHEMA)
def not_installed(installation: Installation) -> Problem | Verdict:
    """A program that agents need is not installed, or not on the PATH."""
    path = installation.environ.get("PATH")
    gone = {
        name: agents
        for name, agents in _programs(installation).items()
        if shutil.which(name, path=path) is None
    }
    if not gone:
        return PASSED
    told = "; ".join(f"{name} (for {_names(agents)})" for name, agents in sorted(gone.items()))
    name, agents = sorted(gone.items())[0]
    return Problem(
        text=f"not installed, or not on the PATH: {told}",
        remedy=f"Install {name} and log in; or: bullpen agent set {agents[0]} --provider echo",
    )


@check("provider.broken", Severity.CRITICAL, Needs.SCHEMA)
def broken(installation: Installation) -> Problem | Verdict:
    """A program that agents need is installed, and does not start."""
    versions, bad = [], []
    for name in sorted(_programs(installation)):
        program = shutil.which(name, path=installation.environ.get("PATH"))
        if program is None:
            continue  # provider.not_installed reports it
        version, error = _version(program, installation.environ)
        if error:
            bad.append(f"{name}: {error}")
        elif version:
            versions.append(f"{name} {version}")
    if not bad:
        return Verdict(CheckState.OK, ", ".join(versions))
    return Problem(text=f"does not start: {'; '.join(bad)}", remedy="Install it again.")


def _version(program: str, environ: Mapping[str, str]) -> tuple[str, str]:
    """The version that a program prints, or its error; both are empty if it is slow."""
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
def login_missing(installation: Installation) -> Problem | Verdict:
    """No API key and no login was found for a program that agents need."""
    with installation.store.read() as tx:
        used = {each.provider for each in list_agents(tx)}
    path = installation.environ.get("PATH")
    missing = {
        name: info.login
        for name, info in _providers().items()
        if name in used
        and info.login is not None
        and shutil.which(info.program or name, path=path)
        and not _logged_in(installation, info.login)
    }
    if not missing:
        return PASSED
    name, login = next(iter(missing.items()))
    return Problem(
        text=f"no login and no API key found for {', '.join(missing)}",
        remedy=f"Run {name} and log in; or: bullpen config set {login.credentials[0].setting}",
    )


def _logged_in(installation: Installation, login: Login) -> bool:
    if login.configured(installation.settings):
        return True
    if any(installation.environ.get(each) for each in login.variables):
        return True
    directory = Path(installation.environ.get(login.directory_variable) or login.directory)
    with suppress(RuntimeError):  # there is no home directory for ~
        return any((directory.expanduser() / each).exists() for each in login.files)
    return False


@check("provider.silent", Severity.CRITICAL, Needs.SCHEMA, deep=True, seconds=PROBE_SECONDS)
def provider_silent(installation: Installation) -> Problem | Verdict:
    """A provider that agents use does not answer a one-word prompt."""
    ask = installation.ask
    if ask is None:
        return skipped("providers cannot be called here")
    with installation.store.read() as tx:
        used = {(each.provider, each.model) for each in list_agents(tx)}
    wanted = sorted(each for each in used if each[0] != HTTP)
    errors = _ask_all(ask, wanted)
    bad = [
        f"{provider}{f' ({model})' if model else ''}: {errors[provider, model][:ERROR_CHARS]}"
        for provider, model in wanted
        if errors[provider, model]
    ]
    if not bad:
        return Verdict(text=f"answered: {', '.join(sorted({name for name, _ in wanted}))}")
    return Problem(text="; ".join(bad), remedy="bullpen provider list; log in, or set an API key")


def _ask_all(ask: AskProvider, wanted: list[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """The error of each provider and model; empty if it answered."""
    errors: dict[tuple[str, str], str] = {}
    waiting = queue.SimpleQueue[tuple[str, str]]()
    for each in wanted:
        waiting.put(each)

    def work() -> None:
        with suppress(queue.Empty):
            while True:
                each = waiting.get_nowait()
                errors[each] = "the call failed"
                errors[each] = ask(*each)

    # Daemon threads: an interrupted command does not wait for them.
    threads = [
        threading.Thread(target=work, name="ask", daemon=True) for _ in range(MAX_PARALLEL_PROBES)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return errors


CHECKS = (unknown_provider, not_installed, broken, login_missing, provider_silent)
