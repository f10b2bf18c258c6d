"""bullpen history: what was said is read as a chat is."""

from __future__ import annotations

from bullpen.core.clock import HOUR
from bullpen.core.intake import post_in_room
from tests.answers.talk import answer, write
from tests.cli.command import Bullpen
from tests.cli.open_store import company, direct

NOW = 1_790_000_000_000
BERLIN = {"BULLPEN_TIME_ZONE": "Europe/Berlin"}


def talked(bullpen: Bullpen) -> str:
    """Ada was answered in two lines, long ago; gives her message's id."""
    company(bullpen)
    with direct(bullpen, NOW) as store:
        root = write(store, "@coder how are you?")
        answer(store, "coder", "fine\nand busy\n")
        with store.write() as tx:
            post_in_room(tx, "dev", "stand-up!", "Ada")
    return root


def test_it_is_listed_as_a_chat_by_the_owners_clock(on_both: Bullpen) -> None:
    root = talked(on_both)
    shown = on_both.ok("history", "list", **BERLIN).out.splitlines()
    assert shown[:4] == [
        f"2026-09-21 16:13:20  {root}  Ada (slack) → @coder: how are you?",
        f"2026-09-21 16:13:20  {root}  @coder (slack):",
        "    fine",
        "    and busy",
    ]
    # What waits for its answer is there as well.
    said = [line.split("  ")[-1] for line in shown[4:]]
    assert said == [f"Ada (chatroom) → @{each}: stand-up!" for each in ("coder", "tester")]
    found = on_both.ok("history", "list", "--person", "U1", "--json").json
    assert [(each["role"], each["message_id"]) for each in found] == [
        ("user", root),
        ("assistant", root),
    ]
    newest = on_both.ok("history", "list", "--person", "U1", "--limit", "1", "--json").json
    assert newest == found[1:]


def test_filters_choose(on_both: Bullpen) -> None:
    talked(on_both)
    for args in (("--agent", "stranger"), ("--person", "Bob"), ("--since", "2h")):
        assert "No messages match" in on_both.ok("history", "list", *args).out
        assert on_both.ok("history", "list", *args, "--json").json == []
    with direct(on_both) as store:
        write(store, "@stranger now")
        answer(store, "stranger", "yes")
    assert len(on_both.ok("history", "list", "--since", "2h", "--json").json) == 2
    days = f"{10_000 * 24 * HOUR // HOUR}h"
    assert len(on_both.ok("history", "list", "--since", days, "--json").json) == 6


def test_a_room_is_listed(on_both: Bullpen) -> None:
    talked(on_both)
    shown = on_both.ok("history", "list", "--team", "dev", **BERLIN).out
    assert shown == "2026-09-21 16:13:20  Ada → #dev: stand-up!\n"
    (post,) = on_both.ok("history", "list", "--team", "dev", "--json").json
    assert (post["from_agent"], post["message"]) == ("Ada", "stand-up!")
    assert on_both.ok("history", "list", "--team", "dev", "--agent", "coder", "--json").json == []
    unknown = on_both("history", "list", "--team", "nothing")
    assert (unknown.status, unknown.out) == (1, "")
    assert on_both("history", "list", "--team", "dev", "--agent", "a", "--person", "b").status == 2
    assert on_both("history", "list", "--since", "soon").status == 2


def test_what_is_found_is_shown_alike(bullpen: Bullpen) -> None:
    root = talked(bullpen)
    assert bullpen.ok("history", "search", "BUSY", **BERLIN).out.splitlines() == [
        f"2026-09-21 16:13:20  {root}  @coder (slack):",
        "    fine",
        "    and busy",
    ]


def test_no_control_character_of_others_is_shown(bullpen: Bullpen) -> None:
    company(bullpen)
    with direct(bullpen) as store:
        write(store, "@coder \x1b[2Jboo", sender="\x1b]0;x\x07Eve")
        answer(store, "coder", "\x9b31mred")
    for args in (("list",), ("search", "boo"), ("people",)):
        shown = bullpen.ok("history", *args).out
        assert "boo" in shown or "Eve" in shown
        assert not {"\x1b", "\x07", "\x9b"} & set(shown)


def test_options_alone_list_messages(on_both: Bullpen) -> None:
    talked(on_both)
    assert on_both.ok("history", "-n", "1").out == on_both.ok("history", "list", "-n", "1").out
    assert len(on_both.ok("history", "-n", "1", "--json").json) == 1
    assert "bullpen history search" in on_both.ok("history", "-h").out
    ids = on_both.ok("history", "list", "-q").out.split()
    assert len(ids) == len(set(ids)) > 1


def test_a_filter_for_an_agent_that_does_not_exist_is_refused(on_both: Bullpen) -> None:
    company(on_both)
    for args in (("list",), ("search", "x")):
        refused = on_both("history", *args, "--agent", "codre")
        assert refused.status == 1
        assert "agent 'codre' does not exist. Did you mean 'coder'?" in refused.err
