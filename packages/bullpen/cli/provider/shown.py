"""How a provider is shown; its key never is."""

from __future__ import annotations

from dataclasses import asdict

from bullpen.core.roster.available import ProviderOrigin, ProviderSummary
from bullpen.core.roster.programs import Program

_NEEDS_NONE = {"echo": "built in", "http": "outside workers"}


def provider_fields(found: ProviderSummary, program: Program | None) -> dict[str, object]:
    """All of it for a JSON document."""
    return {
        **asdict(found),
        "installed": found.program is None or (program is not None and program.path is not None),
        "path": None if program is None else program.path,
        "version": "" if program is None else program.version,
    }


def describe_availability(found: ProviderSummary, program: Program | None) -> str:
    """Whether it is there, in words."""
    if found.origin is ProviderOrigin.MISSING:
        return "is not there"
    if program is None:
        return _NEEDS_NONE.get(found.provider, found.origin.value)
    if program.path is None:
        own = program.name == found.provider
        return "not installed" if own else f"{program.name} is not installed"
    return program.version or "installed"


def format_agents(found: ProviderSummary) -> str:
    """Which agents it answers for."""
    return " ".join(found.agents)
