"""bullpen doctor: run the checks, print the report and fix what can be fixed."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace

import click
from click.shell_completion import CompletionItem

from bullpen.cli.command import Result, command
from bullpen.cli.options import dry_run, yes
from bullpen.cli.output import confirm, echo, join, style
from bullpen.cli.probe import probe
from bullpen.core.clock import Clock, SystemClock
from bullpen.core.errors import BullpenError
from bullpen.core.settings import Settings
from bullpen.core.settings.parse import load_lenient
from bullpen.ops.doctor.check import Check, CheckState, Finding
from bullpen.ops.doctor.examine import ALL_CHECKS, run_checks, select_checks
from bullpen.ops.doctor.installation import Installation, open_database

BUSY_SECONDS = 1
"""The lock timeout of the checks: a locked database is a finding, not a reason to wait."""

GROUP_NAMES = {
    "settings": "Settings",
    "fs": "Home and files",
    "db": "Database",
    "disk": "Disks",
    "clock": "Clock",
    "service": "Services",
    "net": "Network",
    "queue": "Queue",
    "provider": "Providers",
    "agent": "Agents",
    "budget": "Budget",
    "schedule": "Schedules",
    "heartbeat": "Heartbeats",
    "secret": "Secrets",
    "plugin": "Plugins",
    "backup": "Backups",
}
COLOURS = {"critical": "red", "warning": "yellow", "unknown": "magenta", "info": "cyan"}
RANK_ORDER = ("critical", "warning", "unknown", "info")
INDENT = 12
MIN_COLUMNS = 40


class DoctorRun:
    """Runs checks on the installation that the environment names."""

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
        self._installation: Installation | None = None

    def run(self) -> list[Finding]:
        """Run the checks; the findings are in the order of the catalogue."""
        self.close()
        settings, problems = load_lenient(self._environ)
        quick = replace(settings, busy_seconds=BUSY_SECONDS)
        self._installation = Installation(
            settings=quick,
            environ=self._environ,
            now=self._clock.now(),
            database=open_database(quick),
            problems=problems,
            deep=self._deep,
            ask=lambda provider, model: _probe_error(settings, provider, model),
        )
        findings = self._with_progress(run_checks(self._installation, self._checks))
        by_id = {each.id: each for each in findings}
        return [by_id[each.id] for each in self._checks]

    def close(self) -> None:
        """Close the database."""
        if self._installation is not None:
            self._installation.database.close()
            self._installation = None

    def _with_progress(self, findings: Iterable[Finding]) -> Iterator[Finding]:
        """Show progress on a terminal."""
        if not (self._deep and sys.stderr.isatty()):
            yield from findings
            return
        from rich.console import Console  # only here: the command line begins without
        from rich.progress import track

        count = len(self._checks)
        console = Console(stderr=True)
        yield from track(findings, "Looking", total=count, console=console, transient=True)


def _probe_error(settings: Settings, provider: str, model: str) -> str:
    """Why the provider did not answer; empty if it did."""
    result = probe(settings, provider, model)
    return "" if result.ok else f"{result.error} ({result.kind})"


@dataclass(frozen=True, slots=True)
class FixResult:
    """What a fix did, or why it failed."""

    id: str
    steps: tuple[str, ...]
    said: str = ""
    """A detail, such as where a backup is."""
    error: str = ""


def fixable(findings: Sequence[Finding]) -> list[Finding]:
    """The findings that can be fixed."""
    return [each for each in findings if each.state is CheckState.FOUND and each.fix is not None]


def print_plan(findings: Sequence[Finding]) -> None:
    """Print the steps of the fixes to standard error."""
    echo("This can be put right:", err=True)
    for each in findings:
        assert each.fix is not None
        for step in each.fix.steps:
            echo(f"  {each.id:<20} {step}", err=True)


def apply_fixes(findings: Sequence[Finding]) -> list[FixResult]:
    """Apply the fixes one after the other; one that fails does not stop the others."""
    fixed = []
    for each in findings:
        done = _apply(each)
        fixed.append(done)
        said = f"could not be put right: {done.error}" if done.error else "is put right"
        more = f" ({done.said})" if done.said else ""
        echo(f"{each.id} {said}{more}", err=True)
    return fixed


def _apply(finding: Finding) -> FixResult:
    fix = finding.fix
    assert fix is not None
    try:
        said = fix.apply()
    except BullpenError as error:
        return FixResult(finding.id, fix.steps, error=f"{error}. {error.hint}")
    except OSError as error:
        return FixResult(finding.id, fix.steps, error=str(error))
    return FixResult(finding.id, fix.steps, said or "")


def report_fields(
    settings: Settings, findings: Sequence[Finding], fixed: Sequence[FixResult]
) -> dict[str, object]:
    """The report for a JSON document."""
    checks = [
        {
            "id": each.id,
            "severity": each.severity.value,
            "state": each.state.value,
            "text": each.text,
            "remedy": each.remedy,
            "fixable": each.fix is not None,
        }
        for each in findings
    ]
    return {
        "home": str(settings.home),
        "checks": checks,
        "counts": _counts(findings),
        "fixed": [asdict(each) for each in fixed],
    }


def exit_status(findings: Iterable[Finding], fixed: Iterable[FixResult] = ()) -> int:
    """1 if something is critical, 3 with warnings or unknown results, else 0."""
    ranks = {rank(each) for each in findings}
    if "critical" in ranks:
        return 1
    return 3 if ranks & {"warning", "unknown"} or any(each.error for each in fixed) else 0


def rank(finding: Finding) -> str:
    """The severity, or `unknown`; empty if the check passed."""
    if finding.state is CheckState.UNKNOWN:
        return "unknown"
    return finding.severity.value if finding.state is CheckState.FOUND else ""


def print_report(findings: Sequence[Finding], *, offer: bool) -> None:
    """Print the problems, the worst first, and the groups that are fine in one line."""
    shown = [each for each in findings if each.state is CheckState.FOUND]
    by_group: dict[str, list[Finding]] = {}
    for each in shown:
        by_group.setdefault(each.group, []).append(each)
    for name, group in sorted(by_group.items(), key=lambda each: min(map(_order, each[1]))):
        echo(style(GROUP_NAMES.get(name, name), bold=True))
        for each in sorted(group, key=_order):
            _show(rank(each), f"{each.id}: {each.text}", each.remedy)
    _show_unknown([each for each in findings if each.state is CheckState.UNKNOWN])
    bad = {each.group for each in findings if rank(each)}
    fine = dict.fromkeys(each.group for each in findings if each.group not in bad)
    if fine:
        for line in _wrapped(f"Fine: {', '.join(GROUP_NAMES.get(each, each) for each in fine)}", 0):
            echo(style(line, fg="green"))
    for line in _wrapped(_summary(findings, offer), 0):
        echo(line)


def _order(finding: Finding) -> int:
    return RANK_ORDER.index(rank(finding))


def _show_unknown(findings: Sequence[Finding]) -> None:
    by_text: dict[str, list[str]] = {}
    for each in findings:
        by_text.setdefault(each.text, []).append(each.id)
    if by_text:
        echo(style("Not known", bold=True))
    for text, ids in by_text.items():
        _show("unknown", f"{text}: {', '.join(ids)}", "")


def _show(kind: str, text: str, remedy: str) -> None:
    mark = style(f"  {kind:<{INDENT - 3}} ", fg=COLOURS[kind])
    first, *rest = _wrapped(text, INDENT)
    echo(join(mark, first))
    for line in rest:
        echo(" " * INDENT + line)
    if remedy:
        first, *rest = _wrapped(remedy, INDENT + 2)
        echo(join(" " * INDENT, style("→ ", bold=True), first))
        for line in rest:
            echo(" " * (INDENT + 2) + line)


def _wrapped(text: str, indent: int) -> list[str]:
    """The text wrapped to the terminal; one line for a pipe."""
    line = " ".join(text.split())
    if not sys.stdout.isatty():
        return [line]
    width = max(MIN_COLUMNS, shutil.get_terminal_size().columns) - indent
    return textwrap.wrap(line, width, break_on_hyphens=False) or [""]


def _summary(findings: Sequence[Finding], offer: bool) -> str:
    counts = _counts(findings)
    words = {
        "critical": "critical",
        "warning": "to be warned of",
        "unknown": "not known",
        "info": "to know",
    }
    shown = [f"{counts[name]} {word}" for name, word in words.items() if counts[name]]
    text = f"{', '.join(shown) or 'Nothing is wrong'}; {counts['ok']} fine"
    count = sum(each.fix is not None for each in findings)
    return text + (f". bullpen doctor --fix puts {count} right" if offer and count else "")


def _counts(findings: Iterable[Finding]) -> dict[str, int]:
    found = Counter(rank(each) or each.state.value for each in findings)
    return {
        name: found[name] for name in (*RANK_ORDER, CheckState.OK.value, CheckState.SKIPPED.value)
    }


def list_checks(checks: Sequence[Check]) -> Result:
    """What is checked."""
    names = ("id", "severity", "about", "deep")
    document = [
        dict(zip(names, (each.id, each.severity.value, each.about, each.deep), strict=True))
        for each in checks
    ]
    rows = [
        (each.id, each.severity.value, each.about + (" (--deep)" if each.deep else ""))
        for each in checks
    ]
    return Result(document, rows=[("CHECK", "SEVERITY", "LOOKS FOR"), *rows])


def _complete(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    groups = {f"{each.group}.": "" for each in ALL_CHECKS}
    names = {**groups, **{each.id: each.about for each in ALL_CHECKS}}
    return [
        CompletionItem(name, help=about or None)
        for name, about in names.items()
        if name.startswith(incomplete)
    ]


@command(people_only="look into this installation")
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
def doctor(
    settings: Settings,
    fix: bool,
    deep: bool,
    only: tuple[str, ...],
    listed: bool,
    dry_run: bool,
    yes: bool,
) -> Result:
    """Look at everything, and say what is wrong and what to do. Nothing is changed without --fix.

    The exit status is 0 if all is well, 3 with warnings, 1 if something is critical.

    \b
    Examples:
      bullpen doctor
      bullpen doctor --deep
      bullpen doctor --fix --dry-run
      bullpen doctor --only db --only fs.home_perms --json
    """
    checks = select_checks(only)
    for each in only:
        if not select_checks([each]):
            raise click.UsageError(f"There is no check {each!r}. `bullpen doctor --list` has all.")
    if (dry_run or yes) and not fix:
        raise click.UsageError("--dry-run and --yes go with --fix.")
    if listed:
        return list_checks(checks)
    examination = DoctorRun(os.environ, checks, deep)
    fixed: list[FixResult] = []
    try:
        findings = examination.run()
        fixes = fixable(findings) if fix else []
        if fixes:
            print_plan(fixes)
        if fixes and not dry_run:
            which = "this" if len(fixes) == 1 else f"these {len(fixes)}"
            confirm(f"Put right {which}", yes, many=True)
            fixed = apply_fixes(fixes)
            findings = examination.run()
    finally:
        examination.close()
    return Result(
        report_fields(settings, findings, fixed),
        show=lambda: print_report(findings, offer=not fix),
        status=exit_status(findings, fixed),
    )
