"""Puts right what can be: what is done is said before, and what fails keeps nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import click

from bullpen.cli.visible import sanitize
from bullpen.core.doctor.check import CheckState, Finding
from bullpen.core.errors import BullpenError


@dataclass(frozen=True, slots=True)
class FixResult:
    """What was done, and what came of it."""

    id: str
    steps: tuple[str, ...]
    said: str = ""
    """What more there is to say, as where a backup lies."""
    error: str = ""


def fixable(findings: Sequence[Finding]) -> list[Finding]:
    """What can be put right."""
    return [each for each in findings if each.state is CheckState.FOUND and each.fix is not None]


def print_plan(findings: Sequence[Finding]) -> None:
    """Say what would be done, beside what is printed for programs."""
    click.echo("This can be put right:", err=True)
    for each in findings:
        assert each.fix is not None
        for step in each.fix.steps:
            click.echo(f"  {each.id:<20} {sanitize(step)}", err=True)


def apply_fixes(findings: Sequence[Finding]) -> list[FixResult]:
    """Do it, one after the other; what fails keeps nothing else from being done."""
    fixed = []
    for each in findings:
        done = _one(each)
        fixed.append(done)
        said = f"could not be put right: {done.error}" if done.error else "is put right"
        more = f" ({done.said})" if done.said else ""
        click.echo(sanitize(f"{each.id} {said}{more}"), err=True)
    return fixed


def _one(finding: Finding) -> FixResult:
    fix = finding.fix
    assert fix is not None
    try:
        said = fix.do()
    except BullpenError as error:
        return FixResult(finding.id, fix.steps, error=f"{error}. {error.hint}")
    except OSError as error:
        return FixResult(finding.id, fix.steps, error=str(error))
    return FixResult(finding.id, fix.steps, said or "")
