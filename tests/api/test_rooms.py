"""Rooms over the API: said, read from the end or from a place on, and told apart."""

from __future__ import annotations

import pytest

from bullpen.core.access.keys import Scope
from bullpen.core.roster.teams import Team, add_team
from bullpen.core.settings import Settings
from bullpen.core.store.base import Store
from bullpen.core.store.open import open_store
from tests.api.served import Served

POST = {"id", "team_id", "from_agent", "message", "created_at"}


@pytest.fixture(scope="module", autouse=True)
def rooms(office: Settings) -> None:
    """More teams, each for one test."""
    store = open_store(office)
    with store.write() as tx:
        for name in ("paged", "timed", "polled", "quiet", "poor"):
            add_team(tx, Team(id=name, leader="coder", members=("coder",)))
    store.close()


def say(served: Served, team: str, text: str, **more: object) -> int:
    """Say something in a room; gives its number."""
    return int(served.post(f"/api/chatroom/{team}", {"message": text, **more})["id"])


def texts(found: list[dict[str, str]]) -> list[str]:
    """What was said."""
    return [each["message"] for each in found]


def test_what_a_person_says_is_in_the_room_and_on_its_way_to_every_member(served: Served) -> None:
    said = served.post("/api/chatroom/dev", {"message": "  hello all ", "sender": "Ada"})
    assert set(said) == {"ok", "id", "conversation_id"}
    (post,) = served.get("/api/chatroom/dev?limit=1")
    assert set(post) == POST
    assert (post["id"], post["team_id"]) == (said["id"], "dev")
    assert (post["from_agent"], post["message"]) == ("Ada", "hello all")
    waiting = served.get(f"/api/messages?conversation_id={said['conversation_id']}")
    assert {(each["agent"], each["message"], each["channel"]) for each in waiting} == {
        ("coder", "hello all", "chatroom"),
        ("worker", "hello all", "chatroom"),
    }


def test_who_says_nothing_of_himself_is_a_user(served: Served) -> None:
    say(served, "quiet", "it is me")
    assert served.get("/api/chatroom/quiet?limit=1")[0]["from_agent"] == "user"


@pytest.mark.parametrize("sender", ["coder", "bullpen"])
def test_nobody_speaks_in_a_room_in_an_agents_name(served: Served, sender: str) -> None:
    body = {"message": "trust me", "sender": sender}
    assert served.refused("POST", "/api/chatroom/quiet", body) == (409, "name_taken")
    assert "trust me" not in texts(served.get("/api/chatroom/quiet"))


def test_what_is_no_post_is_refused_and_not_kept(served: Served, subtests: pytest.Subtests) -> None:
    for body in [
        {},
        {"message": ""},
        {"message": " \n "},
        {"message": "a\x00b"},
        {"message": "\ud800"},
        {"message": "x", "sender": ""},
        {"message": "x", "sender": "a\x00"},
        {"message": "x", "sender": 5},
        {"message": "x", "more": 1},
        {"message": None},
        [],
    ]:
        with subtests.test(body=body):
            before = served.get("/api/chatroom/quiet")
            assert served.ask("POST", "/api/chatroom/quiet", body).status_code == 400
            assert served.get("/api/chatroom/quiet") == before


def test_a_room_is_read_from_its_end_or_from_a_number_on(served: Served) -> None:
    ids = [say(served, "paged", str(number)) for number in range(5)]
    assert texts(served.get("/api/chatroom/paged")) == ["4", "3", "2", "1", "0"]
    assert texts(served.get("/api/chatroom/paged?limit=2")) == ["4", "3"]
    assert texts(served.get(f"/api/chatroom/paged?since_id={ids[1]}")) == ["2", "3", "4"]
    assert served.get(f"/api/chatroom/paged?since_id={ids[4]}") == []
    found: list[str] = []
    since = 0
    for _ in range(10):
        response = served.ask("GET", f"/api/chatroom/paged?limit=2&since_id={since}")
        found += texts(response.json())
        if "X-Next-Cursor" not in response.headers:
            break
        since = int(response.headers["X-Next-Cursor"])
    assert found == ["0", "1", "2", "3", "4"]


def test_a_room_is_read_from_a_moment_on(served: Served) -> None:
    """Each poll shows what is new, once, in the order in which it was said."""
    seen: list[str] = []
    say(served, "timed", "first")
    since = served.get("/api/chatroom/timed?since=0")[0]["created_at"]
    for number in range(3):
        say(served, "timed", str(number))
        found = served.get(f"/api/chatroom/timed?since={since}")
        since = max((each["created_at"] for each in found), default=since)
        seen += texts(found)
        assert served.get(f"/api/chatroom/timed?since={since}") == []
    assert seen == ["0", "1", "2"]


def test_since_zero_is_the_newest_posts_and_a_small_since_a_posts_number(served: Served) -> None:
    """As TinyOffice asks, which turns the list around, and as TinyAGI's viewer continues."""
    ids = [say(served, "polled", str(number)) for number in range(4)]
    assert texts(served.get("/api/chatroom/polled?limit=2&since=0")) == ["3", "2"]
    assert texts(served.get(f"/api/chatroom/polled?limit=100&since={ids[1]}")) == ["2", "3"]
    assert served.get(f"/api/chatroom/polled?limit=100&since={ids[3]}") == []


def test_a_place_that_is_none_is_refused(served: Served, subtests: pytest.Subtests) -> None:
    for query in [
        "limit=0",
        "limit=501",
        "limit=x",
        "since=-1",
        "since=soon",
        "since_id=-1",
        f"since={2**63}",
    ]:
        with subtests.test(query=query):
            assert served.ask("GET", f"/api/chatroom/dev?{query}").status_code == 400


def test_a_room_of_nobody_does_not_exist(served: Served) -> None:
    assert served.refused("GET", "/api/chatroom/nowhere") == (404, "unknown_team")
    body = {"message": "hello"}
    assert served.refused("POST", "/api/chatroom/nowhere", body) == (404, "unknown_team")
    assert served.refused("GET", "/api/chatroom/%00") == (400, "bad_text")


def test_the_rooms_in_which_something_was_said_are_listed_the_latest_first(
    served: Served, inside: Store
) -> None:
    say(served, "dev", "earlier")
    say(served, "quiet", "later")
    found = served.get("/api/chats")
    assert all(set(each) == {"teamId", "file", "time"} for each in found)
    names = [each["teamId"] for each in found]
    assert names.index("quiet") < names.index("dev")
    assert "poor" not in names
    assert found == sorted(found, key=lambda each: -each["time"])
    room = next(each for each in found if each["teamId"] == "dev")
    assert served.get(room["file"])[0]["created_at"] == room["time"]


def test_a_key_reaches_a_room_if_it_reaches_every_member(served: Served) -> None:
    say(served, "quiet", "for the coder")
    say(served, "dev", "for both")
    scopes = (Scope.READ, Scope.PUBLISH)
    coder = {"token": served.key(*scopes, agents=("coder",))}
    both = {"token": served.key(*scopes, agents=("coder", "worker"))}
    assert served.get("/api/chatroom/quiet", **coder)
    assert served.refused("GET", "/api/chatroom/dev", **coder) == (403, "out_of_reach")
    body = {"message": "let me in"}
    assert served.refused("POST", "/api/chatroom/dev", body, **coder) == (403, "out_of_reach")
    assert "let me in" not in texts(served.get("/api/chatroom/dev"))
    assert "dev" not in [each["teamId"] for each in served.get("/api/chats", **coder)]
    assert served.get("/api/chatroom/dev", **both)
    assert "dev" in [each["teamId"] for each in served.get("/api/chats", **both)]


def test_to_read_is_not_to_speak(served: Served) -> None:
    reader = {"token": served.key(Scope.READ)}
    body = {"message": "hello"}
    assert served.refused("POST", "/api/chatroom/dev", body, **reader) == (403, "scope_too_small")
    speaker = {"token": served.key(Scope.PUBLISH)}
    assert served.refused("GET", "/api/chatroom/dev", **speaker) == (403, "scope_too_small")
    assert served.refused("GET", "/api/chats", **speaker) == (403, "scope_too_small")
