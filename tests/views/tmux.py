"""A real terminal of any size, by a tmux with a server of its own."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

SOON = 60.0
"""Generous: what is waited for takes a second on a quiet machine."""

TERMINAL = "xterm-256color"


def there_is_tmux() -> bool:
    """Whether it is installed."""
    return shutil.which("tmux") is not None


@dataclass(frozen=True)
class Pane:
    """The one pane of a server."""

    socket: Path

    def __call__(self, *args: str) -> str:
        """Ask tmux."""
        command = ["tmux", "-S", str(self.socket), "-f", "/dev/null", *args]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=SOON)
        return done.stdout

    @property
    def text(self) -> str:
        """What stands on the screen."""
        return self("capture-pane", "-p")

    @property
    def coloured(self) -> str:
        """The same with its colours."""
        return self("capture-pane", "-p", "-e")

    def about(self, name: str) -> str:
        """What tmux knows of the pane."""
        return self("display-message", "-p", f"#{{{name}}}").strip()

    def types(self, text: str) -> None:
        """Write this."""
        self("send-keys", "-l", text)

    def press(self, *keys: str) -> None:
        """Press these keys, by tmux's names."""
        self("send-keys", *keys)

    def paste(self, text: str) -> None:
        """Paste this, as a terminal does that marks what is pasted."""
        self("set-buffer", text)
        self("paste-buffer", "-p")

    def resize(self, width: int, height: int) -> None:
        """Give it another size."""
        self("resize-window", "-x", str(width), "-y", str(height))

    def sees(self, *texts: str) -> str:
        """Wait until all of this stands there."""
        deadline = time.monotonic() + SOON
        while not all(each in (found := self.text) for each in texts):
            assert time.monotonic() < deadline, f"{texts} is not seen:\n{found}"
            time.sleep(0.05)
        return found

    def program(self, word: str) -> psutil.Process:
        """The process below the pane whose command line has this word."""
        shell = psutil.Process(int(self.about("pane_pid")))
        (found,) = (each for each in shell.children(recursive=True) if word in each.cmdline())
        return found


@contextmanager
def pane(
    directory: Path,
    program: Sequence[str],
    environ: Mapping[str, str],
    size: tuple[int, int],
    term: str = TERMINAL,
) -> Iterator[Pane]:
    """A program in a terminal, which tells when it is over."""
    made = Pane(directory / "tmux.sock")
    before, after = shlex.quote(str(directory / "before")), shlex.quote(str(directory / "after"))
    script = (
        f"export TERM={term}; stty -g > {before}; {shlex.join(program)}; "
        f'echo "ended with $?"; stty -g > {after}; echo "it is over"; exec sleep 600'
    )
    width, height = map(str, size)
    subprocess.run(
        [
            *("tmux", "-S", str(made.socket), "-f", "/dev/null"),
            *("new-session", "-d", "-x", width, "-y", height, "sh", "-c", script),
        ],
        env={**environ, "TERM": TERMINAL, "LC_ALL": "C.UTF-8"},
        check=True,
        timeout=SOON,
    )
    server = psutil.Process(int(made.about("pid")))
    try:
        yield made
    finally:
        _kill(server)


def _kill(server: psutil.Process) -> None:
    """End the server and all that runs in it; `kill-server` waits for it, at times for minutes."""
    family = [server, *server.children(recursive=True)]
    for each in family:
        with suppress(psutil.NoSuchProcess):
            each.kill()
    psutil.wait_procs(family, timeout=SOON)


def is_as_before(directory: Path, made: Pane) -> bool:
    """Whether the program left the terminal as it had found it."""
    same = (directory / "before").read_text() == (directory / "after").read_text()
    flags = [made.about(name) for name in ("alternate_on", "cursor_flag", "mouse_any_flag")]
    return same and flags == ["0", "1", "0"]
