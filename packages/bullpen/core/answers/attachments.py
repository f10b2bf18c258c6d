"""Files of an answer: open them safely, copy them out, and turn long text into a file."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from bullpen.core.files import PRIVATE_DIRECTORY_MODE, replace_file
from bullpen.core.models.base import decode_texts
from bullpen.core.outbox.delivery import Response
from bullpen.core.roster.agents import allowed_roots, files_root, find_agent
from bullpen.core.store.base import Store
from bullpen.core.store.transaction import Transaction
from bullpen.core.workspace.safe_files import Root, open_inside

MAX_FILES = 64
"""The most files of one answer."""

PATH_PREVIEW_CHARS = 200

MAX_NAME_CHARS = 60

TRUNCATION_NOTE = "… ({rest} more characters: the whole text is in the file {name})"

_UNSAFE_CHARS = re.compile(r"[^A-Za-z0-9_-]+")


@dataclass(frozen=True, slots=True)
class OpenFile:
    """A file of a response, opened to be sent."""

    name: str
    size: int
    """Its size in bytes when it was opened."""
    file: BinaryIO


MayBeSent = Callable[[str], bool]
"""Whether a file of the directory of files may be sent, by name."""


@dataclass(frozen=True, slots=True)
class RefusedFile:
    """A file that is not sent, and the reason."""

    path: str
    why: str

    def __str__(self) -> str:
        path = " ".join(self.path.split())
        if len(path) > PATH_PREVIEW_CHARS:
            path = f"{path[:PATH_PREVIEW_CHARS]}…"
        return f"{path} was not sent: {self.why}"


def open_allowed(path: str, roots: Sequence[Root]) -> BinaryIO | RefusedFile:
    """Open a file below one of these directories by its real path.

    A relative path belongs to the first directory. No part of the real path may become a link
    meanwhile, and the file must have no other hard link.
    """
    found = _find_root(path, roots)
    if isinstance(found, RefusedFile):
        return found
    root, parts = found
    try:
        return open_inside(root.anchor, (*root.parts, *parts))
    except (FileNotFoundError, NotADirectoryError):
        return RefusedFile(path, "it does not exist")
    except OSError as error:
        return RefusedFile(path, f"it cannot be read: {error.strerror}")
    except ValueError as error:
        return RefusedFile(path, str(error))


def resolve_allowed(path: str, roots: Sequence[Root], may_be_sent: MayBeSent) -> Path | RefusedFile:
    """The real path of a file that may be sent from one of these directories."""
    found = _find_root(path, roots)
    if isinstance(found, RefusedFile):
        return found
    root, parts = found
    opened = open_allowed(path, roots)
    if isinstance(opened, RefusedFile):
        return opened
    opened.close()
    if root.stored and not may_be_sent(parts[0]):
        return RefusedFile(path, "it belongs to another conversation")
    return root.path.joinpath(*parts)


def split_allowed(
    paths: Sequence[str], roots: Sequence[Root], may_be_sent: MayBeSent
) -> tuple[tuple[str, ...], tuple[RefusedFile, ...]]:
    """The real paths of the files that may be sent, without duplicates; and the refused files."""
    files = [resolve_allowed(path, roots, may_be_sent) for path in paths[:MAX_FILES]]
    if len(paths) > MAX_FILES:
        files.append(
            RefusedFile(
                paths[MAX_FILES],
                f"the answer has {len(paths)} files, of which at most {MAX_FILES} are sent",
            )
        )
    allowed = dict.fromkeys(str(each) for each in files if isinstance(each, Path))
    return tuple(allowed), tuple(each for each in files if isinstance(each, RefusedFile))


def _find_root(path: str, roots: Sequence[Root]) -> tuple[Root, tuple[str, ...]] | RefusedFile:
    """The directory that really contains the file, and the path below it."""
    try:
        real = Path(os.path.realpath(roots[0].path / path if roots else path))
        str(real).encode()
    except UnicodeEncodeError:
        return RefusedFile(path, "its real name is not UTF-8")
    except (OSError, ValueError) as error:
        return RefusedFile(path, f"it cannot be read: {error}")
    for root in roots:
        if real.is_relative_to(root.path):
            parts = real.relative_to(root.path).parts
            if not parts:
                return RefusedFile(path, "it is not a regular file")
            if root.stored and (len(parts) > 1 or parts[0].startswith(".")):
                return RefusedFile(path, "it is not one of the stored files")
            return root, parts
    given = roots[0].path / path if roots else Path(path)
    for root in roots:
        if root.path.is_symlink() and given.is_relative_to(root.path):
            return RefusedFile(path, f"{root.path} is a link, which is not followed")
    return RefusedFile(path, "it is outside of the agent's workspace and the stored files")


def response_roots(tx: Transaction, agent_id: str) -> tuple[Root, ...]:
    """The directories from which this agent may send files."""
    agent = find_agent(tx, agent_id)
    return (files_root(tx.settings),) if agent is None else allowed_roots(tx.settings, agent)


@contextmanager
def open_response_files(
    store: Store, response: Response
) -> Iterator[tuple[OpenFile | RefusedFile, ...]]:
    """Open the files of a response until the block ends; some may be refused by now."""
    with store.read() as tx:
        roots = response_roots(tx, response.agent)
    with ExitStack() as files:
        found: list[OpenFile | RefusedFile] = []
        for path in decode_texts(response.files):
            opened = open_allowed(path, roots)
            if isinstance(opened, RefusedFile):
                found.append(opened)
            else:
                files.enter_context(opened)
                size = os.fstat(opened.fileno()).st_size
                found.append(OpenFile(Path(path).name, size, opened))
        yield tuple(found)


def shorten_to_file(
    text: str, max_chars: int, directory: Path, name: str
) -> tuple[str, tuple[str, ...]]:
    """The text without a file; or, if it is too long, its beginning and a file with all of it."""
    if len(text) <= max_chars:
        return text, ()
    path = directory / _file_name(name, text)
    path.parent.mkdir(mode=PRIVATE_DIRECTORY_MODE, parents=True, exist_ok=True)
    replace_file(path, text.encode())  # before the message that names it is committed
    cut = _find_cut(text, max_chars)
    note = TRUNCATION_NOTE.format(rest=len(text) - cut, name=path.name)
    return f"{text[:cut].rstrip()}\n\n{note}", (str(path),)


def _file_name(name: str, text: str) -> str:
    """A file name that is unique for this text, because it has the text's digest.

    A client may have chosen `name`, so its characters are checked. A run that lost its claim may
    still write, and must not overwrite the file of the next run.
    """
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    return f"{_UNSAFE_CHARS.sub('_', name)[:MAX_NAME_CHARS]}_{digest}.md"


def _find_cut(text: str, max_chars: int) -> int:
    """The position to cut: after a paragraph, line or word that ends in the last quarter."""
    for end in ("\n\n", "\n", " "):
        at = text.rfind(end, max_chars - max_chars // 4, max_chars + 1)
        if at > 0:
            return at
    return max_chars
