"""Starts the supervisor of a home, in the background or as this process's own child."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from bullpen.core.services.control import new_secret
from bullpen.core.services.declared import Declared, files_of, supervisor_config
from bullpen.core.services.parent import end_with
from bullpen.core.settings import Settings
from bullpen.core.sockets import socket_directory

MARGIN_SECONDS = 30
"""What the processor may take to end besides the grace of its runs."""


def launch(
    settings: Settings, services: Sequence[Declared], *, stays: bool = True
) -> subprocess.Popen[bytes]:
    """Start supervisord with these services; unless it `stays`, it ends when this process does."""
    with (settings.logs / "supervisord.out").open("ab") as out:
        return subprocess.Popen(
            command_line(supervisor_config()),
            env=environment(settings, os.environ, files_of(services)),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
            cwd="/",
            preexec_fn=None if stays else partial(end_with, os.getpid()),
        )


def command_line(config: Path) -> list[str]:
    """How supervisord is called with this configuration."""
    # As root it asks to be told that this is meant.
    user = ("-u", "root") if os.geteuid() == 0 else ()
    return [sys.executable, "-m", "supervisor.supervisord", "-c", str(config), *user]


def environment(settings: Settings, environ: Mapping[str, str], files: str) -> dict[str, str]:
    """What supervisord.conf and the services find in their environment."""
    return {
        **environ,
        "BULLPEN_HOME": str(settings.home),
        "BULLPEN_BIN": str(Path(sys.executable).parent),
        "BULLPEN_SOCKETS": str(socket_directory(settings)),
        "BULLPEN_SERVICES": files,
        "BULLPEN_CONTROL": new_secret(settings),
        "BULLPEN_STOP_SECONDS": str(settings.grace_seconds + MARGIN_SECONDS),
    }
