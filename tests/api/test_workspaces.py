"""What is in agents' directories, over the API: read and written there, and never beyond."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from bullpen.core.access.keys import Scope
from bullpen.core.company import add_agent, change_agent
from bullpen.core.roster.agents import Agent, get_agent
from bullpen.core.settings import Settings
from bullpen.core.store.base import Store
from bullpen.core.store.open import open_store
from bullpen.core.workspace.templates import protocol_template
from bullpen.processor.context import build_system_prompt
from tests.api.served import Served
from tests.stores import Stores

PROMPT = "/api/agents/ada/system-prompt"
FORBIDDEN = "what-lies-outside"
PATHS = ("system-prompt", "skills", "memory", "memory/note.md", "memory/deep/er/note.md")


@pytest.fixture(scope="module")
def office(stores: Stores) -> Settings:
    """An empty home: what lies in directories is the same on either store."""
    settings = stores.settings("sqlite")
    store = open_store(settings)
    with store.write() as tx:
        add_agent(tx, Agent(id="coder"))
    store.close()
    return settings


@pytest.fixture
def home(served: Served) -> Iterator[Path]:
    """The directory of a new agent."""
    served.ok("PUT", "/api/agents/ada", {"name": "Ada", "provider": "echo"})
    home = served.settings.workspace / "ada"
    yield home
    served.ok("DELETE", "/api/agents/ada")
    _clear(home)


def _clear(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    elif os.path.lexists(path):
        path.unlink()


def _write(path: Path, text: str | bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())


def test_the_users_part_is_read_and_written_and_bullpens_stays(served: Served, home: Path) -> None:
    before = served.get(PROMPT)
    assert "About this agent" in before["content"]
    assert before["path"] == str(home / "AGENTS.md")
    assert "bullpen: the protocol" not in before["content"]
    text = "# Ada\n\nCounts — with care. ☃"
    assert served.ok("PUT", PROMPT, {"content": text}) == {"ok": True}
    assert served.get(PROMPT) == {**before, "content": text}
    written = (home / "AGENTS.md").read_text()
    assert protocol_template() in written
    assert "About this agent" not in written
    served.ok("PUT", PROMPT, {"content": written})
    assert (home / "AGENTS.md").read_text() == written
    served.ok("PUT", PROMPT, {"content": ""})
    assert served.get(PROMPT)["content"] == ""
    assert protocol_template() in (home / "AGENTS.md").read_text()


@pytest.mark.parametrize("directory", ["", "somewhere"])
def test_what_is_written_is_what_the_prompt_has(
    served: Served, inside: Store, home: Path, directory: str
) -> None:
    if directory:
        other = served.settings.home / directory
        other.mkdir(exist_ok=True)
        with inside.write() as tx:  # only on the machine itself
            change_agent(tx, "ada", directory=str(other))
    served.ok("PUT", PROMPT, {"content": "Count to twelve."})
    served.ok("PATCH", "/api/agents/ada", {"system_prompt": "And be brief."})
    _write(home / "memory" / "likes.md", "---\nname: Likes\nsummary: tea\n---\n")
    with inside.read() as tx:
        agent = get_agent(tx, "ada")
    told = build_system_prompt(agent, home, (), {})
    assert "Count to twelve." in told
    assert "And be brief." in told
    assert served.get("/api/agents/ada/memory")["index"] in told
    assert served.get(PROMPT)["content"] == "Count to twelve."


def test_a_part_that_the_user_took_out_stays_out(served: Served, home: Path) -> None:
    _write(home / "AGENTS.md", "all of it is mine")
    served.ok("PUT", PROMPT, {"content": "still mine"})
    assert (home / "AGENTS.md").read_text() == "still mine\n"


def test_instructions_are_written_where_there_was_no_directory(served: Served, home: Path) -> None:
    shutil.rmtree(home)
    assert served.get(PROMPT)["content"] == ""
    served.ok("PUT", PROMPT, {"content": "from nothing"})
    assert served.get(PROMPT)["content"] == "from nothing"
    assert (home / "memory").is_dir()


@pytest.mark.parametrize(
    "body",
    [{}, {"content": None}, {"content": "a\0b"}, {"content": "\ud800"}, {"content": "x" * 100_000}],
    ids=["nothing", "null", "nul", "surrogate", "long"],
)
def test_what_no_prompt_can_have_is_refused(served: Served, home: Path, body: Any) -> None:  # noqa: ANN401
    before = (home / "AGENTS.md").read_bytes()
    assert served.ask("PUT", PROMPT, body).status_code == 400
    assert (home / "AGENTS.md").read_bytes() == before


def test_skills_are_listed_with_what_they_say_of_themselves(served: Served, home: Path) -> None:
    _write(home / "skills" / "cook" / "SKILL.md", "---\nname: Cook\ndescription: soup\n---\nBoil.")
    _write(home / "skills" / "mute" / "SKILL.md", "says nothing")
    (home / "skills" / "empty").mkdir()
    found = {each["id"]: each for each in served.get("/api/agents/ada/skills")}
    assert found["cook"] == {"id": "cook", "name": "Cook", "description": "soup"}
    assert found["mute"] == {"id": "mute", "name": "mute", "description": ""}
    assert "empty" not in found
    assert found["memory"]["description"]


def test_memory_is_listed_and_read(served: Served, home: Path) -> None:
    text = "---\nname: Ada's tea\nsummary: green\n---\nNever black. ☃"
    _write(home / "memory" / "tea.md", text)
    _write(home / "memory" / "people" / "bea.md", "no front matter")
    _write(home / "memory" / "picture.png", b"\x89PNG")
    found = served.get("/api/agents/ada/memory")
    assert found["memoryDir"] == str(home / "memory")
    assert found["files"] == [
        {"name": "bea.md", "path": "people/bea.md"},
        {"name": "tea.md", "path": "tea.md"},
    ]
    assert "memory/tea.md: Ada's tea — green" in found["index"]
    read = served.get("/api/agents/ada/memory/tea.md")
    assert read == {"name": "tea.md", "path": "tea.md", "content": text, "truncated": False}
    assert served.get("/api/agents/ada/memory/people/bea.md")["content"] == "no front matter"


@pytest.mark.parametrize(
    "path",
    [
        "missing.md",
        "../AGENTS.md",
        "..%2fAGENTS.md",
        "%2e%2e/AGENTS.md",
        "x/../../AGENTS.md",
        "%2fetc%2fhostname",
        "people",
        "tea.md/x",
        "a%00b.md",
        "%ff.md",
        "x" * 300 + ".md",
        "/".join(["d"] * 400) + "/x.md",
        "./tea.md",
    ],
)
def test_a_path_that_leads_out_or_nowhere_is_404(served: Served, home: Path, path: str) -> None:
    _write(home / "memory" / "tea.md", "tea")
    (home / "memory" / "people").mkdir()
    raw = served.url + f"/api/agents/ada/memory/{path}"
    request = served.session.prepare_request(
        requests.Request("GET", raw, headers={"Authorization": f"Bearer {served.token}"})
    )
    request.url = raw  # as it stands: no library tidies it up
    response = served.session.send(request, timeout=60)
    assert response.status_code == 404, response.text
    assert response.json()["code"] in ("unknown_file", "not_found")


OBSTACLES = [
    "outside",
    "outside directory",
    "loop",
    "pipe",
    "directory",
    "huge",
    "binary",
    "locked",
]
PLACES = [
    ".",
    "AGENTS.md",
    "memory",
    "memory/note.md",
    "memory/deep",
    "skills",
    "skills/cook",
    "skills/cook/SKILL.md",
    ".bullpen",
    ".bullpen/templates.json",
    ".claude",
]


def _obstruct(path: Path, kind: str, outside: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    match kind:
        case "outside":
            path.symlink_to(outside / "note.md")
        case "outside directory":
            path.symlink_to(outside)
        case "loop":
            path.symlink_to(path.name)
        case "pipe":
            os.mkfifo(path)
        case "directory":
            path.mkdir()
        case "huge":
            with path.open("wb") as file:
                file.truncate(1 << 40)
        case "binary":
            path.write_bytes(b"---\n\xff\xfe\x00: \xed\xa0\x80\n---\n" + os.urandom(4096))
        case "locked":
            path.write_text(FORBIDDEN)
            path.chmod(0)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kind", OBSTACLES)
def test_whatever_an_agent_puts_there_nothing_hangs_fails_or_leads_out(
    served: Served, home: Path, tmp_path: Path, kind: str, place: str
) -> None:
    outside = tmp_path / "outside"
    for name in ("note.md", "SKILL.md", "AGENTS.md", "deep/er/note.md", "cook/SKILL.md"):
        _write(outside / name, f"---\nname: {FORBIDDEN}\nsummary: {FORBIDDEN}\n---\n{FORBIDDEN}")
    before = {path: path.stat().st_mtime_ns for path in (outside, *outside.rglob("*"))}
    spot = home / place
    _clear(spot)
    _obstruct(spot, kind, outside)
    for path in PATHS:
        response = served.ask("GET", f"/api/agents/ada/{path}", timeout=60)
        assert response.status_code in (200, 404), (path, response.text)
        assert (os.geteuid() == 0 and kind == "locked") or FORBIDDEN not in response.text, path
    for method, path, body in (
        ("PUT", "/api/agents/ada", {"name": "Ada"}),
        ("PUT", PROMPT, {"content": "Count."}),
    ):
        response = served.ask(method, path, body, timeout=60)
        assert response.status_code in (200, 409), (path, response.text)
    after = {path: path.stat().st_mtime_ns for path in (outside, *outside.rglob("*"))}
    assert after == before


def test_a_link_is_not_written_through_nor_replaced(
    served: Served, home: Path, tmp_path: Path
) -> None:
    target = tmp_path / "target.md"
    target.write_text("untouched")
    (home / "AGENTS.md").unlink()
    (home / "AGENTS.md").symlink_to(target)
    assert served.refused("PUT", PROMPT, {"content": "x"}) == (409, "in_the_way")
    assert target.read_text() == "untouched"
    assert (home / "AGENTS.md").is_symlink()


def test_a_long_file_is_cut_and_says_so(served: Served, home: Path) -> None:
    _write(home / "memory" / "long.md", "x" * (3 << 20))
    found = served.get("/api/agents/ada/memory/long.md")
    assert (len(found["content"]), found["truncated"]) == (1 << 20, True)


def test_a_forest_of_files_is_listed_in_time(served: Served, home: Path) -> None:
    for number in range(24):
        for deep in range(50):
            _write(home / "memory" / f"d{number}" / f"{deep}.md", "x")
    found = served.ask("GET", "/api/agents/ada/memory", timeout=60).json()
    assert len(found["files"]) == 1000
    assert "and 1000 more files" in found["index"]
    deepest = home / "memory"
    for _ in range(200):
        deepest /= "d"
    _write(deepest / "x.md", "x")
    served.ask("GET", "/api/agents/ada/memory", timeout=60).raise_for_status()


def test_names_that_are_not_utf_8_are_listed_all_the_same(served: Served, home: Path) -> None:
    (home / "memory" / os.fsdecode(b"\xff.md")).write_text("x")
    (home / "skills" / os.fsdecode(b"\xfe")).mkdir()
    (home / "skills" / os.fsdecode(b"\xfe") / "SKILL.md").write_text("x")
    assert len(served.get("/api/agents/ada/memory")["files"]) == 1
    assert "?" in {each["id"] for each in served.get("/api/agents/ada/skills")}


def test_who_does_not_exist_is_404_and_who_is_out_of_reach_403(served: Served) -> None:
    limited = served.key(Scope.ADMIN, agents=("coder",))
    for path in PATHS:
        there = f"/api/agents/nobody/{path}"
        assert served.refused("GET", there) == (404, "unknown_agent")
        assert served.refused("GET", there, token=limited) == (403, "out_of_reach")
    there = "/api/agents/nobody/system-prompt"
    assert served.refused("PUT", there, {"content": "x"}) == (404, "unknown_agent")
    assert served.refused("PUT", there, {"content": "x"}, token=limited) == (403, "out_of_reach")
    reader = served.key(Scope.READ)
    refused = served.refused(
        "PUT", "/api/agents/coder/system-prompt", {"content": ""}, token=reader
    )
    assert refused == (403, "scope_too_small")
    assert not (served.settings.workspace / "nobody").exists()
