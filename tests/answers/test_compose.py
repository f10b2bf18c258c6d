"""An answer taken apart: what people read, who is told what, and what nobody could be told."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bullpen.core.answers.compose import MAX_PARTS, Handoff, ParsedAnswer, Post, parse_answer
from bullpen.core.routing.address import AddressBook

EVERYBODY = AddressBook(
    agents={"coder": "Code Wizard", "reviewer": "", "tester": "Tess"},
    teams={"dev": ("Developers", "coder"), "ops": ("", "tester")},
)
ROOMS = {"dev": object()}

pieces = st.sampled_from(
    (
        *("[@reviewer: ", "[@tester,reviewer: ", "[@nobody: ", "[@dev: ", "[#dev: ", "[#ops: "),
        *("[send_file: ", "]", "]", "[", "x", " ", "\n", "`", "```\n", "\\", "@coder", "☃"),
    )
)


def composed(text: str, speaker: str = "coder") -> ParsedAnswer:
    """The answer of an agent that is in #dev."""
    return parse_answer(text, speaker, EVERYBODY, ROOMS)


def test_an_answer_without_tags_is_for_people_as_it_is() -> None:
    assert composed("  All done. `[@reviewer: no]`\n") == ParsedAnswer(
        "All done. `[@reviewer: no]`"
    )


def test_a_tag_is_a_handoff_and_people_see_who_says_what_to_whom() -> None:
    found = composed("[@reviewer: look at it]")
    assert found.handoffs == (Handoff("reviewer", None, "look at it"),)
    assert found.text == "@coder → @reviewer: look at it"


def test_what_stands_outside_goes_along_to_everyone() -> None:
    found = composed(
        "Version 2.\n\n[@reviewer: look]\n[@tester: try]\n[#dev: it is there]\n\nThanks."
    )
    shared = "Version 2.\n\nThanks."
    assert [each.text for each in found.handoffs] == [f"{shared}\n\nlook", f"{shared}\n\ntry"]
    assert found.posts == (Post("dev", f"{shared}\n\nit is there"),)
    assert "@coder → @reviewer: look" in found.text
    assert "@coder → #dev: it is there" in found.text
    assert (found.text[:10], found.text[-7:]) == ("Version 2.", "Thanks.")


def test_two_tags_to_one_agent_both_arrive() -> None:
    found = composed("[@tester: one] [@tester: two]")
    assert found.handoffs == (Handoff("tester", None, "one"), Handoff("tester", None, "two"))


def test_several_names_in_a_tag_get_the_same_each_once() -> None:
    found = composed("[@tester, reviewer, @tester: look]")
    assert [each.agent for each in found.handoffs] == ["tester", "reviewer"]


def test_a_stray_bracket_loses_no_later_tag() -> None:
    found = composed("[@reviewer: the range [a-z is wrong]\n[@tester: try it]")
    assert [each.agent for each in found.handoffs] == ["reviewer", "tester"]


def test_an_agent_is_found_by_its_name_and_a_team_by_its_leader() -> None:
    found = composed("[@tess: one] [@OPS: two]", "reviewer")
    assert found.handoffs == (Handoff("tester", None, "one"), Handoff("tester", "ops", "two"))


def test_who_does_not_exist_is_named_once() -> None:
    found = composed("[@nobody: x] [@nobody: y] [@reviewer,ghost: z]")
    assert [each.agent for each in found.handoffs] == ["reviewer"]
    assert len(found.notes) == 2
    assert "@nobody" in found.notes[0]
    assert "@ghost" in found.notes[1]


def test_nobody_writes_to_itself() -> None:
    assert composed("[@coder: x] [@dev: y]").handoffs == ()
    assert all("itself" in note for note in composed("[@coder: x] [@dev: y]").notes)


def test_posts_go_only_to_rooms_of_the_speakers_own_teams() -> None:
    found = composed("[#ops: hello] [#nothing: hello] [#Developers: hello]")
    assert found.posts == (Post("dev", "hello"),)
    assert [note.partition(":")[0] for note in found.notes] == [
        "not sent to #ops",
        "not sent to #nothing",
    ]


def test_files_are_named_each_once_and_not_shown() -> None:
    found = composed("Here: [send_file: a.txt]\n[send_file: b c.txt] [send_file: a.txt] Bye.")
    assert found.files == ("a.txt", "b c.txt")
    assert "send_file" not in found.text
    assert "a.txt" not in found.text


def test_an_answer_has_at_most_so_many_parts() -> None:
    names = ",".join(["reviewer"] * MAX_PARTS)
    found = composed(
        "".join(f"[@tester: {number}]" for number in range(MAX_PARTS + 2)) + f"[@{names}: x]"
    )
    assert len(found.handoffs) == MAX_PARTS
    assert found.notes
    assert f"at most {MAX_PARTS}" in found.notes[0]


@given(st.lists(pieces, max_size=14).map("".join) | st.text())
def test_whatever_is_said_is_shown_or_sent_or_noted(text: str) -> None:
    found = composed(text)
    assert len(found.handoffs) + len(found.posts) <= MAX_PARTS
    assert {each.agent for each in found.handoffs} <= {"reviewer", "tester"}
    assert {each.team for each in found.posts} <= {"dev"}
    assert all(each.text for each in found.handoffs)
    assert all(each.text for each in found.posts)
    for part in text.split():
        if part.isalnum():
            everything = (found.text, *found.files, *found.notes)
            assert any(part in each for each in everything)
