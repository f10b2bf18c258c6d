"""bullpen doctor: looks at everything, says what is wrong, and puts right what it can."""

from __future__ import annotations

import os
import sys

import click
from click.shell_completion import CompletionItem

from bullpen.cli.acting import require_person
from bullpen.cli.confirm import confirm, dry_run, yes
from bullpen.cli.doctor.examination import DoctorRun
from bullpen.cli.doctor.fixing import FixResult, apply_fixes, fixable, print_plan
from bullpen.cli.doctor.report import exit_status, print_checks, print_report, report_fields
from bullpen.cli.output import as_json, print_json
from bullpen.core.doctor.catalogue import ALL_CHECKS, select_checks
from bullpen.core.settings import Settings


def _complete(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    groups = {f"{each.group}.": "" for each in ALL_CHECKS}
    names = {**groups, **{each.id: each.about for each in ALL_CHECKS}}
    return [
        CompletionItem(name, help=about or None)
        for name, about in names.items()
        if name.startswith(incomplete)
    ]


@click.command()
@click.option("--fix", is_flag=True, help="Put right what can be: say what, ask, and do it.")
@click.option("--deep", is_flag=True, help="Look at all of the database, and ask each provider.")
@click.option(
    "--only",
    multiple=True,
    metavar="ID",
    shell_complete=_complete,
    help="This check, or all whose ids begin so, as db; may be given again.",
)
@click.option("--list", "listed", is_flag=True, help="List the checks, and make none.")
@dry_run
@yes
@as_json
@click.pass_obj
def doctor(
    settings: Settings,
    fix: bool,
    deep: bool,
    only: tuple[str, ...],
    listed: bool,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Look at everything, and say what is wrong and what to do. Nothing is changed without --fix.

    The exit status is 0 if all is well, 3 with warnings, 1 if something is critical.

    \b
    Examples:
      bullpen doctor
      bullpen doctor --deep
      bullpen doctor --fix --dry-run
      bullpen doctor --only db --only fs.home_perms --json
    """
    require_person("look into this installation")
    checks = select_checks(only)
    for each in only:
        if not select_checks([each]):
            raise click.UsageError(f"There is no check {each!r}. `bullpen doctor --list` has all.")
    if (dry_run or yes) and not fix:
        raise click.UsageError("--dry-run and --yes go with --fix.")
    if listed:
        print_checks(checks, as_json)
        return
    examination = DoctorRun(os.environ, checks, deep)
    fixed: list[FixResult] = []
    try:
        findings = examination.look()
        wanted = fixable(findings) if fix else []
        if wanted:
            print_plan(wanted)
        if wanted and not dry_run:
            confirm(
                f"Put right {'this' if len(wanted) == 1 else f'these {len(wanted)}'}",
                yes,
                many=True,
            )
            fixed = apply_fixes(wanted)
            findings = examination.look()
    finally:
        examination.close()
    if as_json:
        print_json(report_fields(settings, findings, fixed))
    else:
        print_report(findings, offer=not fix)
    sys.exit(exit_status(findings, fixed))
