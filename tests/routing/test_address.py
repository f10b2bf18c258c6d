"""A person's message reaches whom it names, or nobody."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bullpen.core.errors import UnknownRecipient
from bullpen.core.routing.address import AddressBook, Recipient, RoutedText, route_text

EVERYBODY = AddressBook(
    agents={"coder": "Code Wizard", "tester": "", "zoe": "Zoë", "code": "code", "ops": "Night"},
    teams={"dev": ("Dev  team", "coder"), "night": ("Night", "tester"), "code": ("QA", "tester")},
)
NOBODY = AddressBook({}, {})
LISTING = "Agents: @coder (Code Wizard), @tester"

pieces = st.sampled_from(
    (
        *("@coder", "@dev", "@nobody", "@", "Code", "Wizard", " ", "\n", ":", ",", ".", "x"),
        *("[@coder: ", "[@nobody: ", "[#dev: ", "[#zoo: ", "[send_file: ", "[", "]", "]", "`"),
    )
)
texts = st.lists(pieces, max_size=12).map("".join) | st.text()


def sent(text: str, default: str = "zoe") -> list[tuple[str, str]]:
    """Who gets what: `agent`, `agent/team` or `#room`."""
    return [
        (
            f"#{each.room}" if each.room else "/".join(filter(None, (each.agent, each.team))),
            each.text,
        )
        for each in route_text(text, EVERYBODY, default)
    ]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        *(("coder", "coder"), ("CODER", "coder"), (" code\n wizard ", "coder"), ("ZOË", "zoe")),
        *(("dev", "coder/dev"), ("dev team", "coder/dev"), ("qa", "tester/code")),
        # An agent's id, a team's id, an agent's name: each wins over what comes after it.
        *(("code", "code"), ("night", "tester/night")),
        *(("", None), ("cod", None), ("code wizards", None), ("@coder", None)),
    ],
)
def test_a_name_is_found_however_it_is_written(name: str, expected: str | None) -> None:
    found = EVERYBODY.find(name)
    shown = found and "/".join(filter(None, (found.agent, found.team)))
    assert shown == expected


def test_an_agents_name_wins_over_a_teams_name() -> None:
    both = AddressBook({"ada": "Crew"}, {"t": ("Crew", "ada")})
    assert both.find("crew") == Recipient("ada", None)
    assert both.find_team("crew") == "t"


def test_letters_that_differ_only_in_case_are_the_same() -> None:
    assert AddressBook({"ada": "Groß"}, {}).find("GROSS") == Recipient("ada", None)


@pytest.mark.parametrize(
    ("name", "team"), [("dev", "dev"), ("DEV TEAM", "dev"), ("code", "code"), ("coder", None)]
)
def test_a_room_is_found_by_its_team(name: str, team: str | None) -> None:
    assert EVERYBODY.find_team(name) == team


def test_the_listing_says_who_exists() -> None:
    some = AddressBook({"coder": "Code Wizard", "tester": "Tester"}, {"dev": ("Dev team", "coder")})
    assert some.listing("x") == "Agents: @coder (Code Wizard), @tester. Teams: @dev (Dev team)."
    assert AddressBook({"a": "a"}, {}).listing("x") == "Agents: @a."
    assert (
        NOBODY.listing("x")
        == "There are no agents yet. Run `bullpen agent add coder` to create one."
    )


def test_of_many_names_the_nearest_are_listed() -> None:
    many = AddressBook({f"agent{number}": "" for number in range(10_000)} | {"coder": "Ann"}, {})
    with pytest.raises(UnknownRecipient) as caught:
        route_text("@codr hi", many, "agent1")
    assert caught.value.hint.startswith("Agents: @coder (Ann), ")
    assert caught.value.hint.endswith("and 9991 more.")
    assert len(caught.value.hint) < 400


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("@coder fix it", ("coder", "fix it")),
        ("@coder: fix it", ("coder", "fix it")),
        ("@coder:fix it", ("coder", "fix it")),
        ("@Coder,  fix it \n", ("coder", "fix it \n")),
        (" \n@coder\n\nfix\n\n\nit", ("coder", "fix\n\n\nit")),
        ("@coder", ("coder", "")),
        ("@coder: ", ("coder", "")),
        ("@Code Wizard fix it", ("coder", "fix it")),
        ("@code  wizard, fix it", ("coder", "fix it")),
        ("@code wizards are fun", ("code", "wizards are fun")),
        ("@code\nwizard is who?", ("code", "wizard is who?")),
        ("@zoë hello", ("zoe", "hello")),
        ("@dev ship", ("coder/dev", "ship")),
        ("@dev team: ship", ("coder/dev", "ship")),
        ("@coder ask [@tester: x] [send_file: y]", ("coder", "ask [@tester: x] [send_file: y]")),
        ("@coder @nobody knows", ("coder", "@nobody knows")),
    ],
)
def test_a_prefix_takes_the_whole_message(text: str, expected: tuple[str, str]) -> None:
    assert sent(text) == [expected]


@pytest.mark.parametrize(
    "text", ["@nobody", " @nobody hi", "@nobody: x", "@no-body_2,x", "@coders x"]
)
def test_a_prefix_to_nobody_sends_nothing_and_says_who_exists(text: str) -> None:
    with pytest.raises(
        UnknownRecipient, match=r"^agent or team .(no|coders).* does not exist"
    ) as caught:
        route_text(text, EVERYBODY, "zoe")
    assert caught.value.hint.startswith(LISTING)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "hello",
            "",
            " \n",
            "@ 5 pm",
            "@@",
            "@",
            "@foo.bar@example.org hi",
            "@coder.",
            "@nobody!",
        ),
        *("mail @coder", "[@x](http://y)", "`[@nobody: x]`", "[send_file: a]", " a\n\n\n\nb\n"),
        *("@-x", "@ coder: x", "`@coder` is who?"),
    ],
)
def test_all_else_goes_verbatim_to_the_default(text: str) -> None:
    assert sent(text) == [("zoe", text)]


def test_the_default_may_be_a_team() -> None:
    assert route_text("hi", EVERYBODY, "dev") == (RoutedText("hi", "coder", "dev", None),)


def test_a_default_that_is_nobody_is_refused() -> None:
    with pytest.raises(UnknownRecipient) as caught:
        route_text("hi", NOBODY, "coder")
    assert (
        caught.value.hint == "There are no agents yet. Run `bullpen agent add coder` to create one."
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[@coder: x]", [("coder", "x")]),
        (
            "All:\n\n[@coder: x]\n\n[@Dev Team: y]",
            [("coder", "All:\n\nx"), ("coder/dev", "All:\n\ny")],
        ),
        ("[@coder, dev: x] now", [("coder", "now\n\nx"), ("coder/dev", "now\n\nx")]),
        ("[#dev: x] [@zoe: y]", [("#dev", "x"), ("zoe", "y")]),
        ("[#dev team, code: x]", [("#dev", "x"), ("#code", "x")]),
        ("[@coder: x] [@coder: x]", [("coder", "x"), ("coder", "x")]),
        ("see [send_file:  a ] [@coder: x]", [("coder", "see [send_file:  a ]\n\nx")]),
        ("@ noon [@coder: x]", [("coder", "@ noon\n\nx")]),
    ],
)
def test_each_name_of_each_tag_gets_the_shared_text_and_its_own(
    text: str, expected: list[tuple[str, str]]
) -> None:
    assert sent(text) == expected


@pytest.mark.parametrize(
    "text",
    ["[@coder: x] [@nobody: y]", "[@coder, nobody: x]", "[@zoe: x] [#coder: y]", "[#zoo: x]"],
)
def test_one_name_that_nobody_has_sends_nothing(text: str) -> None:
    with pytest.raises(UnknownRecipient) as caught:
        route_text(text, EVERYBODY, "zoe")
    assert caught.value.hint.startswith(LISTING)
    assert caught.value.code == "unknown_recipient"


@given(texts)
def test_any_text_reaches_somebody_or_is_refused(text: str) -> None:
    try:
        found = route_text(text, EVERYBODY, "zoe")
    except UnknownRecipient:
        return
    assert found
    assert all(each.agent in EVERYBODY.agents or each.room in EVERYBODY.teams for each in found)


@given(texts)
def test_after_a_prefix_any_text_stays_what_it_was(text: str) -> None:
    assert sent(f"@zoe: {text}") == [("zoe", text.lstrip())]
