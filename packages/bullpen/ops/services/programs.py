"""The services: a supervisor program file each.

Bullpen's own files are in services/. `bullpen up` writes a file in the home for each channel of
another package and for each account with a name of its own, such as `slack-sage`. The service of an
account is started when its required settings are set.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from bullpen.core.files import replace_file
from bullpen.core.registry import CHANNELS, ChannelInfo
from bullpen.core.settings import Settings

_THIS_FILE = Path(__file__).resolve()

REPORTS_SERVICE = "reports"

RENAMED_SERVICES = {"minder": "guard"}
"""Old and new names. A supervisor that was started before an upgrade uses the old one."""
# Channels start last and stop first, because they accept new messages.
CHANNEL_PROGRAM = """\
; Written by `bullpen up`. Changes are overwritten.
[program:{name}]
command="%(ENV_BULLPEN_BIN)s/bullpen" run channel {name}
priority=400
autorestart=true
startsecs=1
startretries=3
stopsignal=TERM
stopwaitsecs=30
stdout_logfile=%(ENV_BULLPEN_HOME)s/logs/{name}.log
redirect_stderr=true
stdout_logfile_maxbytes=10MB
stdout_logfile_backups=3
"""


@dataclass(frozen=True, slots=True)
class ServiceProgram:
    """One service, and its file."""

    name: str
    file: Path

    def set_up(self, settings: Settings) -> bool:
        """Whether everything that it requires is set or installed."""
        if self.name == REPORTS_SERVICE:
            return settings.reports_minutes > 0 and find_spec("pyspark") is not None
        info = CHANNELS.find(self.name)
        return info is None or (
            isinstance(info, ChannelInfo) and not info.missing(settings.account(self.name))
        )


def supervisor_config() -> Path:
    """supervisord.conf: in an installed package, else in the checkout."""
    return _packaged_directory("deploy") / "supervisord.conf"


def tmux_config() -> Path:
    """tmux.conf: in an installed package, else at the top of the checkout."""
    beside = _THIS_FILE.parents[2] / "tmux.conf"
    return beside if beside.is_file() else _THIS_FILE.parents[4] / "tmux.conf"


def list_programs(settings: Settings) -> list[ServiceProgram]:
    """Every service that has a file, by name; packages and accounts since the last `bullpen up`."""
    own = {file.stem: file for file in _packaged_directory("services").glob("*.conf")}
    files = {file.stem: file for file in _generated_directory(settings).glob("*.conf")} | own
    return [ServiceProgram(name, files[name]) for name in sorted(files)]


def programs_set_up(settings: Settings) -> list[ServiceProgram]:
    """The services whose requirements are met."""
    return [each for each in list_programs(settings) if each.set_up(settings)]


def write_channel_programs(settings: Settings) -> None:
    """Write a program file for each account without one in services/; delete other files."""
    directory = _generated_directory(settings)
    directory.mkdir(mode=0o700, exist_ok=True)
    names = {each.name for each in CHANNELS.plugins() if each.factory}
    names |= {each for each in settings.accounts.names() if _has_client(each)}
    wanted = {each: CHANNEL_PROGRAM.format(name=each) for each in names - CHANNELS.built_in.keys()}
    for name, text in wanted.items():
        replace_file(directory / f"{name}.conf", text.encode(), 0o600)
    for file in directory.glob("*.conf"):
        if file.stem not in wanted:
            file.unlink()


def include_paths(services: Iterable[ServiceProgram]) -> str:
    """The files in the form that supervisord includes: patterns separated by blanks."""
    return " ".join(re.sub(r"\s", "?", glob.escape(str(each.file))) for each in services)


def clear_added(settings: Settings) -> str:
    """Delete the files of services that were added while Bullpen ran; returns their pattern.

    The supervisor includes this pattern, so that a service can be added without a restart.
    """
    directory = _added_directory(settings)
    directory.mkdir(mode=0o700, exist_ok=True)
    for file in directory.glob("*.conf"):
        file.unlink()
    # supervisord warns of a pattern without a file.
    replace_file(directory / "none.conf", b"; Services that are added while Bullpen runs.\n", 0o600)
    return re.sub(r"\s", "?", f"{glob.escape(str(directory))}/*.conf")


def add_program(settings: Settings, program: ServiceProgram) -> None:
    """Let the running supervisor find the file of a service when it reads its files again."""
    file = _added_directory(settings) / f"{program.name}.conf"
    file.parent.mkdir(mode=0o700, exist_ok=True)
    replace_file(file, program.file.read_bytes(), 0o600)


def make_directories(settings: Settings) -> None:
    """Create the missing directories, with access for the owner only."""
    for each in (settings.home, settings.logs, settings.run):
        each.mkdir(mode=0o700, parents=True, exist_ok=True)


def _packaged_directory(name: str) -> Path:
    beside = _THIS_FILE.parents[2] / name
    return beside if beside.is_dir() else _THIS_FILE.parents[4] / name


def _generated_directory(settings: Settings) -> Path:
    return settings.run / "services"


def _added_directory(settings: Settings) -> Path:
    return settings.run / "added"


def _has_client(account: str) -> bool:
    info = CHANNELS.find(account)
    return isinstance(info, ChannelInfo) and bool(info.factory)
