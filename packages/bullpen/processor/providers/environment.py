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
    environ: Mapping[str, str],
    passes: Iterable[str],
    own: Mapping[str, str],
    *,
    hides: Iterable[str] = (),
    more: Iterable[str] = (),
) -> dict[str, str]:
    """What of `environ` passes, save what is hidden; what a person adds; what is the run's own."""
    passed = {
        **_named(_named(environ, [*COMMON, *passes]), hides, named=False),
        **_named(environ, more),
    }
    # The skills that come with Bullpen call its command.
    here = str(Path(sys.executable).parent)
    path = passed.get("PATH") or "/usr/local/bin:/usr/bin:/bin"
    return {**passed, "PATH": f"{path}:{here}", **own}


def _named(
    environ: Mapping[str, str], names: Iterable[str], *, named: bool = True
) -> dict[str, str]:
    """The variables that have one of these names, or those that have none of them."""
    names = list(names)
    exact = {name for name in names if not name.endswith("*")}
    prefixes = tuple(name[:-1] for name in names if name.endswith("*"))
    return {
        name: value
        for name, value in environ.items()
        if (name in exact or name.startswith(prefixes)) is named
    }
