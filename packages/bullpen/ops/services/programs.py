"""The service files: which programs there are and what each needs."""

from __future__ import annotations

import configparser
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from bullpen.core.settings import Settings

# Which services there are: one supervisor program file each, in services/.
#
# A file may say of itself what must be set up before it is started, in a section of ours that the
# supervisor passes over:
#
# [bullpen:telegram]
# needs = telegram_bot_token

_THIS_FILE = Path(__file__).resolve()
SECTION_PREFIX = "bullpen:"

RENAMED_SERVICES = {"minder": "guard"}
"""Old names and new ones. A supervisor that was started before an upgrade uses the old one."""


@dataclass(frozen=True, slots=True)
class ServiceProgram:
    """One service: its file, and the settings that it cannot do without."""

    name: str
    file: Path
    needs: tuple[str, ...] = ()

    def set_up(self, settings: Settings) -> bool:
        """Whether all that it needs is set."""
        return all(getattr(settings, each, "") for each in self.needs)


def supervisor_config() -> Path:
    """supervisord.conf: in the package where it is installed, else in the checkout."""
    return _packaged_directory("deploy") / "supervisord.conf"


def tmux_config() -> Path:
    """tmux.conf: beside the package where it is installed, else at the top of the checkout."""
    beside = _THIS_FILE.parents[2] / "tmux.conf"
    return beside if beside.is_file() else _THIS_FILE.parents[4] / "tmux.conf"


def list_programs() -> list[ServiceProgram]:
    """Every service that has a file, by name."""
    return sorted(
        map(_read, _packaged_directory("services").glob("*.conf")), key=lambda each: each.name
    )


def include_paths(services: Iterable[ServiceProgram]) -> str:
    """The files as supervisord.conf includes them: beside it, for a path may have spaces."""
    return " ".join(f"../services/{each.file.name}" for each in services)


def _packaged_directory(name: str) -> Path:
    beside = _THIS_FILE.parents[2] / name
    return beside if beside.is_dir() else _THIS_FILE.parents[4] / name


def _read(file: Path) -> ServiceProgram:
    parser = configparser.RawConfigParser(inline_comment_prefixes=(";",))
    parser.read(file, encoding="utf-8")
    needs = parser.get(f"{SECTION_PREFIX}{file.stem}", "needs", fallback="")
    return ServiceProgram(file.stem, file, tuple(needs.split()))


def make_directories(settings: Settings) -> None:
    """Make what is missing of them, for the owner alone."""
    for each in (settings.home, settings.logs, settings.run):
        each.mkdir(mode=0o700, parents=True, exist_ok=True)
