"""Landing without Spark: in this process if there are few rows, else in one below it.

This process has SQLite open by Python's module, and then must not read it by ADBC (`facts.read`),
which takes a third of the time. The process below has only that. It gets the address of the store
on its standard input, because it may contain a password.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from bullpen.core import errors
from bullpen.core.errors import BullpenError, ReportsError
from bullpen.reports.facts.read import StoreAddress
from bullpen.reports.job.land import Landed, Landing, Range

FEW_IDS = 20_000
"""The most ids that are landed sooner than a process starts."""

MAX_CHARACTERS = 400


def land_here(landing: Landing, parts: Sequence[Range]) -> list[Landed]:
    """Land ranges on this machine."""
    if landing.store.dialect != "sqlite" or sum(each.ids for each in parts) <= FEW_IDS:
        return _land(landing, parts)
    return land_in_process(landing, parts)


def land_in_process(landing: Landing, parts: Sequence[Range]) -> list[Landed]:
    """Land ranges in a process of its own, which this one kills if it is interrupted."""
    request = {
        "directory": str(landing.directory.absolute()),
        "zone": landing.zone,
        "url": landing.store.url,
        "parts": [asdict(each) for each in parts],
    }
    done = subprocess.run(
        [sys.executable, "-P", "-m", __name__],
        input=json.dumps(request),
        capture_output=True,
        text=True,
    )
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines()
        reason = lines[-1][:MAX_CHARACTERS] if lines else f"status {done.returncode}"
        raise ReportsError(f"landing facts failed: {reason}")
    answer = json.loads(done.stdout)
    if "error" in answer:
        raise _parse_error(answer["error"])
    return [Landed.from_json(each) for each in answer["landed"]]


def _land(landing: Landing, parts: Sequence[Range]) -> list[Landed]:
    return [each for part in parts for each in landing.land(part)]


def _describe_error(error: BullpenError | OSError) -> Mapping[str, object]:
    if isinstance(error, BullpenError):
        return {"type": type(error).__name__, "text": str(error), "hint": error.hint}
    return {"errno": error.errno, "text": error.strerror or str(error)}


def _parse_error(fields: Mapping[str, str]) -> Exception:
    if "errno" in fields:
        return OSError(fields["errno"], fields["text"])
    kind: type[BullpenError] = getattr(errors, fields["type"])
    return kind(fields["text"], hint=fields["hint"])


def main() -> None:
    """Land what standard input asks for, and print what was landed."""
    request = json.load(sys.stdin)
    landing = Landing(Path(request["directory"]), request["zone"], StoreAddress(request["url"]))
    try:
        landed = _land(landing, [Range(**each) for each in request["parts"]])
        answer: dict[str, object] = {"landed": [each.to_json() for each in landed]}
    except (BullpenError, OSError) as error:
        answer = {"error": _describe_error(error)}
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
