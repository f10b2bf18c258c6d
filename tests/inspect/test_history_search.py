"""The history is searched as people write: any case, every character as it is."""

from __future__ import annotations

import pytest
from sqlalchemy import insert

from bullpen.core.errors import BadText
from bullpen.core.inspect import history
from bullpen.core.inspect.history import Person, list_people, search_history
from bullpen.core.models import AGENT_MESSAGES
from bullpen.core.store.base import Store
from tests.conformance.verbs import done, lane, send, take, to_archive

SIGMA = "\N{GREEK CAPITAL LETTER SIGMA}" * 3 + " ☃"

SAID = (
    *("Please pay the INVOICE", "invoices are paid", "100% sure", "100 times sure", "snake_case"),
    *("snakeXcase", r"C:\temp\new", "C:/temp/new", "Ärger mit GRÖSSE", "ärger", "Argwohn", SIGMA),
)


@pytest.fixture
def store(store: Store) -> Store:
    """A store in which two agents were told all of this, in order."""
    with store.engine.begin() as connection:
        for number, text in enumerate(SAID, start=1):
            row = {
                "agent_id": "coder" if number % 2 else "writer",
                "role": "user",
                "channel": "cli",
                "sender": "ada",
                "message_id": f"m{number}",
                "content": text,
                "created_at": number,
            }
            connection.execute(insert(AGENT_MESSAGES).values(row))
    return store


def _found(store: Store, text: str, agent: str | None = None, limit: int = 20) -> list[str]:
    with store.read() as tx:
        return [each.content for each in search_history(tx, text, agent, limit)]


def test_any_case_is_found_the_newest_first(store: Store) -> None:
    both = ["invoices are paid", "Please pay the INVOICE"]
    for text in ("invoice", "INVOICE", "iNvOiCe"):
        assert _found(store, text) == both
    assert _found(store, "nothing like it") == []


def test_any_case_of_letters_beyond_ascii_is_found(store: Store) -> None:
    for text in ("ärger", "ÄRGER", "Ärger"):
        assert _found(store, text) == ["ärger", "Ärger mit GRÖSSE"]
    for text in ("größe", "grösse", "mit GRÖSSE"):
        assert _found(store, text) == ["Ärger mit GRÖSSE"]
    # Its small letter is another one at the end of a word.
    assert _found(store, SIGMA[:2].lower()) == [SIGMA]


def test_characters_that_mean_something_to_a_database_are_themselves(store: Store) -> None:
    assert _found(store, "100%") == ["100% sure"]
    assert _found(store, "%") == ["100% sure"]
    assert _found(store, "e_c") == ["snake_case"]
    assert _found(store, "_") == ["snake_case"]
    assert _found(store, "\\") == [r"C:\temp\new"]
    assert _found(store, r"\t") == [r"C:\temp\new"]
    assert _found(store, "'") == []
    assert _found(store, '"; drop table agents; --') == []


def test_an_agents_own_history_is_searched_alone(store: Store) -> None:
    assert _found(store, "invoice", "coder") == ["Please pay the INVOICE"]
    assert _found(store, "invoice", "writer") == ["invoices are paid"]
    assert _found(store, "invoice", "nobody") == []


def test_no_more_are_found_than_were_asked_for(store: Store) -> None:
    assert _found(store, "", limit=3) == list(SAID[:-4:-1])
    assert _found(store, "", limit=0) == [SAID[-1]]
    assert _found(store, "", limit=-5) == [SAID[-1]]
    assert _found(store, "", limit=1 << 70) == list(SAID[::-1])
    assert _found(store, "ä", limit=1) == ["ärger"]


def test_all_that_is_there_is_found_page_by_page(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "PAGE_ROWS", 2)
    assert _found(store, "ärger", limit=2) == ["ärger", "Ärger mit GRÖSSE"]
    assert _found(store, "a", limit=2) == [each for each in SAID[::-1] if "a" in each.lower()][:2]
    assert len(_found(store, "ä", limit=20)) == 2
    assert _found(store, "é", limit=1) == []


def test_what_no_database_can_look_for_is_refused(store: Store) -> None:
    with store.read() as tx:
        for text, agent in (("a\0", None), ("\ud800", None), ("a", "b\0")):
            with pytest.raises(BadText):
                search_history(tx, text, agent)


def test_people_are_all_who_ever_wrote_each_once(store: Store) -> None:
    lane(store)
    archived = send(store, channel="slack", sender="Ada", sender_id="U1")
    send(store, "again", channel="slack", sender="Ada", sender_id="U1")
    send(store, channel="slack", sender="Ada", sender_id="U2")
    send(store, channel="slack", sender="Ada")
    send(store, channel="cli", sender="owner")
    send(store, channel="slack", sender="Ada", sender_id="U9", from_agent="coder")
    send(store, channel="chatroom", sender="Bob")
    send(store, channel="internal", sender="Eve", from_agent="coder")
    done(store, take(store, limit=1).token)
    to_archive(store, archived)
    with store.read() as tx:
        assert list_people(tx) == [
            Person("cli", "owner", None),
            Person("slack", "Ada", None),
            Person("slack", "Ada", "U1"),
            Person("slack", "Ada", "U2"),
        ]
