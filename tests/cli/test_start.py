"""The command line begins at once: a command loads what it needs, and nothing else."""

from __future__ import annotations

import subprocess
import sys

from tests.cli.command import Bullpen

PROGRAM = """
import sys
from bullpen.cli.main import main
try:
    main()
finally:
    print(*sys.modules, file=sys.stderr)
"""

# asyncio is not among them: SQLAlchemy itself imports it.
HEAVY = {
    *("alembic", "flask", "flask_openapi3", "gunicorn", "prometheus_client", "psutil", "psycopg"),
    *("pydantic", "pyspark", "rich", "slack_sdk", "supervisor", "textual", "tomlkit", "twilio"),
    *("sqlalchemy.dialects.postgresql", "sqlalchemy.orm", "xmlrpc"),
    *("bullpen.api", "bullpen.processor", "bullpen.scheduler", "bullpen.ops.services.supervisor"),
    *("bullpen.core.company", "bullpen.core.message", "bullpen.core.inspect.queue"),
}


def loaded(bullpen: Bullpen, *command: str) -> set[str]:
    """The modules of a process of its own that ran this command, its output in a pipe."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *command],
        env=bullpen.environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stderr.split())


def test_agents_are_listed_without_anything_that_takes_long_to_load(bullpen: Bullpen) -> None:
    bullpen.ok("agent", "add", "coder", "--provider", "echo")
    for command in (("agent", "list"), ("agent", "list", "--json")):
        modules = loaded(bullpen, *command)
        assert "sqlalchemy" in modules  # the list of them is the right one
        assert modules & HEAVY == set()


def test_what_needs_no_store_loads_none(bullpen: Bullpen) -> None:
    modules = loaded(bullpen, "--version")
    assert "click" in modules
    assert "sqlalchemy" not in modules
