"""The two command lines under test, each with a stand-in for its model."""

from __future__ import annotations

import json
import os
from abc import ABC, abstractmethod
from pathlib import Path

from bullpen.core.roster.providers import CustomProvider, Harness, add_custom_provider
from bullpen.core.store.base import Store
from tests.real.anthropic import AnthropicServer
from tests.real.openai import OpenAIServer
from tests.real.reply import UseTool
from tests.real.server import ModelServer

ROOT = Path(__file__).resolve().parents[2]
BIN = ROOT / os.environ.get("BULLPEN_CLIS", ".clis") / "bin"
"""Where deploy/clis.sh puts them."""
KEY = "dummy-key"


class Cli(ABC):
    """One of them, with its files in a scratch directory."""

    name: str
    model: str
    command: str
    """What its command line has, and that of no tool."""

    def __init__(self, server: ModelServer, scratch: Path) -> None:
        self.server = server
        self.home = scratch / self.name
        self.home.mkdir()

    @property
    def provider(self) -> str:
        """What an agent names to be answered by it."""
        return self.name

    @property
    @abstractmethod
    def environ(self) -> dict[str, str]:
        """What it needs in the processor's environment."""

    @abstractmethod
    def sessions(self) -> list[Path]:
        """Where it keeps what was said."""

    @abstractmethod
    def shell(self, command: str) -> UseTool:
        """A call of its tool that runs commands."""

    def prepare(self, store: Store) -> None:
        """Make it known to the store."""
        del store


class Claude(Cli):
    """claude, as an agent's provider of that name."""

    name = "claude"
    model = "claude-sonnet-4-5"
    command = " --output-format stream-json "

    @property
    def environ(self) -> dict[str, str]:
        """A key, an address, and no traffic besides."""
        return {
            "CLAUDE_CONFIG_DIR": str(self.home),
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "ANTHROPIC_BASE_URL": self.server.url,
            "ANTHROPIC_API_KEY": KEY,
        }

    def sessions(self) -> list[Path]:
        """One file each."""
        return sorted(self.home.glob("projects/*/*.jsonl"))

    def shell(self, command: str) -> UseTool:
        """Bash."""
        return UseTool("Bash", {"command": command, "description": "as the test says"})


class Codex(Cli):
    """codex, behind a custom provider."""

    name = "codex"
    model = "gpt-5-codex"
    command = " exec --json "

    @property
    def provider(self) -> str:
        """A custom one: the built-in one's address and retries cannot be changed."""
        return "custom:standin"

    @property
    def environ(self) -> dict[str, str]:
        """Its directory."""
        return {"CODEX_HOME": str(self.home)}

    def prepare(self, store: Store) -> None:
        """Add the custom provider."""
        # What it sends to its makers is a matter of its user's, not of Bullpen's.
        switches = ("analytics.enabled", "features.plugins")
        config = "".join(f"{switch} = {json.dumps(False)}\n" for switch in switches)
        (self.home / "config.toml").write_text(config)
        provider = CustomProvider(
            id="standin", harness=Harness.CODEX, base_url=self.server.url, api_key=KEY
        )
        with store.write() as tx:
            add_custom_provider(tx, provider)

    def sessions(self) -> list[Path]:
        """One file each."""
        return sorted(self.home.glob("sessions/**/*.jsonl"))

    def shell(self, command: str) -> UseTool:
        """Its own tool."""
        return UseTool("exec_command", {"cmd": command})


def make(name: str, scratch: Path) -> Cli:
    """The one of this name, its stand-in not started yet."""
    if name == "claude":
        return Claude(AnthropicServer(), scratch)
    return Codex(OpenAIServer(), scratch)
