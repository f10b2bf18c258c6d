"""Puts right what can be: what is done is said before, and a backup is made where it matters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import click

from bullpen.cli.visible import visible
from bullpen.core.doctor.check import Finding, State
from bullpen.core.doctor.patient import Patient
from bullpen.core.errors import BullpenError


@dataclass(frozen=True, slots=True)
class Fixed:
    """What was done, and what came of it."""

    id: str
    steps: tuple[str, ...]
    backup: str = ""
    """Where the database was copied to before."""
    error: str = ""


def fixable(findings: Sequence[Finding]) -> list[Finding]:
    """What can be put right."""
    return [each for each in findings if each.state is State.FOUND and each.fix is not None]


def show_plan(findings: Sequence[Finding]) -> None:
    """Say what would be done, beside what is printed for programs."""
    click.echo("This can be put right:", err=True)
    for each in findings:
        assert each.fix is not None
        backup = ("copy the database first",) if each.fix.backup else ()
        for step in (*backup, *each.fix.steps):
            click.echo(f"  {each.id:<20} {visible(step)}", err=True)


def put_right(patient: Patient, findings: Sequence[Finding]) -> list[Fixed]:
    """Do it, one after the other; what fails keeps nothing else from being done."""
    fixed = []
    for each in findings:
        done = _one(patient, each)
        fixed.append(done)
        said = f"could not be put right: {done.error}" if done.error else "is put right"
        kept = f" (the database before: {done.backup})" if done.backup else ""
        click.echo(visible(f"{each.id} {said}{kept}"), err=True)
    return fixed


def _one(patient: Patient, finding: Finding) -> Fixed:
    fix = finding.fix
    assert fix is not None
    backup = ""
    try:
        if fix.backup:
            backup = _back_up(patient)
        fix.do()
    except BullpenError as error:
        return Fixed(finding.id, fix.steps, backup, f"{error}. {error.hint}")
    except OSError as error:
        return Fixed(finding.id, fix.steps, backup, str(error))
    return Fixed(finding.id, fix.steps, backup)


def _back_up(patient: Patient) -> str:
    # Only here: hardly any examination needs it.
    from bullpen.core.backup.make import back_up
    from bullpen.core.backup.place import backup_place

    return str(back_up(patient.store, backup_place(patient.settings, None)).backup.path)
