"""Custom providers: an address and a key, which nobody sees."""

from __future__ import annotations

import traceback
from dataclasses import asdict, replace
from functools import partial
from typing import Any

import pytest

from bullpen.core.errors import (
    BadName,
    BadProvider,
    BadText,
    BullpenError,
    NameTaken,
    UnknownProvider,
)
from bullpen.core.roster.providers import (
    CustomProvider,
    CustomProviderChange,
    Harness,
    add_custom_provider,
    change_custom_provider,
    find_custom_provider,
    get_custom_provider,
    list_custom_providers,
    remove_custom_provider,
)
from bullpen.core.store.base import Store
from tests.conformance.verbs import do, dump, hire, refused

KEY = "sk-very-secret"
OWN = CustomProvider(
    id="own",
    name="Our own",
    harness=Harness.CLAUDE,
    base_url="https://llm.example:8443/v1",
    api_key=KEY,
    model="large",
)


CHANGES: list[CustomProviderChange] = [
    {},
    {"name": ""},
    {"harness": Harness.CODEX},
    {"base_url": "https://LLM.example:8443/v2"},
    {"base_url": "http://localhost:1", "api_key": "its own"},
    {"api_key": "other"},
    {"model": "small", "name": "x"},
]

UNFIT: list[tuple[dict[str, Any], type[BullpenError]]] = [
    ({"id": "Own"}, BadName),
    ({"id": "../x"}, BadName),
    ({"base_url": ""}, BadProvider),
    ({"base_url": "llm.example"}, BadProvider),
    ({"base_url": "file:///etc/passwd"}, BadProvider),
    ({"base_url": "http://"}, BadProvider),
    ({"base_url": "http://[::1"}, BadProvider),
    ({"model": "-c"}, BadName),
    ({"api_key": ""}, BadProvider),
    ({"api_key": " \n"}, BadProvider),
    ({"api_key": "a\0b"}, BadText),
    ({"name": "\ud800"}, BadText),
]


def test_a_provider_is_found_as_it_was_added(store: Store) -> None:
    other = CustomProvider(id="a", harness=Harness.CODEX, base_url="http://x", api_key="k")
    do(store, add_custom_provider, OWN)
    do(store, add_custom_provider, other)
    with store.read() as tx:
        assert get_custom_provider(tx, "own") == OWN
        assert find_custom_provider(tx, "b") is None
        assert list_custom_providers(tx) == [other, OWN]


def test_its_key_is_not_in_what_is_printed_of_it(store: Store) -> None:
    do(store, add_custom_provider, OWN)
    with store.read() as tx:
        found = get_custom_provider(tx, "own")
        listed = list_custom_providers(tx)
    assert found.api_key == KEY
    assert KEY not in f"{found} {found!r} {listed} {[found]!r}"


def test_its_key_is_in_no_error(store: Store) -> None:
    do(store, add_custom_provider, OWN)
    for bad in (OWN, replace(OWN, id="x", base_url="nowhere"), replace(OWN, id="X")):
        with pytest.raises((NameTaken, BadProvider, BadName)) as caught, store.write() as tx:
            add_custom_provider(tx, bad)
        assert KEY not in "".join(traceback.format_exception(caught.value))


def test_providers_have_names_of_their_own(store: Store) -> None:
    hire(store, "own")
    do(store, add_custom_provider, OWN)
    refused(store, NameTaken, add_custom_provider, OWN)


def test_what_cannot_be_reached_or_paid_is_refused(store: Store) -> None:
    for change, kind in UNFIT:
        refused(store, kind, add_custom_provider, replace(OWN, **change))


def test_another_host_does_not_get_the_old_key(store: Store) -> None:
    do(store, add_custom_provider, OWN)
    for url in (
        "https://llm.example/v1",
        "https://other.example:8443/v1",
        "http://llm.example:8443/v1",
    ):
        change = partial(change_custom_provider, base_url=url)
        refused(store, BadProvider, change, "own")
    with store.read() as tx:
        assert get_custom_provider(tx, "own") == OWN


def test_a_change_keeps_what_it_does_not_name(store: Store) -> None:
    do(store, add_custom_provider, OWN)
    expected = asdict(OWN)
    for change in CHANGES:
        with store.write() as tx:
            given_back = change_custom_provider(tx, "own", **change)
        expected.update(change)
        with store.read() as tx:
            assert get_custom_provider(tx, "own") == given_back
        assert asdict(given_back) == expected


def test_a_change_that_cannot_be_changes_nothing(store: Store) -> None:
    do(store, add_custom_provider, OWN)
    before = dump(store)
    with pytest.raises(BadProvider), store.write() as tx:
        change_custom_provider(tx, "own", name="new", api_key="")
    assert dump(store) == before


def test_a_removed_provider_is_gone(store: Store) -> None:
    do(store, add_custom_provider, OWN)
    do(store, remove_custom_provider, "own")
    with store.read() as tx:
        assert list_custom_providers(tx) == []
    refused(store, UnknownProvider, remove_custom_provider, "own")
    refused(store, UnknownProvider, change_custom_provider, "own")
    do(store, add_custom_provider, OWN)
