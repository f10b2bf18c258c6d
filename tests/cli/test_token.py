"""bullpen token: shown masked, revealed on purpose, and made anew."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from bullpen.core.text import MASK
from tests.api.served import serving
from tests.cli.command import Bullpen
from tests.stores import Stores


def test_it_is_masked_unless_it_is_asked_for(empty: Bullpen) -> None:
    assert "No token yet" in empty.ok("token").out
    assert not (empty.home / "token").exists()
    secret = empty.ok("token", "--reveal").out.strip()
    assert secret == (empty.home / "token").read_text().strip()
    assert secret.startswith("bp_")
    for args in (("token",), ("token", "show"), ("token", "--json"), ("token", "show", "--json")):
        shown = empty.ok(*args).out
        assert MASK in shown
        assert secret not in shown
        assert str(empty.home / "token") in shown
        assert "600" in shown
    assert empty.ok("token", "show", "--reveal").out == f"{secret}\n"
    assert empty.ok("token", "--reveal", "--json").json["token"] == secret
    assert empty.ok("token", "path").out == f"{empty.home / 'token'}\n"


def test_a_new_one_opens_and_the_old_one_no_longer(stores: Stores) -> None:
    settings = stores.settings("sqlite")
    bullpen = Bullpen(settings.home)
    with serving(settings) as served:
        old = settings.token_file.read_text().strip()
        assert served.get("/api/me", token=old)["id"] == "owner"
        done = bullpen.ok("token", "rotate", "--yes", "--json")
        new = bullpen.ok("token", "--reveal").out.strip()
        assert new != old
        assert {old, new}.isdisjoint(done.out.split('"'))
        assert served.refused("GET", "/api/me", token=old) == (401, "no_access")
        assert served.get("/api/me", token=new)["id"] == "owner"
    assert settings.token_file.stat().st_mode & 0o777 == 0o600
    assert [each.name for each in settings.home.glob(".token*")] == []


def test_a_new_one_ends_what_the_old_one_made(stores: Stores) -> None:
    settings = stores.settings("sqlite")
    bullpen = Bullpen(settings.home)
    with serving(settings) as served:
        stays = bullpen.ok("key", "add", "stays", "--scope", "read").out.strip()
        body = {"name": "goes", "scopes": ["admin"]}

        def make() -> tuple[dict[str, Any], dict[str, str], str]:
            link = served.post("/api/login-links")["url"]
            return served.post("/api/keys", body), served.browser(), link

        key, browser, link = make()
        bullpen.ok("token", "rotate", "--yes", "--keep-keys")
        served.token = settings.token_file.read_text().strip()
        assert served.get("/api/me", token=key["key"])["id"] == key["id"]
        assert served.ask("GET", "/api/me", token="", headers=browser).status_code == 403
        assert served.follow(link).status_code == 403  # the name is of the old token, too
        key, browser, link = make()
        done = bullpen.ok("token", "rotate", "--yes", "--json").json
        assert key["id"] in done["revoked"]
        assert len(done["revoked"]) == 3
        served.token = settings.token_file.read_text().strip()
        assert served.refused("GET", "/api/me", token=key["key"]) == (401, "no_access")
        name = str(urlsplit(served.post("/api/login-links")["url"]).netloc)
        moved = {**browser, "Host": name}
        assert served.refused("GET", "/api/me", token="", headers=moved) == (401, "no_access")
        assert served.follow(urlsplit(link)._replace(netloc=name).geturl()).status_code == 401
        assert served.get("/api/me", token=stays)["name"] == "stays"


def test_one_that_others_may_read_is_said_so_and_can_be_replaced(empty: Bullpen) -> None:
    secret = empty.ok("token", "--reveal").out.strip()
    (empty.home / "token").chmod(0o644)
    assert "readable by other users" in empty.ok("token").out
    refused = empty("token", "--reveal")
    assert refused.status == 1
    assert secret not in refused.out + refused.err
    empty.ok("token", "rotate", "--yes")
    assert "read by others" not in empty.ok("token").out


def test_it_is_no_business_of_an_agents(empty: Bullpen) -> None:
    secret = empty.ok("token", "--reveal").out.strip()
    agent = Bullpen(empty.home, {"BULLPEN_RUN": "coder.0"})
    for args in ((), ("--reveal",), ("show",), ("show", "--reveal"), ("path",), ("rotate",)):
        refused = agent("token", *args)
        assert (refused.status, refused.out) == (1, "")
        assert "@coder may not" in refused.err
    assert empty.ok("token", "--reveal").out.strip() == secret
