"""The secret between the supervisor and those who steer it, new with each start."""

from __future__ import annotations

import hashlib
import secrets

from bullpen.core.replace_file import replace_file
from bullpen.core.settings import Settings

CONTROL_USER = "bullpen"
SECRET_FILE = "supervisor.key"


def create_control_secret(settings: Settings) -> str:
    """Make one, in a file that only the owner reads; what supervisord needs is its hash."""
    secret = secrets.token_urlsafe(32)
    replace_file(settings.run / SECRET_FILE, secret.encode(), 0o600)
    # It is the form that supervisord reads; of so long a secret nothing can be guessed from it.
    return hashlib.sha1(secret.encode(), usedforsecurity=False).hexdigest()


def read_control_secret(settings: Settings) -> str:
    """The one of the last start; empty where there was none."""
    try:
        return (settings.run / SECRET_FILE).read_text(encoding="utf-8")
    except OSError:
        return ""
