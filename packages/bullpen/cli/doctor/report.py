"""What an examination has found, as a person or a program reads it."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict

import click

from bullpen.cli.doctor.fixing import FixResult
from bullpen.cli.output import print_json, print_table
from bullpen.cli.visible import sanitize
from bullpen.core.doctor.check import Check, CheckState, Finding
from bullpen.core.settings import Settings

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


def report_fields(
    settings: Settings, findings: Sequence[Finding], fixed: Sequence[FixResult]
) -> dict[str, object]:
    """All of it for a program."""
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
    """0 if all is well, 3 with warnings or what nobody can tell, 1 if something is critical."""
    ranks = {rank(each) for each in findings}
    if "critical" in ranks:
        return 1
    return 3 if ranks & {"warning", "unknown"} or any(each.error for each in fixed) else 0


def rank(finding: Finding) -> str:
    """How bad it is, in a word; nothing if it is fine."""
    if finding.state is CheckState.UNKNOWN:
        return "unknown"
    return finding.severity.value if finding.state is CheckState.FOUND else ""


def print_report(findings: Sequence[Finding], *, offer: bool) -> None:
    """Print what is wrong, the worst first, and in one line what is fine."""
    told = [each for each in findings if each.state is CheckState.FOUND]
    by_group: dict[str, list[Finding]] = {}
    for each in told:
        by_group.setdefault(each.group, []).append(each)
    for name, group in sorted(by_group.items(), key=lambda each: min(map(_order, each[1]))):
        _say(click.style(GROUP_NAMES.get(name, name), bold=True))
        for each in sorted(group, key=_order):
            _show(rank(each), f"{each.id}: {each.text}", each.remedy)
    _show_unknown([each for each in findings if each.state is CheckState.UNKNOWN])
    bad = {each.group for each in findings if rank(each)}
    fine = dict.fromkeys(each.group for each in findings if each.group not in bad)
    if fine:
        for line in _wrapped(f"Fine: {', '.join(GROUP_NAMES.get(each, each) for each in fine)}", 0):
            _say(click.style(line, fg="green"))
    for line in _wrapped(_sum(findings, offer), 0):
        _say(line)


def _order(finding: Finding) -> int:
    return RANK_ORDER.index(rank(finding))


def _show_unknown(findings: Sequence[Finding]) -> None:
    by_text: dict[str, list[str]] = {}
    for each in findings:
        by_text.setdefault(each.text, []).append(each.id)
    if by_text:
        _say(click.style("Not known", bold=True))
    for text, ids in by_text.items():
        _show("unknown", f"{text}: {', '.join(ids)}", "")


def _show(kind: str, text: str, remedy: str) -> None:
    mark = click.style(f"  {kind:<{INDENT - 3}} ", fg=COLOURS[kind])
    first, *rest = _wrapped(sanitize(text), INDENT)
    _say(mark + first)
    for line in rest:
        _say(" " * INDENT + line)
    if remedy:
        first, *rest = _wrapped(sanitize(remedy), INDENT + 2)
        _say(" " * INDENT + click.style("→ ", bold=True) + first)
        for line in rest:
            _say(" " * (INDENT + 2) + line)


def _wrapped(text: str, indent: int) -> list[str]:
    """The lines of a text: as wide as a terminal is; one that can be searched in a pipe."""
    line = " ".join(text.split())
    if not sys.stdout.isatty():
        return [line]
    width = max(MIN_COLUMNS, shutil.get_terminal_size().columns) - indent
    return textwrap.wrap(line, width, break_on_hyphens=False) or [""]


def _sum(findings: Sequence[Finding], offer: bool) -> str:
    counts = _counts(findings)
    words = {
        "critical": "critical",
        "warning": "to be warned of",
        "unknown": "not known",
        "info": "to know",
    }
    told = [f"{counts[name]} {word}" for name, word in words.items() if counts[name]]
    text = f"{', '.join(told) or 'Nothing is wrong'}; {counts['ok']} fine"
    count = sum(each.fix is not None for each in findings)
    return text + (f". bullpen doctor --fix puts {count} right" if offer and count else "")


def _counts(findings: Iterable[Finding]) -> dict[str, int]:
    found = Counter(rank(each) or each.state.value for each in findings)
    return {
        name: found[name] for name in (*RANK_ORDER, CheckState.OK.value, CheckState.SKIPPED.value)
    }


def print_checks(checks: Sequence[Check], as_json: bool) -> None:
    """Print what is looked at."""
    if as_json:
        names = ("id", "severity", "about", "deep")
        print_json(
            [
                dict(zip(names, (each.id, each.severity.value, each.about, each.deep), strict=True))
                for each in checks
            ]
        )
        return
    rows = [("CHECK", "SEVERITY", "LOOKS FOR")]
    rows += [
        (each.id, each.severity.value, each.about + (" (--deep)" if each.deep else ""))
        for each in checks
    ]
    print_table(rows, "")


def _say(line: str) -> None:
    click.echo(line, color=False if os.environ.get("NO_COLOR") else None)
