"""What a file is called: by a person, and below the directory of files."""

from __future__ import annotations

import re
import unicodedata

from bullpen.core.errors import UnknownFile

MAX_GIVEN_NAME_BYTES = 100
"""So many bytes of what a person called it are kept."""

MAX_SUFFIX_CHARS = 16

MAX_FILE_NAME_BYTES = 255

_UNSAFE_CHARS = re.compile(r"[^\w.-]+")


def safe_name(given: str) -> str:
    """What a person called a file, without what a path, a shell or a reader trips over."""
    last = re.split(r"[/\\]", given)[-1]
    name = _UNSAFE_CHARS.sub("_", unicodedata.normalize("NFC", last)).strip("._-")
    stem, dot, suffix = name.rpartition(".")
    if not dot or len(suffix) > MAX_SUFFIX_CHARS:
        stem, dot, suffix = name, "", ""
    room = MAX_GIVEN_NAME_BYTES - len(f"{dot}{suffix}".encode())
    cut = stem.encode()[:room].decode(errors="ignore")
    return f"{cut}{dot}{suffix}" or "file"


def check_file_name(name: str) -> str:
    """The name, if it can be one of ours: no path, and nothing hidden."""
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        size = 0
    if not 0 < size <= MAX_FILE_NAME_BYTES or name.startswith(".") or "/" in name or "\0" in name:
        raise UnknownFile(f"there is no file {name[:60]!a}")
    return name
