"""`bullpen`: what a library user imports."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import bullpen
from tests.docs.render import DOCS

NAMES = """
    Accepted AddressFormat Agent Answer Batching BullpenError ChannelInfo
    ChannelLimits ChannelSetting Claim CommitUnknown Conflict Credential DuplicateMessage
    ErrorKind Failure InputError LaneClosed LaneError LaneFull LanePolicy Launcher Login Message
    MessageState NewMessage NotFound OpenFile Ordering Outcome Overflow Priority ProviderInfo
    RefusedFile Reply ReplyTo ReportInfo ReportProgress RoomPost RunOutput RunRequest Settings
    StaleToken Stop Store StoreBusy StoreError StoreUnavailable Team Transaction UnknownAgent
    UnknownMessage Usage
    add_agent add_team cancel change_agent change_team claim complete create_lane drain_lane
    drop enqueue enqueue_many extend fail finish get_message hold open_store pause_lane release
    remove_agent remove_team resume resume_lane retry submit
"""


def typed_imports() -> dict[str, str]:
    """The module of each name, as type checkers and editors read it."""
    tree = ast.parse(Path(bullpen.__file__).read_text(encoding="utf-8"))
    return {
        alias.name: node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("bullpen.")
        for alias in node.names
        if node.module is not None
    }


def test_a_library_user_gets_these_names_and_no_others() -> None:
    assert bullpen.__all__ == NAMES.split()
    assert set(NAMES.split()) <= set(dir(bullpen))


def test_a_type_checker_sees_what_is_loaded() -> None:
    modules = typed_imports()
    assert sorted(modules) == sorted(NAMES.split())
    for name, module in modules.items():
        assert getattr(bullpen, name) is getattr(import_module(module), name), name


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        bullpen.nonsense  # type: ignore[attr-defined]  # noqa: B018 - that is the test


def test_importing_bullpen_loads_nothing_else() -> None:
    code = "import sys; before = set(sys.modules); import bullpen; print(set(sys.modules) - before)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(ast.literal_eval(done.stdout))
    assert not {name for name in loaded if name.startswith("bullpen.")}
    assert not loaded & {"sqlalchemy", "sqlite3", "flask", "click", "pydantic", "psycopg", "rich"}


def test_a_name_loads_what_it_needs_and_no_server() -> None:
    code = "import sys; from bullpen import claim, submit, open_store; print(list(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(ast.literal_eval(done.stdout))
    assert "bullpen.core.queue.claim" in loaded
    assert not loaded & {"flask", "click", "pydantic", "psycopg", "rich", "alembic"}


def test_examples_in_the_documentation_import_the_public_interface_alone() -> None:
    for page in (DOCS.parent / "README.md", *sorted(DOCS.rglob("*.md"))):
        for code in re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
            for node in ast.walk(ast.parse(code)):
                if isinstance(node, ast.ImportFrom):
                    assert _is_public(node.module or ""), page.name
                if isinstance(node, ast.Import):
                    for alias in node.names:
                        assert _is_public(alias.name), page.name


def _is_public(module: str) -> bool:
    """Whether a module is not Bullpen's, or its public interface."""
    public = ("bullpen.channels", "bullpen.reports", "bullpen.reports.spark")
    return not module.startswith("bullpen.") or module in public
