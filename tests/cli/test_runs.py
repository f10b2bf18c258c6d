"""Commands in an agent's run: whom they read of, and to whom they write."""

from __future__ import annotations

import pytest

from bullpen.core.queue.claim import extend, get_claim
from bullpen.core.queue.fail import release
from tests.cli.command import Bullpen, Result
from tests.cli.open_store import CLAIM_TOKEN, Asked, at_work, company, direct, end_work

BOB: Asked = {"channel": "telegram", "sender": "Bob", "sender_id": "666"}
SEND = ("response", "send", "hello", "--channel")


@pytest.fixture
def office(on_both: Bullpen) -> Bullpen:
    """Three agents; Ann and Bob wrote to @coder and were answered, Eve wrote to @tester."""
    company(on_both)
    end_work(on_both, at_work(on_both, "coder", "Ann's secret"))
    end_work(on_both, at_work(on_both, "coder", "Bob's secret", **BOB))
    eve: Asked = {"channel": "slack", "sender": "Eve", "sender_id": "E1"}
    end_work(on_both, at_work(on_both, "tester", "Eve's secret", **eve))
    return on_both


def secrets(office: Bullpen, run: dict[str, str]) -> set[str]:
    """What a run finds of everybody's secrets, however it asks."""
    searched = office.ok("history", "search", "secret", "--json", **run).json
    listed = office.ok("history", "list", "--json", **run).json
    found = {each["content"] for each in listed if "secret" in each["content"]}
    assert {each["content"] for each in searched} == found
    return {each.partition("'")[0] for each in found}


def refused(result: Result) -> str:
    """What a command that was refused said."""
    assert (result.status, result.out) == (1, ""), result
    return result.err


def test_a_run_reads_its_conversation_and_what_its_person_said_to_its_agent(
    office: Bullpen,
) -> None:
    run = at_work(office, "coder", "what did I say?")
    assert secrets(office, run) == {"Ann"}
    for more in (("--agent", "tester"), ("--person", "Bob"), ("--person", "666")):
        assert office.ok("history", "list", *more, "--json", **run).json == []
    tester = at_work(office, "tester", "and to you?")
    assert secrets(office, tester) == set()
    people = office.ok("history", "people", "--json", **run).json
    assert {each["sender"] for each in people} == {"Ann", "Bob"}


def test_a_handoff_reads_the_conversation_that_it_belongs_to(office: Bullpen) -> None:
    root = office.ok("history", "search", "Bob's secret", "--json").json[0]["message_id"]
    handoff: Asked = {**BOB, "conversation_id": root, "from_agent": "coder"}
    run = at_work(office, "tester", "help", **handoff)
    assert secrets(office, run) == {"Bob"}


def test_a_schedules_run_does_not_read_its_persons_history(office: Bullpen) -> None:
    """Else Bob could schedule for Ann what tells him what she said."""
    assert secrets(office, at_work(office, "coder", "do it", origin="schedule")) == set()


def test_a_wider_reach_reads_what_it_says(office: Bullpen) -> None:
    run = at_work(office, "coder", "look")
    office.ok("agent", "set", "coder", "--reach", "people")
    assert secrets(office, run) == {"Ann", "Bob"}
    assert "not write to slack:E1" in refused(office(*SEND, "slack", "--to", "E1", **run))
    office.ok("agent", "set", "coder", "--reach", "all")
    assert secrets(office, run) == {"Ann", "Bob", "Eve"}
    assert office.ok(*SEND, "slack", "--to", "E1", **run).out


def test_a_room_is_read_by_its_members_runs_alone(office: Bullpen) -> None:
    office.ok("room", "post", "dev", "stand-up")
    words = ("history", "list", "--team", "dev")
    assert "stand-up" in office.ok(*words, **at_work(office, "coder")).out
    assert "is not a member of team" in refused(office(*words, **at_work(office, "stranger")))


def test_a_run_writes_only_to_people_who_wrote_to_its_agent(office: Bullpen) -> None:
    run = at_work(office, "coder")
    later = ("schedule", "add", "x", "--in", "1h", "--json", "--to")
    for person in ("666", "4711"):
        assert office.ok(*SEND, "telegram", "--to", person, **run).out
    made = office.ok(*later, "telegram:666", **run).json["id"]
    own = office.ok(*later, "telegram:4711", **run).json["id"]
    assert office.ok(*later, "owner", **run).out
    for channel, person in (("telegram", "999"), ("slack", "666"), ("telegram", "66%")):
        error = refused(office(*SEND, channel, "--to", person, **run))
        assert "who never wrote to @" in error
        assert "--reach all" in error
    for words in ((*later[:5], "--to"), ("schedule", "set", own, "--to")):
        assert "never wrote to @" in refused(office(*words, "telegram:999", **run))
    assert "not for the person whom" in refused(
        office("schedule", "set", made, "--text", "x", **run)
    )
    assert office.ok("queue", "status", "--json").json["outgoing"] == 2 + 3


def test_a_run_sends_a_stored_file_only_to_a_person_who_has_part_in_it(office: Bullpen) -> None:
    files, own = office.home / "files", office.home / "workspace" / "coder"
    for each in (files, own):
        each.mkdir(parents=True, exist_ok=True)
    for path in (files / "anns", files / "nobodys", office.home / "secret"):
        path.write_text("x")
    run = at_work(office, "coder", "look", files=(str(files / "anns"),))
    send = (*SEND, "telegram", "--to")
    assert office.ok(*send, "4711", "--file", str(files / "anns"), **run).out
    for to, path in (
        ("666", files / "anns"),
        ("4711", files / "nobodys"),
        ("4711", office.home / "secret"),
    ):
        result = office(*send, to, "--file", str(path), **run)
        assert result.status != 0, (to, path)
        assert "was not sent" in result.err
    assert office.ok(*send, "666", "--file", str(files / "nobodys")).out  # a person sends any


def test_a_run_sees_and_changes_only_schedules_of_whom_it_answers(office: Bullpen) -> None:
    for_bob = ("schedule", "add", "Bob's errand", "--in", "1h", "--json")
    bobs = at_work(office, "coder", **BOB)
    made = office.ok(*for_bob, **bobs).json["id"]
    assert [each["id"] for each in office.ok("schedule", "list", "--json", **bobs).json] == [made]
    end_work(office, bobs)
    run = at_work(office, "coder")
    assert office.ok("schedule", "list", "--json", **run).json == []
    for words in (("show",), ("set", "--text", "x"), ("pause",), ("resume",), ("remove", "--yes")):
        error = refused(office("schedule", words[0], made, *words[1:], **run))
        assert "not for the person whom @coder answers now" in error
    office.ok("agent", "set", "coder", "--reach", "people")
    assert "Bob's errand" in office.ok("schedule", "show", made, **run).out


def test_a_token_is_refused_that_is_not_of_a_run_that_goes_on(office: Bullpen) -> None:
    run = at_work(office, "coder")
    token = run["BULLPEN_RUN"]
    with direct(office) as store, store.write() as tx:
        row = tx.one(CLAIM_TOKEN, {"agent": "coder"})
        assert row is not None
        extend(tx, row[0])
        claim = get_claim(tx, row[0])
    words = ("history", "people")
    assert office.ok(*words, **run).out
    digest = token.partition(".")[2]
    forged = ["", "x", "coder", "coder.", "coder.0", f"tester.{digest}", f"ghost.{digest}"]
    for each in (*forged, claim.token, token[:-1], f"{token}0"):
        assert "invalid or expired run token" in refused(office(*words, BULLPEN_RUN=each)), each
        assert "may not" in refused(office("key", "list", BULLPEN_RUN=each)), each
    with direct(office) as store, store.write() as tx:
        extend(tx, claim.token, lease=1)
    assert "invalid or expired" in refused(office(*words, **run))
    with direct(office) as store, store.write() as tx:
        extend(tx, claim.token)
    assert office.ok(*words, **run).out
    with direct(office) as store, store.write() as tx:
        release(tx, claim.token)
    assert "invalid or expired" in refused(office(*words, **run))
    assert "invalid or expired" in refused(office(*SEND, "telegram", "--to", "4711", **run))


def test_a_run_completes_no_names_that_it_may_not_see(office: Bullpen) -> None:
    words = {
        "_BULLPEN_COMPLETE": "bash_complete",
        "COMP_WORDS": "bullpen agent show ",
        "COMP_CWORD": "3",
    }
    assert "stranger" in office(**words).out
    refused = office(**words, **at_work(office, "coder"))
    assert "stranger" not in refused.out + refused.err
