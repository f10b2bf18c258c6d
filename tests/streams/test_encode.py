"""What an event's viewers read: what is stored, what is known, and TinyAGI's names."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from bullpen.api.streams.client import Filter
from bullpen.api.streams.documents import ALIASES
from bullpen.api.streams.frames import SSE, WEBSOCKET, encode_events
from bullpen.core.answers.complete import complete
from bullpen.core.events.append import append_event
from bullpen.core.events.base import MessageRef
from bullpen.core.events.conversation import AgentProgress, ChainStepDone, ChainStepStart
from bullpen.core.events.system import ProcessorStart
from bullpen.core.events.tail import EventTail
from bullpen.core.inspect.event_details import MAX_TEXT_CHARS
from bullpen.core.intake import post_in_room, submit
from bullpen.core.message import Answer, ErrorKind, NewMessage, Outcome, RunOutput
from bullpen.core.outbox.write import send_to_person
from bullpen.core.queue.manage import CANCEL_WAIT_MS, cancel
from bullpen.core.roster.teams import Team, add_team
from bullpen.core.store.base import Store
from tests.conformance.verbs import do, done, failed, hire, send, take, to_archive
from tests.stores import FakeClock

Document = dict[str, Any]


@pytest.fixture(autouse=True)
def _office(store: Store) -> None:
    hire(store, "coder", name="Code Wizard")
    hire(store, "helper")
    do(store, add_team, Team(id="dev", leader="coder", members=("coder", "helper")))


def told(store: Store, **wanted: object) -> list[Document]:
    """Every document of the stream, in its order; `frame` is the name that stands beside it."""
    tail, events = EventTail(store, 0), []
    while page := tail.read():
        events += page
    found = []
    for frame in Filter(**wanted).frames(SSE, encode_events(store, events)):  # type: ignore[arg-type]
        for block in frame.decode().split("\n\n")[:-1]:
            lines = dict(line.split(": ", 1) for line in block.splitlines())
            document = json.loads(lines["data"])
            assert document["type"] == lines["event"]
            if "id" in document:
                assert lines["id"] == str(document["id"])
            found.append({**document, "frame": lines})
    return found


def of_type(documents: Sequence[Document], name: str) -> Document:
    """The one of this name, without what stood beside it."""
    (found,) = (each for each in documents if each["type"] == name)
    return {key: value for key, value in found.items() if key != "frame"}


def ask(store: Store, text: str = "hello", **more: Any) -> str:  # noqa: ANN401
    """A person asks; gives the message's id."""
    with store.write() as tx:
        new = NewMessage(agent="", message=text, channel="slack", sender="Ada", **more)
        return submit(tx, new)[0].message_id


def test_a_question_and_its_answer_are_told_with_the_references_names_and_exactly_its_fields(
    store: Store,
) -> None:
    asked = ask(store, "@coder " + "x" * 200)
    claim = take(store)
    started = ChainStepStart(claim.primary, provider="echo", messages=[asked], batch=None)
    do(store, append_event, started)
    do(store, append_event, AgentProgress(claim.primary, text="thinking"))
    with store.write() as tx:
        complete(tx, claim, RunOutput(text="done é [@helper: look]"), ())
    at = {"timestamp": store.clock.now()}
    who = {"agentId": "coder", "agentName": "Code Wizard"}
    person = {"channel": "slack", "sender": "Ada"}
    documents = told(store)
    assert of_type(documents, "agent:invoke") == {
        **{"type": "agent:invoke", "fromAgent": None},
        **at,
        **who,
    }
    assert of_type(documents, "message:incoming") == {
        **{"type": "message:incoming", "messageId": asked, "agent": "coder"},
        **{"message": "@coder " + "x" * 113},
        **at,
        **person,
    }
    assert of_type(documents, "agent:progress") == {
        **{"type": "agent:progress", "text": "thinking", "messageId": asked},
        **at,
        **who,
    }
    assert of_type(documents, "agent:response") == {
        **{"type": "agent:response", "role": "assistant", "messageId": asked},
        **{"content": "done é [@helper: look]", "isTeamMessage": False},
        **at,
        **who,
        **person,
    }
    assert of_type(documents, "agent:mention") == {
        **{"type": "agent:mention", "teamId": "dev", "fromAgent": "coder", "toAgent": "helper"},
        **at,
    }
    ready = of_type(documents, "response_ready")
    assert of_type(documents, "message:done") == {
        **{"type": "message:done", "agentId": "coder", "messageId": asked},
        **{"responseText": ready["responseText"], "responseLength": len(ready["responseText"])},
        **at,
        **person,
    }
    assert ready["responseText"].startswith("done é")
    assert ready["data"]["response"] > 0


def test_each_event_of_two_names_comes_first_under_the_references_and_has_its_id_once(
    store: Store,
) -> None:
    ask(store, "@coder hi")
    done(store, take(store).token)
    documents = told(store)
    theirs: list[str] = []
    for each in documents:
        if ":" in each["type"]:
            assert "id" not in each["frame"]
            theirs.append(each["type"])
            continue
        assert "id" in each["frame"]
        assert set(theirs) <= set(ALIASES.get(each["type"], ()))
        theirs = []
    ids = [int(each["frame"]["id"]) for each in documents if "id" in each["frame"]]
    assert ids == sorted(set(ids))


def test_who_wants_the_references_names_alone_gets_the_ids_with_them(store: Store) -> None:
    ask(store, "@coder hi")
    done(store, take(store).token)
    (found,) = told(store, types=frozenset({"message:done"}))
    assert found["type"] == "message:done"
    assert int(found["frame"]["id"]) > 0
    assert "id" not in found
    both = told(store, types=frozenset({"message:done", "response_ready"}))
    assert [each["type"] for each in both] == ["message:done", "response_ready"]
    tail = EventTail(store, 0)
    wanted = Filter(types=frozenset({"message:done"}))
    (frame,) = wanted.frames(WEBSOCKET, encode_events(store, tail.read()))
    assert json.loads(frame[frame.index(b"{") :])["id"] == int(found["frame"]["id"])


def test_what_is_stored_stands_beside_what_clients_read(store: Store) -> None:
    asked = ask(store, "@coder hi")
    done(store, take(store).token, Outcome(answers=(Answer(message="one"), Answer(message="two"))))
    documents = told(store)
    first, second = (each for each in documents if each["type"] == "response_ready")
    assert (first["responseText"], second["responseText"]) == ("one", "two")
    assert second["data"] == {"channel": "slack", "response": first["data"]["response"] + 1}
    end = of_type(documents, "chain_step_done")
    assert (end["agent"], end["message_id"], end["conversation_id"]) == ("coder", asked, asked)
    assert end["data"]["messages"] == [asked]
    assert (end["messageId"], end["agentId"], end["responseText"]) == (asked, "coder", "one")
    assert of_type(documents, "message_received")["data"]["worker"] == "worker-1"


def _failed(store: Store) -> str:
    failed(store, take(store).token, error="no key")
    return "message_failed"


def _dead(store: Store) -> str:
    failed(store, take(store).token, ErrorKind.PERMANENT, error="no key")
    return "message_dead"


def test_a_failed_try_is_no_response_to_the_references_clients(store: Store) -> None:
    ask(store, "@coder hi")
    own = _failed(store)
    documents = told(store)
    assert of_type(documents, own)["data"]["error"] == "no key"
    assert not {"agent:response", "message:done"} & {each["type"] for each in documents}


def test_a_death_is_told_to_the_references_clients_as_its_person_is_told(store: Store) -> None:
    asked = ask(store, "@coder hi")
    own = _dead(store)
    documents = told(store)
    found = of_type(documents, "agent:response")
    assert (found["role"], found["messageId"]) == ("assistant", asked)
    assert found["content"] == of_type(documents, "response_ready")["responseText"]
    assert of_type(documents, own)["data"]["error"] == "no key"
    assert [each["type"] for each in documents][-1] == "response_ready"
    assert of_type(documents, "message:done")["messageId"] == asked


def _dones(store: Store) -> list[tuple[str, str, str]]:
    return [
        (each["messageId"], each["channel"], each["sender"])
        for each in told(store, types=frozenset({"message:done"}))
    ]


def test_each_message_of_a_batch_is_done_for_the_references_clients(store: Store) -> None:
    asked = [ask(store, f"@coder {number}") for number in range(3)]
    do(store, post_in_room, "dev", "hello room", "Ada")
    claimed = take(store, agent="coder")
    assert len(claimed.messages) == 4
    done(store, claimed.token)
    assert sorted(_dones(store)) == sorted((each, "slack", "Ada") for each in asked)
    types = [each["type"] for each in told(store)]
    assert types.index("agent:response") < types.index("message:done")


def test_a_message_whose_agent_only_hands_it_on_is_done(store: Store) -> None:
    asked = ask(store, "@coder hi")
    handoff = NewMessage(agent="helper", message="look")
    done(store, take(store).token, Outcome(handoffs=(handoff,)))
    assert _dones(store) == [(asked, "slack", "Ada")]


def test_what_a_person_or_its_deadline_ended_is_done_for_the_references_clients(
    store: Store, clock: FakeClock
) -> None:
    killed = ask(store, "@coder one")
    take(store)
    do(store, cancel, killed)
    clock.advance(CANCEL_WAIT_MS)
    late = ask(store, "@coder two", deadline=clock.now() + 1)
    held = ask(store, "@coder three")
    clock.advance(2)
    failed(store, take(store).token, ErrorKind.NEEDS_PERSON)
    theirs = [each for each in _dones(store) if each[0] in (killed, late, held)]
    assert [each for each, channel, _ in theirs if channel == "slack"] == [killed, late, held]
    # Who was at work has responded, and said nothing.
    responses = told(store, types=frozenset({"agent:response"}))
    found = [(each["messageId"], each["content"]) for each in responses]
    assert found == [(killed, ""), (held, "")]


def test_what_no_person_wrote_to_an_agent_is_no_incoming_message(store: Store) -> None:
    do(store, post_in_room, "dev", "hello room", "Ada")
    send(store, agent="coder", channel="schedule")
    send(store, agent="coder", channel="slack", origin="schedule")
    send(store, agent="coder", from_agent="helper")
    names = [each["type"] for each in told(store)]
    assert names.count("message_enqueued") == 5
    assert "message:incoming" not in names


def test_a_post_in_a_room_is_told_with_its_text(store: Store) -> None:
    do(store, post_in_room, "dev", "hello room", "Ada")
    posted = of_type(told(store, team="dev", types=frozenset({"room_posted"})), "room_posted")
    assert (posted["teamId"], posted["author"], posted["text"]) == ("dev", "Ada", "hello room")
    copies = told(store, team="dev", types=frozenset({"message_enqueued"}))
    assert {each["agent"] for each in copies} == {"coder", "helper"}
    assert all(each["isTeamMessage"] for each in copies)


def test_the_beginning_of_a_teams_work_says_who_is_in_it(store: Store) -> None:
    ask(store, "@dev do it")
    begun = of_type(told(store), "team_chain_start")
    assert (begun["teamId"], begun["teamName"], begun["leader"]) == ("dev", "dev", "coder")
    assert begun["agents"] == ["coder", "helper"]


def test_an_answer_that_answers_nothing_is_told_as_the_reference_does(store: Store) -> None:
    with store.write() as tx:
        message_id = send_to_person(tx, Answer(message="by the way"), channel="sms", sender="Bob")
    documents = told(store)
    assert of_type(documents, "message:done") == {
        "type": "message:done",
        "timestamp": store.clock.now(),
        "channel": "sms",
        "sender": "Bob",
        "messageId": message_id,
    }
    assert of_type(documents, "response_ready")["responseText"] == "by the way"


def test_what_an_agent_said_to_another_is_told_although_nobody_is_answered(store: Store) -> None:
    send(store, agent="coder", from_agent="helper", channel="internal")
    claim = take(store)
    with store.write() as tx:
        complete(tx, claim, RunOutput(text="between us"), ())
    found = of_type(told(store), "agent:response")
    assert (found["content"], found["isTeamMessage"]) == ("between us", True)


def test_of_a_long_text_the_beginning_is_told_and_how_long_it_is(store: Store) -> None:
    ask(store, "@coder hi")
    text = "é" * (MAX_TEXT_CHARS + 5)
    done(store, take(store).token, Outcome(answers=(Answer(message=text),)))
    found = of_type(told(store), "response_ready")
    assert found["responseText"] == text[:MAX_TEXT_CHARS]
    assert found["responseLength"] == MAX_TEXT_CHARS + 5


def test_an_event_is_told_although_its_message_is_archived_or_deleted(store: Store) -> None:
    asked = ask(store, "@coder hi")
    done(store, take(store).token)
    before = told(store)
    to_archive(store, asked)
    assert told(store) == before
    with store.write() as tx:
        gone = MessageRef("nobody", None, "gone")
        append_event(tx, ChainStepDone(gone, messages=["gone"], responses=0))
    last = told(store)[-1]
    assert (last["type"], last["agentName"], last["responseText"]) == (
        "chain_step_done",
        "nobody",
        "",
    )


def test_what_is_no_text_is_escaped_and_breaks_nothing(store: Store) -> None:
    with store.write() as tx:
        append_event(tx, ProcessorStart(worker="half \ud800 a pair\n\nid: 5\r\n\r\n"))
    found = told(store)[-1]
    assert found["data"]["worker"] == "half \ud800 a pair\n\nid: 5\r\n\r\n"
