"""The documentation says what is."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

from bullpen.api.description import describe
from bullpen.cli.lazy import walk_commands
from bullpen.cli.main import cli
from bullpen.core.maintenance.jobs import JOBS
from bullpen.core.models import whole_schema
from bullpen.core.settings import FIELDS
from bullpen.processor.plugins import Plugins
from tests.cli.command import LIMIT_SECONDS, Bullpen
from tests.cli.processor import processor
from tests.docs.render import DOCS, PAGES
from tests.outbox.outgoing import asked
from tests.stores import Stores

ROOT = DOCS.parent
MAX_SUMMARY = 70
COMMANDS = {" ".join(path): command for path, command in walk_commands(cli, "bullpen")}


def test_a_page_that_follows_from_the_code_is_up_to_date(subtests: pytest.Subtests) -> None:
    for page in sorted(PAGES):
        with subtests.test(page=page):
            assert (DOCS / page).read_text(encoding="utf-8") == PAGES[page](), "run: make docs"


def test_a_summary_of_a_route_is_one_short_sentence() -> None:
    summaries = {
        f"{method.upper()} {path}": operation["summary"]
        for path, methods in describe()["paths"].items()
        for method, operation in methods.items()
    }
    for route, summary in summaries.items():
        assert summary[:1].isupper(), route
        assert summary.endswith("."), route
        assert len(summary) <= MAX_SUMMARY, route


def test_a_setting_is_described_by_a_sentence() -> None:
    for each in FIELDS.values():
        doc = each.metadata["doc"]
        assert doc[:1].isupper(), each.name
        assert doc.endswith("."), each.name


def test_every_system_agent_is_documented(subtests: pytest.Subtests) -> None:
    for name in [agent.name for agent in JOBS]:
        with subtests.test(name=name):
            assert f"| `{name}` |" in (DOCS / "reference" / "maintenance.md").read_text(
                encoding="utf-8"
            )


def test_every_command_says_what_it_does_and_gives_an_example(subtests: pytest.Subtests) -> None:
    for path in sorted(COMMANDS):
        with subtests.test(path=path):
            command = COMMANDS[path]
            assert command.help
            assert "Example" in command.help or "Begin with" in command.help
            for parameter in command.params:
                if isinstance(parameter, click.Option) and parameter.name not in (
                    "help",
                    "version",
                ):
                    assert parameter.help, parameter.name


def test_every_link_and_test_named_in_the_documentation_exists(subtests: pytest.Subtests) -> None:
    for page in [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]:
        with subtests.test(page=page):
            text = page.read_text(encoding="utf-8")
            for target, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)]*))?\)", text):
                if "://" not in target:
                    linked = page.parent / target if target else page
                    assert linked.exists(), target
                    assert not anchor or anchor in _anchors(linked), f"{target}#{anchor}"
            for target in re.findall(r"\btests/[a-z_/]+(?:\.py)?\b", text):
                assert (ROOT / target).exists(), target


def _anchors(page: Path) -> set[str]:
    """What the headings of a page can be linked by."""
    titles = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", each.lower()).replace(" ", "-") for each in titles}


def test_the_python_example_runs_again_and_beside_a_processor(stores: Stores) -> None:
    page = DOCS / "how-to" / "use-from-python.md"
    (code,) = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    bullpen = Bullpen(stores.settings("sqlite").home)

    def run() -> None:
        done = subprocess.run(
            [sys.executable, "-c", code],
            env=bullpen.environment(),
            capture_output=True,
            text=True,
            timeout=LIMIT_SECONDS,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert "is completed" in done.stdout

    run()
    with processor(bullpen):
        run()
        run()


def test_the_example_of_a_plugin_works(tmp_path: Path) -> None:
    (code,) = re.findall(
        r"```python\n(.*?)```", (DOCS / "reference" / "agents.md").read_text(), re.DOTALL
    )
    (tmp_path / "plugins").mkdir()
    (tmp_path / "plugins" / "shouting.py").write_text(code)
    plugins = Plugins.load(tmp_path)
    assert plugins.listens
    assert plugins.incoming(asked("api_1"), " hello ") == "hello"
    text, metadata = plugins.outgoing(asked("api_1"), "hello")
    assert (text, json.loads(metadata or "")) == ("HELLO", {"parse_mode": "plain"})


def test_the_columns_that_users_know_keep_their_names() -> None:
    documented = {
        "messages": "id message_id channel sender sender_id message agent from_agent files status "
        "retry_count last_error claimed_by conversation_id created_at updated_at",
        "responses": "id message_id channel sender sender_id message original_message agent files "
        "metadata status created_at acked_at",
        "chat_messages": "id team_id from_agent message created_at",
        "agent_messages": "id agent_id role channel sender message_id content created_at",
    }
    for table, names in documented.items():
        assert set(names.split()) <= set(whole_schema().tables[table].c.keys())


def test_the_code_map_has_every_module_and_no_other() -> None:
    page = (DOCS / "explanation" / "code-map.md").read_text(encoding="utf-8")
    tree = re.findall(r"```\n(.*?)```", page, re.DOTALL)[0]
    above: list[str] = []
    listed = []
    for indent, name in re.findall(r"^( *)(\S+)", tree, re.MULTILINE):
        above = [*above[: len(indent) // 2], name]
        listed.append("".join(above).rstrip("/"))
    for each in listed:
        assert (ROOT / each).exists(), each
    for package in ("packages/bullpen", "packages/bullpen/core", "packages/bullpen/ops"):
        for path in (ROOT / package).iterdir():
            if path.name not in ("__init__.py", "__pycache__", "py.typed"):
                assert f"{package}/{path.name}" in listed
