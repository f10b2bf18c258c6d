"""Copies of files that lie elsewhere on this machine: what a person names goes along with words."""

from __future__ import annotations

from pathlib import Path

from bullpen.core.errors import BodyTooLarge, UnknownFile
from bullpen.core.files.incoming import SavedUpload, Upload
from bullpen.core.ids import Ids

CHUNK_BYTES = 1 << 20


def upload_copy(source: Path, directory: Path, ids: Ids, most: int) -> SavedUpload:
    """Copy this file into the directory of files, under a name of its own."""
    try:
        file = source.open("rb")
    except OSError as error:
        raise UnknownFile(f"{source} cannot be read: {error.strerror}") from None
    with file:
        incoming = Upload(directory)
        try:
            left = most
            while data := file.read(min(CHUNK_BYTES, left + 1)):
                left -= len(data)
                if left < 0:
                    raise BodyTooLarge(
                        f"{source} has more than {most} bytes",
                        hint="Send less; the limit is the setting `upload_bytes`.",
                    )
                incoming.write(data)
            return incoming.keep(ids, source.name)
        except OSError as error:
            raise UnknownFile(f"{source} cannot be read: {error.strerror}") from None
        finally:
            incoming.drop()
