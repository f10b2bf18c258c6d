"""One examination: opens what is examined, shows how far it is, and may be made again."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from bullpen.cli.probing import probe
from bullpen.core.clock import Clock, SystemClock
from bullpen.core.doctor.check import Check, Finding
from bullpen.core.doctor.examine import run_checks
from bullpen.core.doctor.patient import Installation, open_database
from bullpen.core.settings import Settings
from bullpen.core.settings_problems import load_lenient

BUSY_SECONDS = 1
"""Nobody waits for a database that is locked: that it is, is the finding."""


class DoctorRun:
    """These checks of the installation that this environment names."""

    def __init__(
        self,
        environ: Mapping[str, str],
        checks: Sequence[Check],
        deep: bool,
        clock: Clock | None = None,
    ) -> None:
        self._environ = environ
        self._checks = checks
        self._deep = deep
        self._clock = clock or SystemClock()
        self._patient: Installation | None = None

    def look(self) -> list[Finding]:
        """Make the checks; what comes of them is in the order of the catalogue."""
        self.close()
        settings, problems = load_lenient(self._environ)
        quick = replace(settings, busy_seconds=BUSY_SECONDS)
        self._patient = Installation(
            settings=quick,
            environ=self._environ,
            now=self._clock.now(),
            database=open_database(quick),
            problems=problems,
            deep=self._deep,
            ask=lambda provider, model: _probe_error(settings, provider, model),
        )
        found = {each.id: each for each in self._shown(run_checks(self._patient, self._checks))}
        return [found[each.id] for each in self._checks]

    def close(self) -> None:
        """Let go of what was examined."""
        if self._patient is not None:
            self._patient.database.close()
            self._patient = None

    def _shown(self, findings: Iterable[Finding]) -> Iterator[Finding]:
        """On a terminal, with a line that says how far it is."""
        if not (self._deep and sys.stderr.isatty()):
            yield from findings
            return
        from rich.console import Console  # only here: the command line begins without
        from rich.progress import track

        count = len(self._checks)
        console = Console(stderr=True)
        yield from track(findings, "Looking", total=count, console=console, transient=True)


def _probe_error(settings: Settings, provider: str, model: str) -> str:
    """Why a provider did not answer one word; nothing if it did."""
    said = probe(settings, provider, model)
    return "" if said.ok else f"{said.error} ({said.kind})"
