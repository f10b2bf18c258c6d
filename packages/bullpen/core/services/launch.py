"""Starts the supervisor of a home, in the background or as this process's own child."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from bullpen.core.services.control import create_control_secret
from bullpen.core.services.declared import ServiceProgram, include_paths, supervisor_config
from bullpen.core.services.parent import terminate_with_parent
from bullpen.core.settings import Settings
from bullpen.core.sockets import socket_directory

STOP_MARGIN_SECONDS = 30
"""What the processor may take to end besides the grace of its runs."""


def launch(
    settings: Settings, services: Sequence[ServiceProgram], *, stays: bool = True
) -> subprocess.Popen[bytes]:
    """Start supervisord with these services; unless it `stays`, it ends when this process does."""
    with (settings.logs / "supervisord.out").open("ab") as out:
        return subprocess.Popen(
            supervisor_command(supervisor_config()),
            env=supervisor_environment(settings, os.environ, include_paths(services)),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
            cwd="/",
            preexec_fn=None if stays else partial(terminate_with_parent, os.getpid()),
        )


def supervisor_command(config: Path) -> list[str]:
    """How supervisord is called with this configuration."""
    # As root it asks to be told that this is meant.
    user = ("-u", "root") if os.geteuid() == 0 else ()
    return [sys.executable, "-m", "supervisor.supervisord", "-c", str(config), *user]


def supervisor_environment(
    settings: Settings, environ: Mapping[str, str], files: str
) -> dict[str, str]:
    """What supervisord.conf and the services find in their environment."""
    return {
        **environ,
        "BULLPEN_HOME": str(settings.home),
        "BULLPEN_BIN": str(Path(sys.executable).parent),
        "BULLPEN_SOCKETS": str(socket_directory(settings)),
        "BULLPEN_SERVICES": files,
        "BULLPEN_CONTROL": create_control_secret(settings),
        "BULLPEN_STOP_SECONDS": str(settings.grace_seconds + STOP_MARGIN_SECONDS),
    }
