"""Which services there are: one supervisor program file each, in services/.

A file may say of itself what must be set up before it is started, in a section of ours that the
supervisor passes over:

    [bullpen:telegram]
    needs = telegram_bot_token
"""

from __future__ import annotations

import configparser
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from bullpen.core.settings import Settings

HERE = Path(__file__).resolve()
SECTION = "bullpen:"


@dataclass(frozen=True, slots=True)
class Declared:
    """One service: its file, and the settings that it cannot do without."""

    name: str
    file: Path
    needs: tuple[str, ...] = ()

    def set_up(self, settings: Settings) -> bool:
        """Whether all that it needs is set."""
        return all(getattr(settings, each, "") for each in self.needs)


def supervisor_config() -> Path:
    """supervisord.conf: in the package where it is installed, else in the checkout."""
    return _shipped("deploy") / "supervisord.conf"


def tmux_config() -> Path:
    """tmux.conf: beside the package where it is installed, else at the top of the checkout."""
    beside = HERE.parents[2] / "tmux.conf"
    return beside if beside.is_file() else HERE.parents[4] / "tmux.conf"


def declared_services() -> list[Declared]:
    """Every service that has a file, by name."""
    return sorted(map(_read, _shipped("services").glob("*.conf")), key=lambda each: each.name)


def files_of(services: Iterable[Declared]) -> str:
    """The files as supervisord.conf includes them: beside it, for a path may have spaces."""
    return " ".join(f"../services/{each.file.name}" for each in services)


def _shipped(name: str) -> Path:
    beside = HERE.parents[2] / name
    return beside if beside.is_dir() else HERE.parents[4] / name


def _read(file: Path) -> Declared:
    parser = configparser.RawConfigParser(inline_comment_prefixes=(";",))
    parser.read(file, encoding="utf-8")
    needs = parser.get(f"{SECTION}{file.stem}", "needs", fallback="")
    return Declared(file.stem, file, tuple(needs.split()))
