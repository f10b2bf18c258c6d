"""Which files a key reaches, and how many it may store."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from bullpen.core.access.keys import Scope
from bullpen.core.company import add_agent
from bullpen.core.errors import StoreFull
from bullpen.core.files import require_free_space
from bullpen.core.intake import LONG_TEXT_CHARS
from bullpen.core.roster.agents import Agent
from bullpen.core.settings import Settings
from bullpen.core.settings.declare import MAX_NUMBER
from bullpen.core.store.base import Store
from tests.api.claiming import claim, own_agent
from tests.api.served import Served, serving
from tests.stores import Stores


def upload(served: Served, token: str | None = None, size: int = 5) -> dict[str, Any]:
    """Store a file."""
    found: dict[str, Any] = served.ok(
        "POST", "/api/files", files={"file": ("a.txt", b"x" * size)}, token=token
    )
    return found


@pytest.fixture
def keys(served: Served) -> tuple[str, str]:
    """A key for the agent `worker`, and one for `other`."""
    scopes = (Scope.PUBLISH, Scope.CLAIM, Scope.READ)
    return served.key(*scopes, agents=("worker",)), served.key(*scopes, agents=("other",))


def test_a_key_attaches_only_files_that_it_uploaded_or_its_agents_have(
    served: Served, keys: tuple[str, str]
) -> None:
    mine, others = keys
    name = upload(served, others)["name"]
    served.post("/api/message", {"message": "@other look", "files": [name]}, token=others)
    own = upload(served, mine)["name"]
    owners = upload(served)
    to = {"channel": "telegram", "sender": "Ann", "message": "look", "agent": "worker"}
    for given in (name, owners["name"], owners["path"]):
        files = {"files": [given]}
        for path, body in (
            ("/api/message", {"message": "@worker look", **files}),
            ("/api/responses", {**to, **files}),
        ):
            assert served.refused("POST", path, body, token=mine) == (403, "out_of_reach")
        assert served.refused("GET", f"/api/files/{Path(given).name}", token=mine)[0] == 403
    served.post("/api/message", {"message": "@worker look", "files": [own]}, token=mine)
    served.post("/api/responses", {**to, "files": [own]}, token=mine)
    # What the owner gives to an agent, a key for that agent may use from then on.
    served.post("/api/message", {"message": "@worker look", "files": [owners["name"]]})
    served.post("/api/responses", {**to, "files": [owners["name"]]}, token=mine)


def test_a_worker_sends_its_uploads_and_no_file_of_another_agent(
    served: Served, keys: tuple[str, str], inside: Store
) -> None:
    agent = own_agent(inside)
    mine, others = served.key(Scope.PUBLISH, Scope.CLAIM, agents=(agent,)), keys[1]
    theirs, own = upload(served, others), upload(served, mine)
    sent = served.post("/api/message", {"message": f"@{agent} give me"}, token=mine)
    token = claim(served, agent)["token"]
    body = {
        "token": token,
        "response": f"[send_file: {theirs['path']}] [send_file: {served.settings.token_file}]",
        "files": [theirs["name"], own["name"]],
    }
    served.post("/api/queue/complete", body, token=mine)
    (found,) = served.get(f"/api/responses?message_id={sent['messageId']}")
    assert found["files"] == [own["path"]]
    assert "belongs to another conversation" in found["message"]


def test_an_agent_whose_directory_is_the_home_has_none_of_its_files_attached(
    served: Served, office: Settings, inside: Store
) -> None:
    with inside.write() as tx:
        add_agent(tx, Agent(id="inhome", directory=str(office.home)))
    body = {"channel": "telegram", "sender": "Ann", "message": "look", "agent": "inhome"}
    for name in ("token", str(office.token_file), "bullpen.db", "settings.toml"):
        refused = served.refused("POST", "/api/responses", {**body, "files": [name]})
        assert refused == (404, "unknown_file"), name


def test_a_message_names_a_file_in_the_directory_of_an_agent_that_it_is_for(
    served: Served, office: Settings, tmp_path: Path
) -> None:
    """As TinyAGI's `files: ["/path/…"]`; a file of anybody else is refused truthfully."""
    home = office.workspace / "worker"
    home.mkdir(parents=True, exist_ok=True)
    (home / "notes.md").write_text("notes")
    (tmp_path / "secret").write_text("secret")
    (home / "link").symlink_to(tmp_path / "secret")
    os.link(tmp_path / "secret", home / "hard")
    path = str(home / "notes.md")
    for text in ("@worker read", "[@worker: read] [@other: read]", "[#dev: read]"):
        sent = served.post("/api/message", {"message": text, "files": [path]})
        (found, *_) = served.get(f"/api/messages?conversation_id={sent['conversationId']}")
        assert found["files"] == [path]
    key = served.key(Scope.PUBLISH, agents=("other",))
    refused = served.refused(
        "POST", "/api/message", {"message": "@worker x", "files": [path]}, token=key
    )
    assert refused == (403, "out_of_reach")
    for name in (str(tmp_path / "secret"), str(home / "link"), str(home / "hard"), str(home)):
        body = {"message": "@worker read", "files": [name]}
        assert served.refused("POST", "/api/message", body) == (404, "unknown_file")
    answer = served.ask("POST", "/api/message", {"message": "@other read", "files": [path]}).json()
    assert "outside of the agent's workspace" in answer["error"]


def test_a_key_stores_so_many_bytes_and_the_owner_as_many_as_they_like(stores: Stores) -> None:
    with serving(stores.settings("sqlite"), BULLPEN_KEY_UPLOAD_BYTES="5000") as served:
        key = served.key(Scope.PUBLISH)
        first = upload(served, key, 3000)
        file = {"file": ("b.txt", b"x" * 3000)}
        refused = served.refused("POST", "/api/files", files=file, token=key)
        assert refused == (507, "upload_quota")
        assert {each["name"] for each in served.get("/api/files")} == {first["name"]}
        upload(served, None, 9000)
        upload(served, served.key(Scope.PUBLISH), 3000)
        served.ok("DELETE", f"/api/files/{first['name']}")
        upload(served, key, 3000)


def test_with_little_free_space_uploads_and_long_texts_are_refused_and_short_ones_pass(
    stores: Stores,
) -> None:
    settings = stores.settings("sqlite")
    disk = os.statvfs(settings.home)
    floor = disk.f_bavail * disk.f_frsize + (1 << 30)
    with serving(settings, BULLPEN_FREE_BYTES_FLOOR=str(min(floor, MAX_NUMBER))) as served:
        served.ok("PUT", "/api/agents/assistant", {"name": "A", "provider": "echo", "model": ""})
        file = {"file": ("b.txt", b"x")}
        assert served.refused("POST", "/api/files", files=file) == (503, "store_full")
        long = "x" * (LONG_TEXT_CHARS + 1)
        for body in ({"message": long}, {"message": "x", "payload": {"x": long}}):
            response = served.ask("POST", "/api/message", body)
            assert (response.status_code, response.json()["code"]) == (503, "store_full")
            assert "free_bytes_floor" in response.json()["hint"]
        to = {"channel": "telegram", "sender": "Ann"}
        proactive = {**to, "message": long}
        assert served.refused("POST", "/api/responses", proactive) == (503, "store_full")
        served.post("/api/responses", {**to, "message": "a short one"})
        served.post("/api/message", {"message": "a short one"})


def test_a_small_disk_has_a_small_reserve(tmp_path: Path) -> None:
    """The reserve that is chosen by itself is 5 % of the disk, at most 200 MB."""
    disk = os.statvfs(tmp_path)
    free, total = disk.f_bavail * disk.f_frsize, disk.f_blocks * disk.f_frsize
    if free < total // 10:
        pytest.skip("the disk of these tests is nearly full itself")
    require_free_space(tmp_path, 0, 1000)
    with pytest.raises(StoreFull):
        require_free_space(tmp_path, 0, free)
    require_free_space(tmp_path / "none", 0, 1000)
