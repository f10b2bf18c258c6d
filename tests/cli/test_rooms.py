"""Rooms and the view of agents by command: what is refused, and printed without a screen."""

from __future__ import annotations

import pytest

from bullpen.core.roster.teams import Team, add_team
from tests.cli.command import Bullpen
from tests.cli.open_store import company, direct


def posted(bullpen: Bullpen, team: str = "dev") -> list[tuple[str, str]]:
    """Who said what in the room."""
    found = bullpen.ok("room", "read", team, "--json").json
    return [(each["from_agent"], each["message"]) for each in found]


def test_a_post_is_kept_and_read(on_both: Bullpen) -> None:
    company(on_both)
    told = on_both.ok("room", "post", "dev", "stand-up at ten", "--json").json
    assert told["team_id"] == "dev"
    assert told["conversation_id"].startswith("chatroom_")
    on_both.ok("room", "post", "dev", "quick -q")
    assert posted(on_both) == [("owner", "stand-up at ten"), ("owner", "quick -q")]
    assert on_both.ok("room", "read", "dev", "--limit", "1").out == "@owner: quick -q\n"


def test_an_empty_room_says_so(bullpen: Bullpen) -> None:
    company(bullpen)
    assert "No posts in #dev yet" in bullpen.ok("room", "read", "dev").out
    assert posted(bullpen) == []


@pytest.mark.parametrize(
    ("args", "instead"),
    [
        (("room", "dev"), "bullpen room read dev"),
        (("room", "open", "dev"), "bullpen room read dev"),
        (("team", "watch", "dev"), "bullpen team show dev"),
        (("team", "watch"), "bullpen agent list"),
    ],
    ids=" ".join,
)
def test_a_view_without_a_terminal_names_the_command_for_pipes(
    bullpen: Bullpen, args: tuple[str, ...], instead: str
) -> None:
    result = company(bullpen)(*args)
    assert (result.status, result.out) == (2, "")
    assert "needs a terminal" in result.err
    assert f"use `{instead}`" in result.err
    bullpen.ok(*instead.split()[1:])


@pytest.mark.parametrize("args", [("room", "nobody"), ("room", "open", "nobody")], ids=" ".join)
def test_a_room_that_does_not_exist_is_told(bullpen: Bullpen, args: tuple[str, ...]) -> None:
    result = company(bullpen)(*args)
    assert result.status == 1
    assert "team 'nobody' does not exist" in result.err
    assert "bullpen team list" in result.err


def test_a_team_that_does_not_exist_cannot_be_watched(bullpen: Bullpen) -> None:
    for more in ([], ["--json"]):
        result = company_once(bullpen)("team", "watch", "nobody", *more)
        assert result.status == 1
        assert "team 'nobody' does not exist" in result.err


def company_once(bullpen: Bullpen) -> Bullpen:
    """The company, taken on when it is first asked for."""
    if not bullpen.ok("agent", "list", "--json").json:
        company(bullpen)
    return bullpen


def test_a_team_called_like_a_command_can_be_opened(bullpen: Bullpen) -> None:
    company(bullpen)
    with direct(bullpen) as store, store.write() as tx:
        add_team(tx, Team(id="post", leader="coder", members=("coder",)))
    bullpen.ok("room", "post", "post", "hello")
    assert "use `bullpen room read post`" in bullpen("room", "open", "post").err
    assert posted(bullpen, "post") == [("owner", "hello")]
    found = bullpen.ok("room", "open", "post", "--json").json
    assert [each["message"] for each in found] == ["hello"]


def test_words_of_a_post_need_no_quotes(bullpen: Bullpen) -> None:
    company(bullpen).ok("room", "post", "dev", "stand-up", "in", "ten", "minutes")
    assert "stand-up in ten minutes" in bullpen.ok("room", "read", "dev").out


def test_a_mistyped_command_posts_nothing_and_is_a_mistake_of_usage(bullpen: Bullpen) -> None:
    result = company(bullpen)("room", "pots", "dev", "hello")
    assert result.status == 2
    assert posted(bullpen) == []
    assert bullpen("room").status == 0
    assert bullpen("room", "--nonsense").status == 2


def test_an_agent_speaks_in_rooms_by_its_answers_only(bullpen: Bullpen) -> None:
    company(bullpen)
    for args in (
        ("room", "post", "dev", "I am the boss"),
        ("room", "open", "dev"),
        ("room", "dev"),
        ("team", "watch", "--json"),
    ):
        result = bullpen(*args, BULLPEN_RUN="coder.0")
        assert result.status == 1
        assert "@coder may not" in result.err
    assert posted(bullpen) == []


def test_what_is_watched_can_be_had_as_a_document(on_both: Bullpen) -> None:
    company(on_both)
    on_both.ok("agent", "pause", "tester", "--reason", "on holiday")
    on_both.ok("send", "@coder go", "--no-wait")
    found = on_both.ok("team", "watch", "dev", "--json").json
    assert (found["team"], found["leader"], found["processes"]) == ("dev", "coder", {})
    assert found["queue"]["pending"] == 1
    coder, tester = found["agents"]
    assert (coder["id"], coder["state"], coder["waiting"]) == ("coder", "pending", 1)
    assert (tester["state"], tester["reason"]) == ("paused", "on holiday")
    assert len(on_both.ok("team", "watch", "--json").json["agents"]) == 3


def test_teams_are_completed_where_a_room_is_named(bullpen: Bullpen) -> None:
    company(bullpen)
    for words, expected in (
        ("bullpen room ", {"dev", "post", "read", "open"}),
        ("bullpen room d", {"dev"}),
        ("bullpen room open ", {"dev"}),
        ("bullpen room read ", {"dev"}),
        ("bullpen team watch ", {"dev"}),
    ):
        count = len(words.split()) - (0 if words.endswith(" ") else 1)
        out = bullpen(
            COMP_WORDS=words, COMP_CWORD=str(count), _BULLPEN_COMPLETE="bash_complete"
        ).out
        assert {line.split(",")[-1] for line in out.splitlines()} == expected, words
