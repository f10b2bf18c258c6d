#!/usr/bin/env python3
"""Stands in for `claude`: a real program that prints its lines, and does what its prompt orders.

`!say TEXT` answers so, `!exit N` ends with that status, `!tool` starts one in a session of its own
that outlives it, `!sleep N` takes its time, `!empty` answers nothing, `!wait` waits for ever, and
`!run COMMAND` answers what a shell said, `!echo` all that it was told. Each run is written down
with its session, and a second one of the same agent beside it as well.
"""

import json
import os
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

LOG = Path(os.environ["BULLPEN_HOME"], "runs.log")
AGENT = os.environ["BULLPEN_RUN"].rpartition(".")[0]


def log(*words: object) -> None:
    """Append a line."""
    with LOG.open("a") as file:
        file.write(" ".join([AGENT, str(os.getpid()), *map(str, words)]) + "\n")


def alive(pid: int) -> bool:
    """Whether this process runs."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def show(**event: object) -> None:
    """Print a line as claude does."""
    print(json.dumps(event), flush=True)


def say(text: str) -> None:
    """Print a text block."""
    show(type="assistant", message={"content": [{"type": "text", "text": text}]})


def main() -> None:
    """One run."""
    mark = Path(os.environ["BULLPEN_HOME"], f"running.{AGENT}")
    if mark.exists() and alive(int(mark.read_text())):
        log("overlap", mark.read_text())
    mark.write_text(str(os.getpid()))
    (session,) = (
        after for option, after in pairwise(sys.argv) if option in ("--session-id", "--resume")
    )
    log("began", "anew" if "--session-id" in sys.argv else "resumed", session)
    show(type="system", subtype="init", model="stand-in", session_id=session)
    said = []
    told = sys.stdin.read()
    for line in told.splitlines():
        order, _, rest = line.partition(" ")
        if order == "!say":
            say(rest)
            said.append(rest)
        elif order == "!exit":
            print("told to fail", file=sys.stderr)
            sys.exit(int(rest))
        elif order == "!tool":
            subprocess.Popen(["sleep", "1000"], start_new_session=True)
            log("tool")
        elif order == "!sleep":
            time.sleep(float(rest))
        elif order == "!run":
            done = subprocess.run(rest, shell=True, capture_output=True, text=True)
            say(f"{done.returncode}: {done.stdout}{done.stderr}")
            said.append(done.stdout)
        elif order == "!echo":
            say(told)
        elif order == "!wait":
            log("waits")
            time.sleep(1000)
    log("ended")
    show(
        type="result",
        subtype="success",
        is_error=False,
        result=said[-1] if said else "",
        session_id=session,
        usage={"input_tokens": 3, "output_tokens": 2},
        total_cost_usd=0.01,
    )


main()
