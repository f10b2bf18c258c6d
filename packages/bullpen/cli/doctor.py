"""bullpen doctor: run the checks, print the report and fix problems."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace

import click
from click.shell_completion import CompletionItem

from bullpen.cli.command import Result, command
from bullpen.cli.options import dry_run, yes
from bullpen.cli.output import confirm, echo, format_count, join, style, wrap
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
    "channel": "Channels",
    "provider": "Providers",
    "agent": "Agents",
    "budget": "Budget",
    "schedule": "Schedules",
    "heartbeat": "Heartbeats",
    "reports": "Reports",
    "secret": "Secrets",
    "plugin": "Plugins",
    "backup": "Backups",
}
COLOURS = {"critical": "red", "warning": "yellow", "unknown": "magenta", "info": "cyan"}
RANK_ORDER = ("critical", "warning", "unknown", "info")
INDENT = 12


class DoctorRun:
    """Runs checks on the installation of this environment."""

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
        """Run the checks; the findings are in the order of the checks."""
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
        from rich.console import Console  # imported here, because it is slow to load
        from rich.progress import track

        count = len(self._checks)
        console = Console(stderr=True)
        yield from track(findings, "Checking", total=count, console=console, transient=True)


def _probe_error(settings: Settings, provider: str, model: str) -> str:
    """The reason why the provider did not answer; empty if it did."""
    result = probe(settings, provider, model)
    return "" if result.ok else f"{result.error} ({result.kind})"


@dataclass(frozen=True, slots=True)
class FixResult:
    """The result of a fix."""

    id: str
    steps: tuple[str, ...]
    said: str = ""
    """An extra detail, such as the path of a backup."""
    error: str = ""


def fixable(findings: Sequence[Finding]) -> list[Finding]:
    """The findings that have a fix."""
    return [each for each in findings if each.state is CheckState.FOUND and each.fix is not None]


def print_plan(findings: Sequence[Finding]) -> None:
    """Print the steps of the fixes to standard error."""
    echo(f"{format_count(len(findings), 'problem')} can be fixed:", err=True)
    for each in findings:
        assert each.fix is not None
        for step in each.fix.steps:
            echo(f"  {each.id:<20} {step}", err=True)


def apply_fixes(findings: Sequence[Finding]) -> list[FixResult]:
    """Apply the fixes in order; a failed fix does not stop the others."""
    fixed = []
    for each in findings:
        done = _apply(each)
        fixed.append(done)
        more = f" ({done.said})" if done.said else ""
        said = f"Could not fix {each.id}: {done.error}" if done.error else f"Fixed {each.id}{more}."
        echo(said, err=True)
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
    """The severity, or `unknown`; empty if the check passed or was skipped."""
    if finding.state is CheckState.UNKNOWN:
        return "unknown"
    return finding.severity.value if finding.state is CheckState.FOUND else ""


def print_report(findings: Sequence[Finding], *, offer: bool) -> None:
    """Print the problems, the worst first, and the groups without problems in one line."""
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
        for line in wrap(f"OK: {', '.join(GROUP_NAMES.get(each, each) for each in fine)}"):
            echo(style(line, fg="green"))
    for line in wrap(_summary(findings, offer)):
        echo(line)


def _order(finding: Finding) -> int:
    return RANK_ORDER.index(rank(finding))


def _show_unknown(findings: Sequence[Finding]) -> None:
    by_text: dict[str, list[str]] = {}
    for each in findings:
        by_text.setdefault(each.text, []).append(each.id)
    if by_text:
        echo(style("Unknown", bold=True))
    for text, ids in by_text.items():
        _show("unknown", f"{text}: {', '.join(ids)}", "")


def _show(kind: str, text: str, remedy: str) -> None:
    first, *rest = wrap(text, " " * INDENT)
    echo(join(style(f"  {kind:<{INDENT - 3}} ", fg=COLOURS[kind]), first.lstrip()))
    for line in rest:
        echo(line)
    if remedy:
        first, *rest = wrap(remedy, " " * (INDENT + 2))
        echo(join(" " * INDENT, style("→ ", bold=True), first.lstrip()))
        for line in rest:
            echo(line)


def _summary(findings: Sequence[Finding], offer: bool) -> str:
    counts = _counts(findings)
    nouns = {
        "critical": ("critical", "critical"),
        "warning": ("warning", "warnings"),
        "unknown": ("unknown", "unknown"),
        "info": ("notice", "notices"),
    }
    shown = [
        format_count(counts[name], one, many) for name, (one, many) in nouns.items() if counts[name]
    ]
    text = ", ".join([*(shown or ["No problems"]), f"{counts['ok']} ok"])
    count = sum(each.fix is not None for each in findings)
    if not (offer and count):
        return text
    return f"{text}. To fix {format_count(count, 'problem')}, run: bullpen doctor --fix"


def _counts(findings: Iterable[Finding]) -> dict[str, int]:
    found = Counter(rank(each) or each.state.value for each in findings)
    return {
        name: found[name] for name in (*RANK_ORDER, CheckState.OK.value, CheckState.SKIPPED.value)
    }


def list_checks(checks: Sequence[Check]) -> Result:
    """The list of checks."""
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


@command(people_only="examine this installation")
@click.option("--fix", is_flag=True, help="Fix problems, after a confirmation.")
@click.option("--deep", is_flag=True, help="Check the whole database, and call each provider.")
@click.option(
    "--only",
    multiple=True,
    metavar="ID",
    shell_complete=_complete,
    help="Only this check or group, such as db. Repeatable.",
)
@click.option("--list", "listed", is_flag=True, help="List the checks without running them.")
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
    """Find problems of this installation and fix them.

    Nothing is changed without --fix. The exit status is 0 without problems, 3 with warnings and
    1 if a problem is critical.

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
            raise click.UsageError(f"check {each!r} does not exist; see `bullpen doctor --list`")
    if (dry_run or yes) and not fix:
        raise click.UsageError("--dry-run and --yes require --fix")
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
            confirm(f"Fix {format_count(len(fixes), 'problem')}", yes, many=True)
            fixed = apply_fixes(fixes)
            findings = examination.run()
    finally:
        examination.close()
    return Result(
        report_fields(settings, findings, fixed),
        show=lambda: print_report(findings, offer=not fix),
        status=exit_status(findings, fixed),
    )
