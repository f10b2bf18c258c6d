"""The owner's token for the API: a private file in the home."""

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
    """The owner's token; made if it is missing."""
    try:
        return read_token(settings)
    except FileNotFoundError:
        settings.home.mkdir(mode=0o700, parents=True, exist_ok=True)
        _create_token_file(settings.token_file)
        return read_token(settings)


def rotate_token(settings: Settings) -> None:
    """Replace the token; the old one is invalid from the next request on."""
    settings.home.mkdir(mode=0o700, parents=True, exist_ok=True)
    replace_file(settings.token_file, f"{new_secret()}\n".encode())


def read_token(settings: Settings) -> str:
    """The owner's token; raises UnsafeSecret if it is short or others may read it."""
    path = settings.token_file
    with path.open(encoding="utf-8") as file:
        token = file.read().strip()
        mode = os.fstat(file.fileno()).st_mode
    if len(token) < MIN_TOKEN_CHARS:
        raise UnsafeSecret(f"{path} holds no token of {MIN_TOKEN_CHARS} characters or more")
    if mode & OTHERS_MODE_BITS:
        raise UnsafeSecret(f"{path} can be read by others")
    return token


class OwnerToken:
    """The token in memory, read again whenever its file changes."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._path = str(settings.token_file)
        self._seen: tuple[int, ...] = ()
        self._token = ""

    def token(self) -> str:
        """The current token."""
        found = os.stat(self._path)  # noqa: PTH116 - every request asks, and Path takes longer
        seen = (found.st_ino, found.st_mtime_ns, found.st_ctime_ns, found.st_size)
        if seen != self._seen:
            self._token, self._seen = read_token(self._settings), seen
        return self._token


def _create_token_file(path: Path) -> None:
    """Make the file atomically; keeps one that another process made at the same moment."""
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
