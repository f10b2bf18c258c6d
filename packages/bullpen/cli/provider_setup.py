"""Whether a provider can answer: its program and its login, and the steps that are missing."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from bullpen.core.message import ErrorKind
from bullpen.core.registry import ProviderInfo
from bullpen.core.roster.agents import Agent
from bullpen.core.roster.programs import install_command
from bullpen.core.roster.providers import (
    CUSTOM_PREFIX,
    find_custom_provider,
    installed_providers,
)
from bullpen.core.store.transaction import Transaction
from bullpen.ops.services.search_path import record_change, search_path


def setup_steps(tx: Transaction, agents: Sequence[Agent]) -> list[str]:
    """Lines about what each provider of these agents lacks; none for one that seems ready."""
    users: dict[str, list[str]] = {}
    for each in agents:
        users.setdefault(each.provider, []).append(each.id)
    return [line for name, ids in users.items() for line in _steps(tx, name, ids)]


def test_hints(provider: str, kind: str) -> list[str]:
    """Lines about how to fix a provider whose test failed."""
    info = _info(provider)
    if kind == ErrorKind.AUTH and provider.startswith(CUSTOM_PREFIX):
        return [f"Next: bullpen provider set {provider} --key"]
    if kind == ErrorKind.AUTH and info is not None and info.log_in:
        return [f"Log in: {info.log_in}"]
    return []


def adopt_shell_path(tx: Transaction, agents: Iterable[Agent]) -> list[str]:
    """Let runs use this shell's PATH if only that has a program of these agents."""
    programs = {program for each in agents if (program := _program(tx, each.provider))}
    return record_change(tx.settings, os.environ, programs) if programs else []


def _steps(tx: Transaction, provider: str, agents: list[str]) -> list[str]:
    program = _program(tx, provider)
    if program is None:
        return []
    names = ", ".join(f"@{each}" for each in agents)
    path = search_path(tx.settings, os.environ)
    at = path.find(program)
    if at is None:
        if differences := path.differences([program]):
            return differences
        return _missing_program(program, provider, names, agents)
    info = _info(provider)
    if (
        info is not None
        and info.login is not None
        and not info.login.found(tx.settings, os.environ)
    ):
        return [
            f"Warning: {program} is installed ({at}), but no login or key was found.",
            f"  Log in: {info.log_in}",
            f"  Test:   bullpen provider test {provider}",
        ]
    return []


def _missing_program(program: str, provider: str, names: str, agents: list[str]) -> list[str]:
    info = _info(provider)
    lines = [
        f"Warning: {program} is not installed, so {names} cannot answer yet.",
        f"  Install: {install_command(program) or f'see the documentation of {program}'}",
    ]
    if info is not None and info.log_in:
        lines.append(f"  Log in:  {info.log_in}")
    return [*lines, f"  Then:    bullpen agent resume {' '.join(agents)}"]


def _info(provider: str) -> ProviderInfo | None:
    return next((info for _, info in installed_providers() if info.name == provider), None)


def _program(tx: Transaction, provider: str) -> str | None:
    """The command line that this provider needs."""
    if provider.startswith(CUSTOM_PREFIX):
        custom = find_custom_provider(tx, provider.removeprefix(CUSTOM_PREFIX))
        return None if custom is None else custom.harness.value
    info = _info(provider)
    return None if info is None else info.program
