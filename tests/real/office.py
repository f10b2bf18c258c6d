"""A processor at work in a process of its own, agents to ask, and what became of it."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from bullpen.core.company import add_agent
from bullpen.core.intake import submit
from bullpen.core.message import NewMessage
from bullpen.core.models import ATTEMPTS, RESPONSES, SESSIONS
from bullpen.core.roster.agents import Agent, Permission, Sandbox
from bullpen.core.store.base import Store
from tests.conformance.verbs import Row, rows, status
from tests.processor.working import SOON, child, eventually, output
from tests.real.clis import BIN, Cli

NOWHERE = "http://127.0.0.1:9"
"""A proxy that is not there: who asks for anything but a stand-in is refused."""


class Office:
    """One installation of Bullpen in a scratch directory."""

    def __init__(self, store: Store, scratch: Path) -> None:
        self.store = store
        self.user = scratch / "user"
        self.user.mkdir()
        self._environ = {
            "HOME": str(self.user),
            "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
            "LANG": "C.UTF-8",
            **dict.fromkeys(("HTTPS_PROXY", "HTTP_PROXY"), NOWHERE),
            "NO_PROXY": "127.0.0.1",
            "BULLPEN_WORKSPACE": str(store.settings.workspace),
            "BULLPEN_GRACE_SECONDS": "0",
            "BULLPEN_RETRY_BASE_SECONDS": "0",
        }

    def hire(
        self,
        agent: str,
        cli: Cli,
        permission: Permission = Permission.EDIT,
        directory: Path | None = None,
        system_prompt: str = "",
        sandbox: Sandbox = Sandbox.NONE,
    ) -> None:
        """Take on an agent that this command line answers for."""
        self._environ.update(cli.environ)
        made = Agent(
            id=agent,
            provider=cli.provider,
            model=cli.model,
            permission=permission,
            directory=str(directory or ""),
            system_prompt=system_prompt,
            sandbox=sandbox,
        )
        with self.store.write() as tx:
            add_agent(tx, made)

    def ask(self, agent: str, text: str) -> str:
        """A person's message; gives its id."""
        new = NewMessage(agent=agent, message=text, channel="api", sender="ada", sender_id="U1")
        with self.store.write() as tx:
            (accepted,) = submit(tx, new)
        return accepted.message_id

    @contextmanager
    def processor(self, **settings: object) -> Iterator[subprocess.Popen[bytes]]:
        """`bullpen run processor`, stopped at the end of the block with all that it started."""
        more = {f"BULLPEN_{name.upper()}": str(value) for name, value in settings.items()}
        with child(self.store.settings, **{**self._environ, **more}) as process:
            try:
                yield process
            except BaseException:
                print(output(self.store.settings))
                raise
            finally:
                process.send_signal(signal.SIGTERM)
                with suppress(subprocess.TimeoutExpired):
                    process.wait(SOON)
        eventually(lambda: self.running() == [], "nothing outlives its processor")

    def running(self, marker: str | None = None) -> list[str]:
        """The command lines of what runs for this office and has the marker in its command."""
        user = f"HOME={self.user}".encode()
        found = []
        for each in Path("/proc").iterdir():
            with suppress(OSError):
                if each.name.isdigit() and user in (each / "environ").read_bytes().split(b"\0"):
                    command = (each / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                    if command and (marker or "") in command:
                        found.append(f"{each.name} {command[:200]}")
        return found

    def becomes(self, message_id: str, state: str) -> None:
        """Wait until the message is in this state."""
        eventually(lambda: status(self.store, message_id) == state, f"{message_id} is {state}")

    def answer(self, agent: str, text: str) -> str:
        """Ask, wait, and give what comes back."""
        asked = self.ask(agent, text)
        self.becomes(asked, "completed")
        (said,) = self.answers(asked)
        return said

    def answers(self, message_id: str) -> list[str]:
        """All that the person was told about a message."""
        found = rows(self.store, RESPONSES)
        return [str(row["message"]) for row in found if row["message_id"] == message_id]

    def attempts(self) -> list[Row]:
        """Every run that is over."""
        return rows(self.store, ATTEMPTS)

    def session(self) -> str:
        """The one session that is kept."""
        (row,) = rows(self.store, SESSIONS)
        return str(row["session_id"])
