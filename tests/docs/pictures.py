"""Makes the pictures of docs/pictures/: what stands in a real terminal while agents work.

`python -m tests.docs.pictures` makes them anew, in a home of its own; it needs tmux.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.text import Text

from tests.views.tmux import Pane, pane, there_is_tmux

PICTURES = Path(__file__).resolve().parents[2] / "docs" / "pictures"
COMMAND = (sys.executable, "-c", "from bullpen.cli.main import main; main()")
STOP_SECONDS = 120
MOMENT = re.compile(r"\b(\d\d):(\d\d):(\d\d)\b")
OVER = re.compile(r"(\x1b\[[0-9;]*m)*(ended with|it is over)")
OPENING = 10 * 3600 + 42 * 60
"""At this time of day all pictures begin."""

AGENTS = ("planner", "coder", "reviewer", "tester", "writer")

PLAN = """@dev Plan the release of version two: what is still open, who does it, and until when? \
Everybody who is needed is to begin at once, please.
!usage 5300 0.04
!say The login is first. [@coder: Fix the login: a session must end after an hour, \
and nobody may have more than one; the tests of it are to be in the same change.
!say !usage 41200 0.31
!say !say Both are done. [@reviewer: Look at the login, please: sessions end after an hour, and \
there is but one for each person. I am not sure about the clock of the tests.
!say !say !sleep 60
!say !say ]
!say ]
!say [@tester: Try the release on both databases, with the data of the old version, and tell us \
what is slow: nothing that people wait for may take longer.
!say !sleep 60
!say ]"""

LOW, HIGH = (110, 24), (100, 30)


@dataclass(frozen=True)
class Home:
    """A home of its own, with a company that works."""

    home: Path
    environ: dict[str, str]

    def __call__(self, *args: str) -> str:
        """Run a command in it."""
        done = subprocess.run(
            [*COMMAND, *args],
            env=self.environ,
            capture_output=True,
            text=True,
            check=True,
            timeout=STOP_SECONDS,
        )
        return done.stdout


def main() -> None:
    """Make all of them."""
    if not there_is_tmux():
        sys.exit("The pictures are taken in tmux, which is not installed here.")
    PICTURES.mkdir(exist_ok=True)
    home = _home()
    try:
        _hire(home)
        _take(home, "team-watch", ("team", "watch", "dev"), LOW, _works)
        shown = json.loads(
            home("demo", "team", "--home", str(home.home / "demo"), "--keep", "--json")
        )
        demo = replace(home, environ={**home.environ, "BULLPEN_HOME": str(home.home / "demo")})
        _take(demo, "trace", ("trace", shown["steps"][0]["message_id"]), HIGH, _is_over)
    finally:
        home("down")
        shutil.rmtree(home.home)


def _home() -> Home:
    where = Path(tempfile.mkdtemp(prefix="bp-picture-", dir="/tmp"))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    inherited = {
        name: text
        for name, text in os.environ.items()
        if not name.startswith("BULLPEN_") and name not in ("NO_COLOR", "COLUMNS", "LINES")
    }
    return Home(
        where,
        {
            **inherited,
            "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
            "BULLPEN_HOME": str(where),
            "BULLPEN_WORKSPACE": str(where / "workspace"),
            "BULLPEN_API_PORT": str(port),
            "BULLPEN_TIME_ZONE": "UTC",
            "BULLPEN_DEFAULT_AGENT": "planner",
            "COLORTERM": "truecolor",
            "LC_ALL": "C.UTF-8",
        },
    )


def _hire(home: Home) -> None:
    home("db", "upgrade")
    for each in AGENTS:
        home("agent", "add", each, "--provider", "echo")
    home("team", "add", "dev", *AGENTS, "--leader", "planner", "--name", "The developers")
    home("agent", "pause", "writer", "--reason", "on holiday until Monday")
    home("up")


def _take(
    home: Home,
    name: str,
    args: tuple[str, ...],
    size: tuple[int, int],
    until: Callable[[Home, Pane], object],
) -> None:
    """Run this in a terminal, wait until it is as it should be, and keep what stands there."""
    with pane(home.home, (*COMMAND, *args), home.environ, size) as seen:
        until(home, seen)
        shown = seen.coloured.replace(f":{home.environ['BULLPEN_API_PORT']}", ":3777")
    picture = PICTURES / f"{name}.svg"
    picture.write_text(_svg(shown, size[0], f"bullpen {' '.join(args)}", name))
    print(f"{picture.relative_to(PICTURES.parents[1])} created")


def _works(home: Home, seen: Pane) -> None:
    """Somebody has asked, and it was handed on twice."""
    seen.sees("#dev The developers", "writer")
    home("send", "@writer Write the release notes, as short as you can.", "--no-wait")
    home("send", PLAN, "--no-wait")
    seen.sees("@coder → @reviewer", "@planner → @tester", "$0.35")
    deadline = time.monotonic() + STOP_SECONDS
    while not re.search(r"reviewer +● processing 7 s", seen.text):
        assert time.monotonic() < deadline, seen.text
        time.sleep(0.1)


def _is_over(_: Home, seen: Pane) -> None:
    seen.sees("finished after")


def _svg(shown: str, width: int, title: str, name: str) -> str:
    """The picture; it asks nobody on the network for a font."""
    lines = [each for each in shown.splitlines() if not OVER.match(each)]
    while lines and not lines[-1].strip():
        lines.pop()
    console = Console(
        width=width,
        record=True,
        file=StringIO(),
        force_terminal=True,
        color_system="truecolor",
        legacy_windows=False,
    )
    console.print(Text.from_ansi(_at_one_time("\n".join(lines)), no_wrap=True))
    svg = console.export_svg(title=title, unique_id=name)
    plain = re.sub(r"\s*@font-face \{.*?\}\n|<!--.*?-->", "\n", svg, flags=re.DOTALL)
    assert not re.search(r"@import|url\(['\"]?http|href=['\"]http", plain), "it asks the network"
    return re.sub(r"[ \t]+$", "", plain, flags=re.MULTILINE)


def _at_one_time(text: str) -> str:
    """The same with other times of day: the first is always the same."""
    found = [_seconds(each) for each in MOMENT.findall(text)]
    if not found:
        return text

    def moved(match: re.Match[str]) -> str:
        at = (_seconds(match.groups()) - min(found) + OPENING) % 86400
        return f"{at // 3600:02}:{at // 60 % 60:02}:{at % 60:02}"

    return MOMENT.sub(moved, text)


def _seconds(moment: tuple[str | None, ...]) -> int:
    hours, minutes, seconds = (int(each or 0) for each in moment)
    return hours * 3600 + minutes * 60 + seconds


if __name__ == "__main__":
    main()
