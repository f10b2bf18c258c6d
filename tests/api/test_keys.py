"""Keys over the API: none makes one that may more, and a revoked one opens nothing."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from bullpen.core.access.keys import Scope, add_key, revoke_key
from bullpen.core.store.base import Store
from tests.api.served import LIMIT, Served

NEW = {"name": "dashboard", "scopes": ["read"]}


def test_a_key_is_shown_once_opens_what_it_may_and_is_revoked(served: Served) -> None:
    made = served.post("/api/keys", NEW)
    secret = made["key"]
    assert made["ok"] is True
    assert (made["scopes"], made["agents"], made["valid"]) == (["read"], None, True)
    served.get("/api/messages", token=secret)
    refused = served.refused("POST", "/api/keys", NEW, token=secret)
    assert refused == (403, "scope_too_small")
    listed = served.ask("GET", "/api/keys")
    assert secret not in listed.text
    assert made["id"] in {each["id"] for each in listed.json()}
    served.ok("DELETE", f"/api/keys/{made['id']}")
    assert served.ask("GET", "/api/messages", token=secret).status_code in (401, 429)
    (gone,) = (each for each in served.get("/api/keys") if each["id"] == made["id"])
    assert gone["valid"] is False
    assert gone["revoked_at"]


def test_the_owners_token_and_links_are_no_keys_of_the_list(served: Served) -> None:
    served.post("/api/login-links")
    kinds = {each["kind"] for each in served.get("/api/keys")}
    assert kinds <= {"key", "browser"}


def test_a_key_for_some_agents_makes_and_sees_keys_for_these_alone(served: Served) -> None:
    all_, mine = served.post("/api/keys", NEW), served.key(Scope.ADMIN, agents=("coder", "worker"))
    for agents in (None, ["other"], ["coder", "other"]):
        refused = served.refused("POST", "/api/keys", {**NEW, "agents": agents}, token=mine)
        assert refused == (403, "out_of_reach")
    made = served.post("/api/keys", {**NEW, "agents": ["coder"]}, token=mine)
    seen = {each["id"] for each in served.get("/api/keys", token=mine)}
    assert made["id"] in seen
    assert all_["id"] not in seen
    refused = served.refused("DELETE", f"/api/keys/{all_['id']}", token=mine)
    assert refused == (404, "unknown_key")
    served.get("/api/messages", token=all_["key"])
    served.ok("DELETE", f"/api/keys/{made['id']}", token=mine)


def test_a_key_makes_none_that_outlives_it(served: Served, inside: Store) -> None:
    with inside.write() as tx:
        end = tx.now + 3_600_000
        _, secret = add_key(tx, "short", [Scope.ADMIN], expires_at=end)
    assert served.refused("POST", "/api/keys", NEW, token=secret) == (400, "bad_key")
    late = {**NEW, "expires_at": end + 1}
    assert served.refused("POST", "/api/keys", late, token=secret) == (400, "bad_key")
    served.post("/api/keys", {**NEW, "expires_at": end}, token=secret)


def test_what_a_key_made_ends_with_it(served: Served, subtests: pytest.Subtests) -> None:
    maker = served.post("/api/keys", {**NEW, "scopes": ["admin"]})
    child = served.post("/api/keys", {**NEW, "scopes": ["admin"]}, token=maker["key"])
    grandchild = served.post("/api/keys", NEW, token=child["key"])
    browser = served.browser(token=child["key"])
    browsers_key = served.post("/api/keys", NEW, token="", headers=browser)
    link = served.post("/api/login-links", token=child["key"])["url"]
    other = served.post("/api/keys", NEW)
    assert (maker["made_by"], child["made_by"]) == ("owner", maker["id"])
    done = served.ok("DELETE", f"/api/keys/{maker['id']}")
    ended = {maker["id"], child["id"], grandchild["id"], browsers_key["id"]}
    assert ended < set(done["revoked"])
    assert len(done["revoked"]) == 5
    for made in (maker, child, grandchild, browsers_key):
        with subtests.test(made["made_by"]):
            assert served.ask("GET", "/api/me", token=made["key"]).status_code in (401, 429)
    with subtests.test("browser"):
        asked = served.ask("GET", "/api/me", token="", headers=browser)
        assert asked.status_code in (401, 429)
    with subtests.test("link"):
        assert served.follow(link).status_code in (401, 429)
    assert served.get("/api/me", token=other["key"])["id"] == other["id"]
    assert served.ok("DELETE", f"/api/keys/{maker['id']}")["revoked"] == []


@pytest.mark.one_store
def test_an_expired_keys_login_link_opens_nothing(served: Served, inside: Store) -> None:
    with inside.write() as tx:
        end = tx.now + 1500
        _, secret = add_key(tx, "short", [Scope.ADMIN], expires_at=end)
    made = served.post("/api/login-links", token=secret)
    assert made["expires_at"] == end
    browser = served.browser(token=secret)
    assert served.get("/api/me", token="", headers=browser)["expires_at"] == end
    refused = served.refused("POST", "/api/keys", NEW, token="", headers=browser)
    assert refused == (400, "bad_key")
    again = served.post("/api/login-links", token="", headers=browser)
    assert again["expires_at"] == end
    while inside.clock.now() <= end:
        time.sleep(0.05)
    for link in (made, again):
        assert served.follow(link["url"]).status_code in (401, 429)
    assert served.ask("GET", "/api/me", token="", headers=browser).status_code in (401, 429)


def test_who_logs_out_keeps_the_keys_that_they_made(served: Served) -> None:
    browser = served.browser()
    key = served.post("/api/keys", NEW, token="", headers=browser)
    link = served.post("/api/login-links", token="", headers=browser)["url"]
    served.post("/api/logout", token="", headers=browser)
    assert served.get("/api/me", token=key["key"])["id"] == key["id"]
    assert served.follow(link).status_code in (401, 429)
    done = served.ok("DELETE", f"/api/keys/{key['made_by']}")
    assert done["revoked"] == [key["id"]]
    assert served.ask("GET", "/api/me", token=key["key"]).status_code in (401, 429)


def test_what_was_made_in_a_browser_that_logged_out_ends_with_its_maker(served: Served) -> None:
    maker = served.post("/api/keys", {**NEW, "scopes": ["admin"]})
    browser = served.browser(token=maker["key"])
    key = served.post("/api/keys", NEW, token="", headers=browser)
    served.post("/api/logout", token="", headers=browser)
    done = served.ok("DELETE", f"/api/keys/{maker['id']}")
    assert set(done["revoked"]) == {maker["id"], key["id"]}
    assert served.ask("GET", "/api/me", token=key["key"]).status_code in (401, 429)


def test_what_waits_for_the_store_is_not_done_for_a_key_that_is_revoked_meanwhile(
    served: Served, inside: Store
) -> None:
    if inside.settings.url.startswith("postgresql"):
        pytest.skip("writers do not wait for each other there")
    secret = served.key(Scope.ADMIN)
    key = served.get("/api/me", token=secret)["id"]
    with ThreadPoolExecutor(1) as pool:
        with inside.write() as tx:
            path = "/api/lanes/coder/pause"
            waiting = pool.submit(served.refused, "POST", path, {}, token=secret)
            time.sleep(0.5)  # it has been let in by now, and waits; if not, it is refused anyway
            revoke_key(tx, key)
        assert waiting.result(LIMIT) == (401, "no_access")
    assert served.get("/api/lanes/coder")["state"] == "active"


def test_what_is_no_key_is_refused(served: Served, subtests: pytest.Subtests) -> None:
    for body in [
        {},
        {"name": "x"},
        {"name": "x", "scopes": []},
        {"name": "x", "scopes": ["everything"]},
        {"name": "", "scopes": ["read"]},
        {"name": "a\nb", "scopes": ["read"]},
        {"name": "\ud800", "scopes": ["read"]},
        {"name": "x", "scopes": ["read"], "agents": []},
        {"name": "x", "scopes": ["read"], "agents": ["Not A Name"]},
        {"name": "x", "scopes": ["read"], "expires_at": 5},
        {"name": "x", "scopes": ["read"], "expires_at": 1 << 70},
        {"name": "x", "scopes": ["read"], "key": "mine"},
    ]:
        with subtests.test(body=body):
            assert served.ask("POST", "/api/keys", body).status_code == 400


@pytest.mark.parametrize("key", ["key_nonsense", "%00", "%ff", "owner", "9" * 90])
def test_what_does_not_exist_cannot_be_revoked(served: Served, key: str) -> None:
    assert served.ask("DELETE", f"/api/keys/{key}").status_code in (400, 404)


def test_making_and_closing_a_key_is_in_the_audit_log(served: Served) -> None:
    made = served.post("/api/keys", NEW)
    served.ok("DELETE", f"/api/keys/{made['id']}")
    log = served.ask("GET", "/api/audit?limit=2")
    closed, opened = log.json()
    assert (opened["action"], opened["outcome"]) == ("keys add", "done")
    assert (closed["action"], closed["target"]) == ("keys revoke", f"/api/keys/{made['id']}")
    assert made["key"] not in log.text


@pytest.mark.parametrize("scope", [each for each in Scope if each is not Scope.ADMIN])
def test_only_an_admin_has_to_do_with_keys(served: Served, scope: Scope) -> None:
    secret = served.key(scope)
    body = {"name": "more", "scopes": [scope.value]}
    small = (403, "scope_too_small")
    assert served.refused("POST", "/api/keys", body, token=secret) == small
    assert served.refused("GET", "/api/keys", token=secret) == small
    assert served.refused("DELETE", "/api/keys/key_x", token=secret) == small
