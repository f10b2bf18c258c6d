"""Runs the commands that a page shows, and compares their output with the page.

A block marked `console` is a transcript: `$ ` begins a command, `> ` continues it, and the other
lines are its output. A line `…` in the output stands for any number of lines. All blocks of a page
run in one shell, in order, in a new home directory with Bullpen's wheel to install. A block marked
`python` is written to the file that its first line names. An HTML comment `<!-- run: COMMAND -->`
runs a command that the page does not show.

Ids, times, process ids, versions and sizes differ from run to run: `PLACEHOLDERS` names them all.
An id that a page shows stands for the id of this run, also in the commands that follow.

`python -m tests.docs.transcripts [--all] [PAGE...]` writes the output of this run into the pages
where it differs; with --all everywhere, so that all times of a page are those of one run.
"""

from __future__ import annotations

import difflib
import os
import queue
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.ports import free_port

ROOT = Path(__file__).resolve().parents[2]
PAGES = (
    "README.md",
    "docs/tutorial/first-team.md",
    "docs/how-to/answer-over-http.md",
    "docs/how-to/connect-claude-and-codex.md",
    "docs/how-to/limit-cost.md",
    "docs/how-to/move-to-another-machine.md",
    "docs/how-to/set-up.md",
    "docs/how-to/upgrade.md",
    "docs/how-to/use-from-python.md",
    "docs/how-to/use-in-scripts.md",
    "docs/how-to/work-on-your-repository.md",
    "docs/how-to/write-a-plugin.md",
)
LIMIT_SECONDS = 120.0
COLUMNS = 100
DEFAULT_PORT = "3777"
ELLIPSIS = "…"
PROGRAMS = (
    "bash basename cat chmod cp cut date dirname env find git grep head ls mkdir mv ps rm sed sh"
    " sleep sort tail tar touch tr uname wc"
)
"""What a reader has, besides Bullpen. No claude and no codex, whatever this machine has."""

IDS = re.compile(
    r"\b(?:api|chat|chatroom|chatroom_batch|cli|heartbeat|internal|key|proactive|schedule|web)"
    r"_[0-9a-z]{8}\b"
)
_DAY = r"\b\d{4}-\d\d-\d\d"
_CLOCK = r"\d\d:\d\d(?::\d\d(?:\.\d+)?)?"
_ZONE = r"(?: ?(?:UTC|Z\b|[+-]\d\d:?\d\d))"
_UNIT = r"(?:ms|s|seconds?|min|minutes?|m|h|hours?|d|days?)\b"
PLACEHOLDERS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (name, re.compile(pattern))
    for name, pattern in (
        ("ID", IDS.pattern),
        ("BACKUP", r"\b\d{8}T?-?\d{6}[0-9a-zZ.-]*"),
        ("TIME", rf"{_DAY}(?:[ T]{_CLOCK})?{_ZONE}?"),
        ("TIME", r"\b\d\d:\d\d:\d\d(?:\.\d+)?\b"),
        ("TIME", r"\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)\w*,? TIME"),
        ("DURATION", rf"\b\d+(?:\.\d+)? ?{_UNIT}(?: \d+ ?{_UNIT})*"),
        ("SIZE", r"\b\d+(?:\.\d+)? ?(?:bytes|[kKMG]i?B)\b"),
        ("VERSION", r"\b\d+\.\d+(?:\.\d+)+\b"),
        ("COUNT rows", r"\b\d+ rows\b"),
        ("running PID", r"\b(?i:running) \d+"),
    )
)


@dataclass(slots=True)
class Step:
    """A command of a page, and the output that the page shows."""

    command: str
    line: int
    expected: list[str] = field(default_factory=list)
    end: int = 0
    hidden: bool = False
    """The lines of the output are those between the command and the line `end`, from 0."""


@dataclass(slots=True)
class Finished:
    """A command that was run: its output as it would stand on the page."""

    step: Step
    actual: list[str]

    @property
    def differs(self) -> bool:
        """Whether the page shows something else."""
        return not self.step.hidden and not matches(self.step.expected, self.actual)

    def diff(self) -> str:
        """The differences, with placeholders for what always differs."""
        lines = difflib.unified_diff(
            normalise(self.step.expected), normalise(self.actual), "page", "run", lineterm="", n=50
        )
        return "\n".join([f"line {self.step.line}: $ {self.step.command}", *lines])


def parse(text: str) -> list[Step]:
    """Find the commands of a page, hidden ones included, in order."""
    steps: list[Step] = []
    inside = False
    lines = text.splitlines()
    for at, line in enumerate(lines):
        if not inside:
            if line == "```python":
                program = lines[at + 1 : lines.index("```", at)]
                name = program[0].strip('"').partition(":")[0]
                code = "\n".join(program)
                steps.append(Step(f"cat >{name} <<'END'\n{code}\nEND", at + 1, hidden=True))
            if hidden := re.fullmatch(r"<!-- run: (.*) -->", line):
                steps.append(Step(hidden[1], at + 1, hidden=True))
            inside = line == "```console"
        elif line == "```":
            inside = False
        elif line.startswith("$ "):
            steps.append(Step(line[2:], at + 1, end=at + 1))
        elif line.startswith("> ") and not steps[-1].expected:
            steps[-1].command += "\n" + line[2:]
            steps[-1].end = at + 1
        else:
            steps[-1].expected.append(line)
            steps[-1].end = at + 1
    return steps


def normalise(lines: list[str]) -> list[str]:
    """Replace what differs from run to run, and the width of columns that hangs on it."""
    return [_normalise(line) for line in lines]


def _normalise(line: str) -> str:
    for name, pattern in PLACEHOLDERS:
        line = pattern.sub(name, line)
        line = re.sub(r"\s+", " ", line).strip() if name == "ID" else line
    return re.sub(r"([─━-])\1{3,}", r"\1", line)


def matches(expected: list[str], actual: list[str]) -> bool:
    """Whether the output is what the page shows; `…` stands for any number of lines."""
    pattern = "".join(
        r"(?:[^\n]*\n)*" if line == ELLIPSIS else re.escape(line) + r"\n"
        for line in normalise(expected)
    )
    return re.fullmatch(pattern, "".join(f"{each}\n" for each in normalise(actual))) is not None


def rewrite(text: str, results: list[Finished]) -> str:
    """Return the page with the output of these commands."""
    lines = text.splitlines()
    for done in reversed([each for each in results if not each.step.hidden]):
        step = done.step
        begin = step.end - len(step.expected)
        lines[begin : step.end] = _shortened(step.expected, done.actual)
    return "\n".join(lines) + "\n"


def _shortened(expected: list[str], actual: list[str]) -> list[str]:
    """The output, with `…` where the page has it: so many lines before, so many after."""
    if expected.count(ELLIPSIS) != 1:
        return actual
    before = expected.index(ELLIPSIS)
    after = len(expected) - before - 1
    if before + after >= len(actual):
        return actual
    return [*actual[:before], ELLIPSIS, *actual[len(actual) - after :]]


class Shell:
    """A reader's shell: every command sees the directory and variables that earlier ones left."""

    def __init__(self, home: Path, environ: dict[str, str], directory: Path) -> None:
        self._mark = f"done-{os.getpid()}-{id(self)}"
        self._home, self._port = home, environ["BULLPEN_API_PORT"]
        self._ids: dict[str, str] = {}
        """The ids that the page shows, and those of this run."""
        self._process = subprocess.Popen(
            ["bash", "--noprofile", "--norc"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=directory,
            env=environ,
            text=True,
            encoding="utf-8",
            errors="replace",
        )
        self._lines: queue.Queue[str] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line.rstrip("\n"))

    def run(self, step: Step) -> Finished:
        """Run a command to its end, and learn which ids its output stands for."""
        command = step.command
        for shown, real in self._ids.items():
            command = command.replace(shown, real)
        assert self._process.stdin is not None
        self._process.stdin.write(f"{{ {command}\n}} </dev/null\nprintf '\\n{self._mark}\\n'\n")
        self._process.stdin.flush()
        output: list[str] = []
        deadline = time.monotonic() + LIMIT_SECONDS
        while not output or output[-1] != self._mark:
            try:
                output.append(self._lines.get(timeout=max(0.0, deadline - time.monotonic())))
            except queue.Empty:
                raise AssertionError(f"{command} does not end: {output}") from None
        del output[-1]
        if output and not output[-1]:
            del output[-1]  # the line that the mark itself ended
        actual = [self._as_shown(line) for line in output]
        self._learn(step.expected, actual)
        return Finished(step, [self._renamed(line) for line in actual])

    def _as_shown(self, line: str) -> str:
        line = line.rstrip().replace(str(self._home), "~")
        return re.sub(rf"\b{self._port}\b", DEFAULT_PORT, line)

    def _learn(self, expected: list[str], actual: list[str]) -> None:
        known = set(self._ids.values())
        shown = [each for each in _ids(expected) if each not in self._ids]
        new = [each for each in _ids(actual) if each not in known]
        if len(shown) == len(new) or ELLIPSIS not in expected:
            self._ids.update(zip(shown, new, strict=False))

    def _renamed(self, line: str) -> str:
        for shown, real in self._ids.items():
            line = line.replace(real, shown)
        return line

    def close(self) -> None:
        """End the shell."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(LIMIT_SECONDS)
        self._reader.join(LIMIT_SECONDS)
        assert self._process.stdout is not None
        self._process.stdout.close()


def _ids(lines: list[str]) -> list[str]:
    return list(dict.fromkeys(IDS.findall("\n".join(lines))))


@contextmanager
def reader(directory: Path) -> Iterator[Shell]:
    """A shell in a new home directory, beside a checkout; nothing that it starts is left over."""
    home, programs = directory / "home", directory / "programs"
    home.mkdir()
    programs.mkdir()
    for name in PROGRAMS.split():
        if found := shutil.which(name):
            (programs / name).symlink_to(found)
    _script(programs / "uv", f'PYTHONPATH="{ROOT}" exec "{sys.executable}" -m tests.installed "$@"')
    standin = Path(__file__).with_name("claude.py")
    _script(directory / "claude", f'exec "{sys.executable}" "{standin}" "$@"')
    _script(
        programs / "install-claude",
        f'cp "{directory}/claude" "$HOME/.local/bin/" && mkdir -p "$HOME/.claude"'
        ' && echo "{}" >"$HOME/.claude/.credentials.json"',  # as after a login
    )
    tool = home / ".local" / "share" / "uv" / "tools" / "bullpen"
    _script(programs / "python", f'exec "{tool}/bin/python" "$@"')
    (home / "bullpen").symlink_to(ROOT)
    shell = Shell(home, _environment(home, programs), home)
    try:
        yield shell
    finally:
        shell.run(Step("command -v bullpen >/dev/null && bullpen down >/dev/null 2>&1", 0))
        shell.close()


def _script(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def _environment(home: Path, programs: Path) -> dict[str, str]:
    return {
        "HOME": str(home),
        "PATH": f"{home}/.local/bin:{programs}",
        "BULLPEN_API_PORT": str(free_port()),
        "BULLPEN_TIME_ZONE": "UTC",
        "COLUMNS": str(COLUMNS),
        "LANG": "C.UTF-8",
        "NO_COLOR": "1",
        "TERM": "dumb",
        "TZ": "UTC",
        "TMPDIR": str(home.parent),
        "USER": "reader",
        "GIT_AUTHOR_NAME": "Reader",
        "GIT_AUTHOR_EMAIL": "reader@localhost",
        "GIT_COMMITTER_NAME": "Reader",
        "GIT_COMMITTER_EMAIL": "reader@localhost",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
    }


def run_page(page: Path) -> list[Finished]:
    """Run all commands of a page, in a directory that is removed afterwards."""
    directory = Path(tempfile.mkdtemp(prefix="bp-page-", dir="/tmp"))
    try:
        with reader(directory) as shell:
            return [shell.run(step) for step in parse(page.read_text(encoding="utf-8"))]
    finally:
        shutil.rmtree(directory)


def main() -> None:
    """Write the output of this run into the pages."""
    everywhere = "--all" in sys.argv[1:]
    for name in [each for each in sys.argv[1:] if each != "--all"] or PAGES:
        page = ROOT / name
        began = time.monotonic()
        results = run_page(page)
        changed = [each for each in results if each.differs]
        for each in changed:
            print(each.diff(), end="\n\n")
        written = rewrite(page.read_text(encoding="utf-8"), results if everywhere else changed)
        page.write_text(written, encoding="utf-8")
        took = time.monotonic() - began
        print(f"{name}: {len(results)} commands, {len(changed)} outputs rewritten, {took:.0f} s")


if __name__ == "__main__":
    main()
