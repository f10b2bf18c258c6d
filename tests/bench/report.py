"""The report: one table for people, one JSON document for programs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tests.bench.bars import BARS
from tests.bench.measure import Measure, Unit
from tests.bench.section import Section

HEAD = ("what", "median", "rounds", "bar", "", "")


def table(sections: Mapping[str, Section]) -> str:
    """All measures, section by section, and the bars beside them."""
    rows = [row for name, section in sections.items() for row in _rows(name, section)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEAD))]
    return "\n".join(_line(row, widths) for row in rows)


def verdicts(sections: Mapping[str, Section]) -> dict[str, str]:
    """PASS or MISS for each bar that was measured."""
    return {
        each.what: BARS[each.what].verdict(each)
        for section in sections.values()
        for each in section.measures
        if each.what in BARS
    }


def summary(sections: Mapping[str, Section], missing: Sequence[str]) -> str:
    """What a reader must not miss."""
    found = verdicts(sections)
    passed = sum(verdict == "PASS" for verdict in found.values())
    checks = {what: ok for section in sections.values() for what, ok in section.checks.items()}
    lines = [f"{passed} of {len(found)} bars are kept."]
    lines += [f"MISS  {what}" for what, verdict in found.items() if verdict == "MISS"]
    lines += [f"{'ok' if ok else 'WRONG':5} {what}" for what, ok in checks.items()]
    lines += [f"left out: {each}" for each in sorted(set(missing))]
    return "\n".join(lines)


def write(
    path: Path,
    sections: Mapping[str, Section],
    machine: Mapping[str, object],
    missing: Sequence[str],
) -> None:
    """The whole run as JSON."""
    document = {
        "machine": machine,
        "missing": sorted(set(missing)),
        "sections": {
            name: {
                "checks": section.checks,
                "measures": [_document(each) for each in section.measures],
            }
            for name, section in sections.items()
        },
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def _rows(name: str, section: Section) -> Iterator[tuple[str, ...]]:
    yield (f"[{name}]", *HEAD[1:])
    for each in section.measures:
        bar = BARS.get(each.what)
        spread = f"{_number(min(each.rounds), each.unit)} – {_number(max(each.rounds), each.unit)}"
        yield (
            each.what,
            f"{_number(each.value, each.unit)} {each.unit}".strip(),
            spread if len(each.rounds) > 1 else "",
            "" if bar is None else str(bar),
            "" if bar is None else bar.verdict(each),
            each.note,
        )
    yield ("",) * len(HEAD)


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    cells = [
        cell.rjust(width) if column in (1, 2) else cell.ljust(width)
        for column, (cell, width) in enumerate(zip(row, widths, strict=True))
    ]
    return "  ".join(cells).rstrip()


def _number(value: float, unit: Unit) -> str:
    match unit:
        case Unit.RATE | Unit.MICROS | Unit.KIB | Unit.MIB | Unit.COUNT:
            return f"{value:,.0f}".replace(",", " ")
        case Unit.MILLIS | Unit.SECONDS | Unit.RATIO | Unit.PERCENT:
            return f"{value:.2f}"


def _document(measure: Measure) -> dict[str, object]:
    bar = BARS.get(measure.what)
    found: dict[str, object] = {
        "what": measure.what,
        "value": measure.value,
        "unit": measure.unit.value,
        "rounds": list(measure.rounds),
    }
    if measure.note:
        found["note"] = measure.note
    if measure.details:
        found["details"] = dict(measure.details)
    if bar is not None:
        found |= {"bar": str(bar), "verdict": bar.verdict(measure)}
    return found
