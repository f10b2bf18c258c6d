"""bullpen doctor: looks at everything, says what is wrong, and puts right what it can."""

from __future__ import annotations

import os
import sys

import click
from click.shell_completion import CompletionItem

from bullpen.cli.acting import only_people
from bullpen.cli.confirm import confirm, dry_run, yes
from bullpen.cli.doctor.examination import Examination
from bullpen.cli.doctor.fixing import Fixed, fixable, put_right, show_plan
from bullpen.cli.doctor.report import document, exit_status, show_checks, show_report
from bullpen.cli.output import as_json, show_json
from bullpen.core.doctor.catalogue import CHECKS, chosen
from bullpen.core.settings import Settings


def _complete(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    groups = {f"{each.group}.": "" for each in CHECKS}
    names = {**groups, **{each.id: each.about for each in CHECKS}}
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
    only_people("look into this installation")
    checks = chosen(only)
    for each in only:
        if not chosen([each]):
            raise click.UsageError(f"There is no check {each!r}. `bullpen doctor --list` has all.")
    if (dry_run or yes) and not fix:
        raise click.UsageError("--dry-run and --yes go with --fix.")
    if listed:
        show_checks(checks, as_json)
        return
    examination = Examination(os.environ, checks, deep)
    fixed: list[Fixed] = []
    try:
        findings = examination.look()
        wanted = fixable(findings) if fix else []
        if wanted:
            show_plan(wanted)
        if wanted and not dry_run:
            confirm(
                f"Put right {'this' if len(wanted) == 1 else f'these {len(wanted)}'}",
                yes,
                many=True,
            )
            fixed = put_right(wanted)
            findings = examination.look()
    finally:
        examination.close()
    if as_json:
        show_json(document(settings, findings, fixed))
    else:
        show_report(findings, offer=not fix)
    sys.exit(exit_status(findings, fixed))
