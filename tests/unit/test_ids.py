"""Ids and tokens."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from bullpen.core.errors import BadName
from bullpen.core.ids import Ids, agent_of, check_name


def test_an_id_is_a_prefix_and_eight_lowercase_alphanumerics() -> None:
    ids = Ids()
    assert all(re.fullmatch(r"chat_[a-z0-9]{8}", ids.new("chat")) for _ in range(1000))


def test_ids_do_not_repeat_even_when_threads_share_their_maker() -> None:
    ids = Ids()
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(lambda _: ids.new("api"), range(20_000)))
    assert len(set(made)) == len(made)


def test_every_character_of_the_alphabet_comes_about_as_often_in_every_place() -> None:
    ids = Ids()
    made = [ids.new("x")[2:] for _ in range(3_600)]
    for place in range(8):
        seen = [text[place] for text in made]
        assert len(set(seen)) == 36, place
        assert max(seen.count(each) for each in set(seen)) < 200, place


def test_chance_is_a_parameter() -> None:
    texts: Iterator[str] = iter(["aaaaaaaabbbbbbbbcccccccc", "dddddddd"])
    ids = Ids(lambda: next(texts))
    made = {ids.new("x") for _ in range(4)}
    assert made == {"x_aaaaaaaa", "x_bbbbbbbb", "x_cccccccc", "x_dddddddd"}


@pytest.mark.parametrize("agent", ["coder", "a-b_c", "9"])
def test_a_token_names_its_lane(agent: str) -> None:
    assert agent_of(Ids().token(agent)) == agent


@pytest.mark.parametrize("name", ["a", "9", "coder", "a-b_c", "x" * 32])
def test_a_good_name_passes(name: str) -> None:
    assert check_name(name) == name


@pytest.mark.parametrize(
    "name", ["", "A", "-a", "_a", "a b", "a.b", "é", "x" * 33, "a\n", "a\0", "../a", "\ud800"]
)
def test_a_bad_name_is_refused(name: str) -> None:
    with pytest.raises(BadName) as caught:
        check_name(name)
    str(caught.value).encode()
