"""Secrets that Bullpen knows leave in nothing that an agent says or that is kept of its run."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from bullpen.core.access.keys import new_secret
from bullpen.core.access.outgoing import KEPT_MS, outgoing_mask
from bullpen.core.access.owner import ensure_token
from bullpen.core.answers.complete import fail
from bullpen.core.message import Answer, ErrorKind, Failure
from bullpen.core.outbox.write import send_to_person
from bullpen.core.roster.providers import CustomProvider, Harness, add_custom_provider
from bullpen.core.settings import Settings
from bullpen.core.store.base import Store
from bullpen.core.text import HIDDEN
from bullpen.processor.progress import ProgressBoard
from tests.answers.talk import answer, posts, team, told, write
from tests.conformance.verbs import Dump, do, dump, hire, take
from tests.outbox.outgoing import asked
from tests.stores import FakeClock

API_KEY = "sk-ant-api03-of-the-settings"
CUSTOM_KEY = "sk-of-a-custom-provider"


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """Settings with a key of a provider."""
    return replace(settings, anthropic_api_key=API_KEY)


@pytest.fixture
def known(store: Store) -> list[str]:
    """Everything that is secret in this home."""
    do(store, add_custom_provider, custom(CUSTOM_KEY))
    return [ensure_token(store.settings), new_secret(), API_KEY, CUSTOM_KEY]


def custom(key: str, name: str = "local") -> CustomProvider:
    """A custom provider with this key."""
    return CustomProvider(
        id=name, harness=Harness.CODEX, base_url="https://models.example", api_key=key
    )


def without_providers(dumped: Dump) -> str:
    """All that is stored, but for where the keys themselves are kept."""
    return repr({name: rows for name, rows in dumped.items() if name != "custom_providers"})


def test_an_answer_leaves_without_secrets(store: Store, known: list[str]) -> None:
    team(store, "coder", "tester")
    write(store, "@coder what do you know?")
    text = " and ".join(known)
    answer(
        *(store, "coder", f"I know {text}\n[@tester: {text}]\n[#dev: {text}]"),
        metadata=json.dumps({"known": known}),
    )
    everything = without_providers(dump(store))
    for secret in known:
        assert secret not in everything
    assert f"I know {HIDDEN} and {HIDDEN} and" in told(store)[0][1]
    assert HIDDEN in str(posts(store))


def test_what_a_failed_run_said_is_stored_without_secrets(store: Store, known: list[str]) -> None:
    hire(store, "coder")
    write(store, "@coder what do you know?")
    token = take(store, "coder").token
    for_person = Failure(kind=ErrorKind.NEEDS_PERSON, error=f"refused: {' '.join(known)}")
    do(store, fail, token, for_person)
    everything = without_providers(dump(store))
    assert "refused: [hidden]" in everything
    for secret in known:
        assert secret not in everything


def test_progress_and_messages_unasked_go_out_without_secrets(
    store: Store, known: list[str]
) -> None:
    text = " ".join(known)
    board = ProgressBoard(store)
    board.open(asked("m1"))(f"running curl {text}")
    board.step()
    with store.write() as tx:
        person = {"channel": "slack", "sender": "Ann", "sender_id": "U1", "agent": "coder"}
        send_to_person(tx, Answer(message=text, metadata=json.dumps(known)), **person)
    everything = without_providers(dump(store))
    assert f"running curl {HIDDEN}" in everything
    for secret in known:
        assert secret not in everything


def test_a_key_that_is_added_later_is_masked_soon(store: Store, clock: FakeClock) -> None:
    with store.read() as tx:
        assert outgoing_mask(tx)(CUSTOM_KEY) == CUSTOM_KEY
    do(store, add_custom_provider, custom(CUSTOM_KEY))
    clock.advance(KEPT_MS)
    with store.read() as tx:
        assert outgoing_mask(tx)(f"({CUSTOM_KEY})") == f"({HIDDEN})"


def test_what_only_looks_like_a_key_stays(store: Store) -> None:
    text = "bp_blueprint_of_users = 1; bp_; mybp_name; a bearer of news"
    with store.read() as tx:
        assert outgoing_mask(tx)(text) == text
