"""The environment of a child: what every program needs, and what its provider needs."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

COMMON = (
    *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "TZ", "TMPDIR", "LANG", "LC_*"),
    *("XDG_*", "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "SYSTEMROOT"),
    *("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"),
)
"""No secrets of ours are among these."""


def child_environment(
    environ: Mapping[str, str], passes: Iterable[str], own: Mapping[str, str]
) -> dict[str, str]:
    """What of `environ` has one of these names, and what the run has of its own."""
    names = [*COMMON, *passes]
    exact = {name for name in names if not name.endswith("*")}
    prefixes = tuple(name[:-1] for name in names if name.endswith("*"))
    passed = {
        name: value
        for name, value in environ.items()
        if name in exact or (prefixes and name.startswith(prefixes))
    }
    # The skills that come with Bullpen call its command.
    here = str(Path(sys.executable).parent)
    path = passed.get("PATH", "/usr/local/bin:/usr/bin:/bin")
    return {**passed, "PATH": f"{path}:{here}", **own}
