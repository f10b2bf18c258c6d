"""The owner's token: a file in the home that only its owner reads."""

from __future__ import annotations

import os
from pathlib import Path

from bullpen.core.access.keys import new_secret
from bullpen.core.errors import UnsafeSecret
from bullpen.core.files import replace_file
from bullpen.core.settings import Settings

MIN_TOKEN_CHARS = 24
"""A shorter token could be guessed."""

OTHERS_MODE_BITS = 0o077


def ensure_token(settings: Settings) -> str:
    """The owner's token, made if there is none."""
    try:
        return read_token(settings)
    except FileNotFoundError:
        settings.home.mkdir(mode=0o700, parents=True, exist_ok=True)
        _create_token_file(settings.token)
        return read_token(settings)


def rotate_token(settings: Settings) -> None:
    """Put a new token in the place of the old one, which opens nothing from the next request on."""
    settings.home.mkdir(mode=0o700, parents=True, exist_ok=True)
    replace_file(settings.token, f"{new_secret()}\n".encode())


def read_token(settings: Settings) -> str:
    """The owner's token; a blank or short one, or one that others may read, opens nothing."""
    path = settings.token
    with path.open(encoding="utf-8") as file:
        token = file.read().strip()
        mode = os.fstat(file.fileno()).st_mode
    if len(token) < MIN_TOKEN_CHARS:
        raise UnsafeSecret(f"{path} holds no token of {MIN_TOKEN_CHARS} characters or more")
    if mode & OTHERS_MODE_BITS:
        raise UnsafeSecret(f"{path} can be read by others")
    return token


class OwnerToken:
    """The token as one process knows it: read anew whenever its file is another one."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._path = str(settings.token)
        self._seen: tuple[int, ...] = ()
        self._token = ""

    def token(self) -> str:
        """The token of this moment: one that was replaced is void at once."""
        found = os.stat(self._path)  # noqa: PTH116 - every request asks, and Path takes longer
        seen = (found.st_ino, found.st_mtime_ns, found.st_ctime_ns, found.st_size)
        if seen != self._seen:
            self._token, self._seen = read_token(self._settings), seen
        return self._token


def _create_token_file(path: Path) -> None:
    """Complete or not at all, whoever else makes it at the same moment."""
    unfinished = path.with_name(f".token-{os.getpid()}")
    unfinished.unlink(missing_ok=True)
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(new_secret() + "\n")
    try:
        os.link(unfinished, path)
    except FileExistsError:
        pass
    finally:
        unfinished.unlink()
