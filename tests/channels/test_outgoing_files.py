"""Files going out are opened when they are sent, and only from where the agent may send files.

A lease gives paths that were checked when the answer was written. What they lead to since then is
the agent's doing: the advisories behind these names were found in other systems of this kind.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from bullpen.core.answers.attachments import OpenFile, RefusedFile, open_response_files
from bullpen.core.message import Answer
from bullpen.core.outbox.delivery import Response
from bullpen.core.outbox.leases import lease_responses
from bullpen.core.outbox.write import send_to_person
from bullpen.core.store.base import Store
from tests.conformance.verbs import hire

SECRET = b"the owner's token"


def workspace(store: Store) -> Path:
    """The directory of the agent, with a report in it."""
    directory = store.settings.workspace / "coder"
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "report.txt").write_bytes(b"a report")
    return directory


def leased(store: Store, path: Path | str) -> Response:
    """A response with this file, leased by a client."""
    with store.write() as tx:
        send_to_person(
            tx,
            Answer(message="here", files=(str(path),)),
            channel="slack",
            sender="Ann",
            sender_id="U1",
            agent="coder",
        )
    with store.write() as tx:
        (delivery,) = lease_responses(tx, "slack", "client")
    return delivery


def opened(store: Store, response: Response) -> bytes | str:
    """What a client would send, or the reason for not sending it."""
    with open_response_files(store, response) as files:
        (found,) = files
        if isinstance(found, RefusedFile):
            return found.why
        assert isinstance(found, OpenFile)
        return found.file.read()


def link(report: Path, secret: Path) -> None:
    report.unlink()
    report.symlink_to(secret)


def hard_link(report: Path, secret: Path) -> None:
    report.unlink()
    os.link(secret, report)


def pipe(report: Path, _: Path) -> None:
    report.unlink()
    os.mkfifo(report)


def directory(report: Path, _: Path) -> None:
    report.unlink()
    report.mkdir()


def linked_directory(report: Path, secret: Path) -> None:
    report.rename(report.parent.parent / "elsewhere")
    report.parent.rmdir()
    (secret.parent / report.name).write_bytes(SECRET)
    report.parent.symlink_to(secret.parent, target_is_directory=True)


@pytest.mark.parametrize("change", [link, hard_link, pipe, directory, linked_directory])
def test_cve_2026_7875_what_replaced_a_file_since_the_lease_is_not_sent(
    store: Store, tmp_path: Path, change: Callable[[Path, Path], None]
) -> None:
    hire(store)
    secret = tmp_path / "secrets" / "token"
    secret.parent.mkdir()
    secret.write_bytes(SECRET)
    report = workspace(store) / "report.txt"
    response = leased(store, report)
    assert opened(store, response) == b"a report"
    change(report, secret)
    assert isinstance(opened(store, response), str)


@pytest.mark.parametrize(
    "path",
    [
        pytest.param("{home}/bullpen.db", id="CVE-2026-44996"),
        pytest.param("{temporary}/anything.txt", id="GHSA-hr5v-j9h9-xjhg"),
        pytest.param("/proc/self/environ", id="GHSA-33hm-cq8r-wc49"),
        pytest.param("{workspace}/reviewer/memory/notes.md", id="GHSA-jhpv-5j76-m56h"),
        pytest.param("{workspace}/coder/../../home-of-another/x", id="CVE-2026-28482"),
        pytest.param("../reviewer/memory/notes.md", id="relative"),
        pytest.param("{home}/files/../token", id="out-of-the-stored-files"),
    ],
)
def test_a_path_that_leads_elsewhere_is_checked_when_it_is_opened(
    store: Store, tmp_path: Path, path: str
) -> None:
    """No field of a response is trusted for the way in which its path came there."""
    hire(store)
    settings = store.settings
    workspace(store)
    for each in (
        tmp_path / "anything.txt",
        settings.workspace / "reviewer" / "memory" / "notes.md",
        settings.home / "token",
        settings.home / "files" / "x",
    ):
        each.parent.mkdir(parents=True, exist_ok=True)
        each.write_bytes(SECRET)
    places = {"home": settings.home, "workspace": settings.workspace, "temporary": tmp_path}
    assert isinstance(opened(store, leased(store, path.format(**places))), str)
