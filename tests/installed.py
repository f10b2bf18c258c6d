"""Installs Bullpen's wheel outside the checkout, as `uv tool install` does, but without a download.

Bullpen comes from the wheel alone. Its dependencies are links to those of this environment, and
only to what the wheel requires: a requirement that it forgets is missing here too.

`python -m tests.installed tool install PATH` is the `uv` of the readers in `tests/docs`.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import tempfile
import venv
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
LIMIT = 120.0


def build_wheel(directory: Path, source: Path = ROOT) -> Path:
    """Build the wheel of a checkout into this directory."""
    _run(
        _uv(), "build", "--quiet", "--offline", "--wheel", "--no-build-isolation",
        "--python", sys.executable, "--out-dir", str(directory), str(source),
    )  # fmt: skip
    (wheel,) = directory.glob("*.whl")
    return wheel


def install_wheel(wheel: Path, environment: Path) -> Path:
    """Install a wheel into a new virtual environment; return its `bullpen`."""
    venv.create(environment, symlinks=True)
    packages = Path(sysconfig.get_path("purelib", "venv", {"base": str(environment)}))
    _run(
        _uv(), "pip", "install", "--quiet", "--offline", "--no-deps",
        "--python", str(environment / "bin" / "python"), str(wheel),
    )  # fmt: skip
    (metadata,) = packages.glob("bullpen-*.dist-info")
    for name in required_by(Distribution.at(metadata)):
        _link(distribution(name), packages)
    return environment / "bin" / "bullpen"


def required_by(top: Distribution) -> list[str]:
    """The names of all distributions that one requires, directly or not, without its extras."""
    found: dict[tuple[str, str], None] = {}
    left = list(_requirements(top, ""))
    while left:
        required = left.pop()
        name = canonicalize_name(required.name)
        for extra in ("", *required.extras):
            if (name, extra) not in found:
                found[name, extra] = None
                left += _requirements(distribution(name), extra)
    return sorted({name for name, _ in found})


def _requirements(of: Distribution, extra: str) -> Iterator[Requirement]:
    for each in map(Requirement, of.requires or ()):
        if each.marker is None or each.marker.evaluate({"extra": extra}):
            yield each


def _link(installed: Distribution, packages: Path) -> None:
    """Link the top-level files and directories of a distribution into another environment."""
    tops = {each.parts[0] for each in installed.files or () if each.parts[0] != ".."}
    for top in tops - {"__pycache__"}:
        link = packages / top
        if not link.exists():
            link.symlink_to(Path(str(installed.locate_file(top))).resolve())


def _uv() -> str:
    return str(Path(sys.executable).with_name("uv"))


def _run(*command: str) -> None:
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT,
        cwd=tempfile.gettempdir(),
    )
    assert done.returncode == 0, done.stderr


def main() -> None:
    """Do what `uv tool install PATH` does, and print its last line."""
    command = " ".join(sys.argv[1:3])
    assert command == "tool install", f"this stand-in for uv has no {command!r}"
    given = Path(sys.argv[3]).expanduser().resolve()
    home = Path(os.environ["HOME"])
    environment = home / ".local" / "share" / "uv" / "tools" / "bullpen"
    with tempfile.TemporaryDirectory() as scratch:
        wheel = given if given.suffix == ".whl" else build_wheel(Path(scratch), given)
        program = install_wheel(wheel, environment)
    shown = home / ".local" / "bin" / "bullpen"
    shown.parent.mkdir(parents=True, exist_ok=True)
    shown.symlink_to(program)
    names = sorted(environment.glob("lib/python*/site-packages/*.dist-info"))
    for each in names:
        name, version = re.sub(r"\.dist-info$", "", each.name).split("-")
        print(f" + {name.lower().replace('_', '-')}=={version}")
    print("Installed 1 executable: bullpen")


if __name__ == "__main__":
    main()
