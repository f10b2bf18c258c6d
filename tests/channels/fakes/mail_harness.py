"""A mail server in the words of all platforms, and the e-mail example as pip would install it."""

from __future__ import annotations

import importlib
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.channels.fakes.harness import Harness, Said
from tests.channels.fakes.mail import PASSWORD, MailServer, example
from tests.channels.fakes.post import Post


class MailHarness(Harness):
    """A mailbox, driven by a test."""

    channel = "email"

    def __init__(self, server: MailServer) -> None:
        self.server = server
        self._timers: list[threading.Timer] = []

    def close(self) -> None:
        """Wait for what `fail_next` has planned."""
        for each in self._timers:
            each.join()

    def settings(self) -> dict[str, str]:
        return {**self.server.settings, "sent_folder": "Sent"}

    def person(self, number: int) -> str:
        """The address of a person, which is also their direct chat."""
        return f"person{number}@example.org"

    def direct(self, number: int) -> str:
        return self.person(number)

    def group(self) -> str:
        pytest.skip("e-mail has no groups")

    def write(self, chat: str, person: str, said: Said) -> str:
        return self.server.write(person, said.text, subject="")

    def edit(self, chat: str, message: str, text: str) -> None:
        """A mail cannot be changed."""

    def delete(self, chat: str, message: str) -> None:
        """A mail cannot be taken back."""

    def press(self, chat: str, person: str, value: str) -> None:
        """A mail has no buttons."""

    def redeliver(self, message: str) -> None:
        self.server.deliver_again(message)

    def parts(self, chat: str) -> Sequence[Post]:
        found = []
        for mail in self.server.sent:
            if mail["To"] == chat:
                name = mail.get_filename("")
                text = "" if name else mail.get_content()
                found.append(Post(mail["Message-ID"], text, name))
        return found

    def fail_next(self, fault: str, n: int = 1, *, seconds: float = 1.0) -> None:
        match fault:
            case "refuse":
                self.server.stop_smtp()
                self._timers.append(threading.Timer(seconds, self.server.start_smtp))
                self._timers[-1].start()
            case "close":
                self.server.cut += n
            case "taken_then_500":
                self.server.lost_answers += n
            case "refused":
                self.refuse_texts(n)
            case "revoked":
                self.revoke()
            case _:
                pytest.skip(f"the mail server has no fault {fault}")

    def refuse_texts(self, count: int) -> None:
        self.server.answers += ["554 not wanted"] * count

    def revoke(self) -> None:
        self.server.password = "another password"

    def restore(self) -> None:
        self.server.password = PASSWORD
        self.server.answers.clear()

    def heal(self) -> None:
        self.restore()
        self.server.cut = self.server.lost_answers = 0

    def offline(self) -> None:
        self.server.offline()

    def online(self) -> None:
        self.server.online()

    def lookup_off(self) -> None:
        self.server.keeps_copies = False

    def lookup_on(self) -> None:
        self.server.keeps_copies = True


@contextmanager
def mailbox() -> Iterator[MailHarness]:
    """A mailbox, and the example installed in this process."""
    with installed(), MailServer(keeps_copies=True) as server:
        harness = MailHarness(server)
        try:
            yield harness
        finally:
            harness.close()


@contextmanager
def installed() -> Iterator[None]:
    """The example on the path of modules, with its entry point."""
    with tempfile.TemporaryDirectory() as directory:
        info = Path(directory, "bullpen_email-1.0.dist-info")
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: bullpen-email\nVersion: 1.0\n")
        entry = "[bullpen.channels]\nemail = bullpen_email:EMAIL\n"
        (info / "entry_points.txt").write_text(entry)
        with pytest.MonkeyPatch.context() as patch:
            patch.syspath_prepend(directory)
            patch.syspath_prepend(str(example("bullpen-email")))
            importlib.invalidate_caches()
            yield
