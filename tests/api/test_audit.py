"""The audit log over the API: what was done and refused, in pages, and without secrets."""

from __future__ import annotations

import re
from typing import Any

from bullpen.core.access.keys import Scope
from tests.api.served import Served


def test_what_was_done_and_refused_is_listed_the_latest_first(served: Served) -> None:
    made = served.post("/api/keys", {"name": "audited", "scopes": ["read"]})
    served.refused("DELETE", f"/api/keys/{made['id']}", token=made["key"])
    refused, done = served.get("/api/audit?limit=2")
    assert (done["action"], done["outcome"], done["key_id"]) == ("keys add", "done", "owner")
    assert (refused["outcome"], refused["key_id"]) == ("scope_too_small", made["id"])
    assert refused["target"] == f"/api/keys/{made['id']}"
    assert made["key"] not in served.ask("GET", "/api/audit?limit=500").text


def test_the_log_pages_by_its_numbers(served: Served) -> None:
    first = served.get("/api/audit?limit=1")[0]["id"] if served.get("/api/audit") else 0
    for number in range(5):
        served.post("/api/keys", {"name": f"page {number}", "scopes": ["read"]})
    found, since = [], first
    while True:
        response = served.ask("GET", f"/api/audit?limit=2&since_id={since}")
        found += [each["id"] for each in response.json()]
        if "X-Next-Cursor" not in response.headers:
            break
        since = int(response.headers["X-Next-Cursor"])
    assert len(found) == 5
    assert found == sorted(found)
    assert min(found) > first


def test_changes_of_the_scopes_approve_and_admin_are_in_the_log_and_no_others(
    served: Served,
) -> None:
    key = served.key(Scope.READ)
    key_id = served.get("/api/me", token=key)["id"]
    expected, refused = set(), set()
    document = served.get("/openapi/openapi.json", token="")
    for template, methods in document["paths"].items():
        path = template.replace("{action}", "start").replace("{", "").replace("}", "")
        for method, operation in methods.items():
            needs = re.search(r"the scope `(\w+)`", operation.get("description", ""))
            if method == "get" or needs is None or path == "/api/files":
                continue
            body = _least_body(document, operation)
            assert served.refused(method, path, body, token=key) == (403, "scope_too_small"), path
            refused.add(path)
            # A schedule that runs by hand sends a message, which needs only `publish`.
            if needs[1] in ("approve", "admin") or path == "/api/schedules/schedule/run":
                expected.add(path)
    log = served.get("/api/audit?limit=500")
    audited = {each["target"] for each in log if each["key_id"] == key_id}
    assert len(refused) > 50
    assert audited == expected


def _least_body(document: Any, operation: Any) -> dict[str, object]:  # noqa: ANN401 - JSON
    """The required fields of a request's body, with text that no field refuses."""
    content = operation.get("requestBody", {}).get("content", {})
    reference = content.get("application/json", {}).get("schema", {}).get("$ref", "/")
    schema = document["components"]["schemas"].get(reference.rsplit("/", 1)[1], {})
    return {name: ["read"] if name == "scopes" else "x" for name in schema.get("required", [])}


def test_it_is_for_keys_that_may_everything(served: Served) -> None:
    for token, code in (
        (served.key(Scope.READ), "scope_too_small"),
        (served.key(Scope.ADMIN, agents=("coder",)), "out_of_reach"),
    ):
        assert served.refused("GET", "/api/audit", token=token) == (403, code)
