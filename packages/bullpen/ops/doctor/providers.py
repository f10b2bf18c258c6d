"""Checks of providers: installed, starts, logged in, answers."""

from __future__ import annotations

import queue
import subprocess
import threading
from collections.abc import Mapping
from contextlib import suppress

from bullpen.core.registry import PROVIDERS, ProviderInfo
from bullpen.core.roster.agents import HTTP, list_agents
from bullpen.core.roster.programs import install_command
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
from bullpen.ops.services.search_path import search_path

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
    path = search_path(installation.settings, installation.environ)
    needed = _programs(installation)
    gone = {name: agents for name, agents in needed.items() if path.find(name) is None}
    if not gone:
        return PASSED
    found = "; ".join(f"{name} (for {_names(agents)})" for name, agents in sorted(gone.items()))
    if differences := path.differences(gone):
        return Problem(
            text=f"not on the PATH of the services: {found}", remedy=" ".join(differences)
        )
    name, agents = sorted(gone.items())[0]
    install = install_command(name) or f"install {name}"
    return Problem(
        text=f"not installed: {found}",
        remedy=f"{install}; then: bullpen agent resume {agents[0]}",
    )


@check("provider.broken", Severity.CRITICAL, Needs.SCHEMA)
def broken(installation: Installation) -> Problem | Verdict:
    """A program that agents need is installed, and does not start."""
    versions, bad = [], []
    path = search_path(installation.settings, installation.environ)
    for name in sorted(_programs(installation)):
        program = path.find(name)
        if program is None:
            continue  # provider.not_installed reports it
        version, error = _version(program, {**installation.environ, "PATH": path.runs})
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
    path = search_path(installation.settings, installation.environ)
    missing = {
        name: info
        for name, info in _providers().items()
        if name in used
        and info.login is not None
        and path.find(info.program or name)
        and not info.login.found(installation.settings, installation.environ)
    }
    if not missing:
        return PASSED
    name, info = next(iter(missing.items()))
    log_in = info.log_in or f"run `{name}`"
    return Problem(
        text=f"no login and no API key found for {', '.join(missing)}",
        remedy=f"Log in: {log_in}. To test it: bullpen provider test {name}",
    )


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
