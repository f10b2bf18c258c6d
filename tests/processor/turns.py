"""Turns to run, programs that stand in for the command lines, and who is still alive."""

from __future__ import annotations

import os
import resource
import signal
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Self, TypedDict, Unpack

from bullpen.core.message import ErrorKind, Failure
from bullpen.core.roster.agents import Agent, Permission
from bullpen.core.roster.providers import CustomProvider, Harness
from bullpen.core.roster.sessions import Session
from bullpen.core.settings import Settings
from bullpen.processor.children.child import Launcher, Stop
from bullpen.processor.providers.base import CliAdapter as Knows
from bullpen.processor.providers.base import CliCommand, Reply, RunRequest
from bullpen.processor.providers.claude import Claude
from bullpen.processor.providers.codex import Codex
from bullpen.processor.providers.command_line import CliProvider
from bullpen.processor.providers.opencode import OpenCode

PAUSE = 0.5
PATIENCE = 60.0
"""Time enough for a child to end when it is asked to."""
SYSTEM = "You are the sheep.\n"

ANSWERS = {
    "claude": (
        '{"type":"system","subtype":"init","model":"claude-opus-4-8"}',
        '{"type":"assistant","message":{"content":[{"type":"text","text":"Hello!"}]}}',
        '{"type":"result","is_error":false,"result":"Hello!","session_id":"s1","usage":{}}',
    ),
    "codex": (
        '{"type":"thread.started","thread_id":"s1"}',
        '{"type":"item.completed","item":{"type":"agent_message","text":"Hello!"}}',
        '{"type":"turn.completed","usage":{"input_tokens":123,"output_tokens":45}}',
    ),
    "opencode": (
        '{"type":"step_start","sessionID":"s1","part":{}}',
        '{"type":"text","sessionID":"s1","part":{"text":"Hello!"}}',
        '{"type":"step_finish","sessionID":"s1","part":{"tokens":{"input":1}}}',
    ),
}
"""What each program prints that answers `Hello!`."""
NOW = 1000.0
CLAUDE = Claude(Settings(), lambda: NOW)
PROVIDERS: dict[str, Knows] = {
    "claude": CLAUDE,
    "codex": Codex(Settings()),
    "opencode": OpenCode(),
}


class More(TypedDict, total=False):
    """What of a turn a test chooses itself."""

    texts: tuple[str, ...]
    prompt: str
    system: str
    home: Path
    directory: Path
    session: Session | None
    custom: CustomProvider | None


def agent(
    name: str = "coder",
    provider: str = "claude",
    model: str = "",
    permission: Permission = Permission.EDIT,
) -> Agent:
    """An agent."""
    return Agent(id=name, provider=provider, model=model, permission=permission)


def turn(who: Agent | None = None, **more: Unpack[More]) -> RunRequest:
    """A turn on a message, of this agent."""
    values: More = {
        "texts": ("hello",),
        "prompt": "hello",
        "system": SYSTEM,
        "home": Path("/home/coder"),
        "directory": Path("/home/coder"),
    }
    return RunRequest(agent=who or agent(), **(values | more))


def custom(harness: Harness, name: str = "other", model: str = "") -> CustomProvider:
    """A service of somebody else's."""
    return CustomProvider(
        id=name, harness=harness, base_url="https://other.example/v1", api_key="own", model=model
    )


def option(command: CliCommand, name: str) -> str:
    """The argument after this one."""
    return command.argv[command.argv.index(name) + 1]


def ignore(text: str) -> None:
    """Tell nobody."""


@contextmanager
def launching(pause: float = PAUSE) -> Iterator[Launcher]:
    """A launcher, stopped at the end of the block."""
    launcher = Launcher(pause)
    try:
        yield launcher
    finally:
        launcher.stop()


class Place:
    """A scratch directory with programs on its PATH, and what runs them."""

    def __init__(self, path: Path, launcher: Launcher) -> None:
        self.path = path
        self.yard = path / "yard"
        self.bin = path / "bin"
        for each in (self.yard, self.bin):
            each.mkdir()
        self.environ = {"PATH": f"{self.bin}:/usr/bin:/bin", "HOME": str(path)}
        self.settings = Settings(home=path / "home", idle_seconds=60, run_seconds=120)
        self.launcher = launcher
        self.stop = Stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop.close()

    def program(self, name: str, text: str, interpreter: str = "/bin/sh") -> Path:
        """Put a program of this text on the PATH; `$here` is the scratch directory."""
        path = self.bin / name
        path.write_text(f"#!{interpreter}\n" + text.replace("$here", str(self.path)))
        path.chmod(0o755)
        return path

    def prints(
        self,
        name: str,
        *lines: str,
        code: int = 0,
        errors: str = "",
        before: str = "",
        after: str = "",
    ) -> Path:
        """Let a program print these lines, and keep what it was started with."""
        (self.path / "out").write_text("".join(f"{line}\n" for line in lines))
        (self.path / "err").write_text(errors)
        out = "cat $here/out; cat $here/err >&2"
        return self.program(name, "\n".join((RECORD, before, out, after, f"exit {code}")))

    def turn(self, who: Agent | None = None, **more: Unpack[More]) -> RunRequest:
        """A turn that works here."""
        values: More = {"home": self.yard, "directory": self.yard}
        return turn(who, **(values | more))

    def run(self, knows: Knows, asked: RunRequest | None = None) -> Reply | Failure | None:
        """Run it by the program on the PATH."""
        line = CliProvider(knows, self.launcher, self.settings, self.environ)
        return line.run(asked or self.turn(), self.stop, ignore)

    def fails(self, knows: Knows, asked: RunRequest | None = None) -> tuple[ErrorKind, str]:
        """How it fails."""
        found = self.run(knows, asked)
        assert isinstance(found, Failure), found
        return found.kind, found.error

    def path_lines(self, name: str) -> list[str]:
        """The lines of a file that a program wrote."""
        return (self.path / name).read_text().splitlines()

    @property
    def argv(self) -> list[str]:
        """The arguments of the last run."""
        return (self.path / "argv").read_text().split("\0")[:-1]

    @property
    def seen(self) -> dict[str, str]:
        """The environment of the last run."""
        found = (self.path / "env").read_bytes().decode(errors="replace").split("\0")
        return {name: value for name, _, value in (each.partition("=") for each in found)}

    @property
    def stdin(self) -> bytes:
        """What the last run read."""
        return (self.path / "stdin").read_bytes()

    @property
    def runs(self) -> int:
        """How often a program was run."""
        return len((self.path / "runs").read_text())


RECORD = """printf x >> $here/runs
printf '%s\\0' "$@" > $here/argv
env -0 > $here/env
cat > $here/stdin
"""


def mark() -> str:
    """A word that no other process knows."""
    return f"mark{uuid.uuid4().hex}"


def living(word: str) -> list[int]:
    """The processes that have this word among their arguments or in their environment."""
    found = []
    for each in Path("/proc").iterdir():
        if not each.name.isdigit() or int(each.name) == os.getpid():
            continue
        try:
            known = (each / "cmdline").read_bytes() + (each / "environ").read_bytes()
        except OSError:
            continue
        if word.encode() in known:
            found.append(int(each.name))
    return found


def parent(pid: int) -> int:
    """Whose child this process is; 0 if it is gone."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return 0
    return int(stat.rpartition(b")")[2].split()[1])


def open_files() -> list[str]:
    """The files of this process, the directory that is read among them."""
    return sorted(each.name for each in Path("/proc/self/fd").iterdir())


@contextmanager
def at_most(files: int, pid: int = 0) -> Iterator[None]:
    """Let a process have no more than so many files."""
    before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (files, before[1]))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, before)


def kill(pids: Sequence[int]) -> None:
    """Kill those of them that are still there, all at once: none lives to see another's end."""
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, number)


def reply(place: Place, knows: Knows, session: Session | None = None) -> Reply:
    """What a run answers."""
    found = place.run(knows, place.turn(session=session))
    assert isinstance(found, Reply), found
    return found
