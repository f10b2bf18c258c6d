"""complete: everything that an answer says is done, in one transaction."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from sqlalchemy import bindparam, update

from bullpen.core.answers.complete import MAX_NOTES, complete
from bullpen.core.answers.leases import expire_leases
from bullpen.core.clock import MINUTE
from bullpen.core.errors import StaleToken
from bullpen.core.message import RunOutput, Usage
from bullpen.core.models import ATTEMPTS, MESSAGES
from bullpen.core.models.base import const
from bullpen.core.queue.lanes import drain_lane
from bullpen.core.queue.manage import cancel
from bullpen.core.store.base import Store
from bullpen.core.store.statement import Statement
from bullpen.core.workspace.safe_files import Root
from tests.answers.talk import (
    ADA,
    answer,
    children,
    files_of,
    heard,
    notes,
    posts,
    said,
    team,
    told,
    write,
)
from tests.conformance.conftest import lanes_tell_the_truth  # noqa: F401
from tests.conformance.verbs import (
    broken_off,
    do,
    dump,
    events,
    hire,
    responses,
    rows,
    status,
    take,
    texts_of,
    try_claim,
)
from tests.stores import FakeClock


@pytest.fixture
def files(store: Store) -> Path:
    """The directory from which files may leave."""
    store.settings.files.mkdir()
    return store.settings.files


def test_a_plain_answer_goes_to_the_person_who_asked(store: Store) -> None:
    hire(store, "coder")
    root = write(store, "@coder hello")
    answer(store, "coder", "hello Ada", metadata='{"a":1}')
    (row,) = responses(store)
    assert (row["message"], row["agent"], row["metadata"]) == ("hello Ada", "coder", '{"a":1}')
    assert (row["channel"], row["sender_id"], row["reply_to"]) == (
        "slack",
        "U1",
        str(ADA["reply_to"]),
    )
    assert (row["message_id"], status(store, root)) == (root, "completed")


def test_a_tag_is_a_handoff_one_hop_on_in_the_same_conversation(store: Store) -> None:
    for agent in ("coder", "reviewer", "tester"):
        hire(store, agent)
    root = write(store, "@coder build it")
    answer(store, "coder", "It is built.\n\n[@reviewer: read it]\n\n[@tester: try it]")
    assert [(row["agent"], row["message"], row["hop"]) for row in children(store, root)] == [
        ("reviewer", "It is built.\n\nread it", 1),
        ("tester", "It is built.\n\ntry it", 1),
    ]
    answer(store, "reviewer", "[@tester: try harder]")
    (row,) = (row for row in children(store, root) if row["hop"] == 2)
    assert (row["agent"], row["from_agent"], row["channel"]) == ("tester", "reviewer", "slack")
    assert [event["agent"] for event in events(store, "chain_handoff")] == [
        *("coder", "coder", "reviewer")
    ]


def test_people_see_tags_as_who_says_what_to_whom(store: Store) -> None:
    team(store, "coder", "reviewer")
    write(store, "@coder go")
    answer(store, "coder", "Done.\n\n[@reviewer: look] [#dev: it is done]")
    ((_, text),) = told(store)
    assert text == "Done.\n\n@coder → @reviewer: look @coder → #dev: it is done"


def test_all_of_an_agents_tags_are_heard_and_two_to_one_agent_both_arrive(store: Store) -> None:
    hire(store, "coder")
    hire(store, "tester")
    write(store, "@coder go")
    answer(store, "coder", "[@tester: one]\nfirst [a-z block\n\n[@tester: two]")
    found = [take(store, "tester", limit=1)]
    said(store, found[0], "fine")
    found.append(take(store, "tester", limit=1))
    assert [texts_of(each)[0].rpartition("\n\n")[2] for each in found] == ["one", "two"]


def test_who_does_not_exist_is_told_to_the_person_and_to_the_agent(store: Store) -> None:
    hire(store, "coder")
    write(store, "@coder go")
    answer(store, "coder", "I ask [@nobody: help] and [#nowhere: help]")
    ((_, text),) = told(store)
    assert "(not sent to @nobody: this agent or team does not exist)" in text
    assert "(not sent to #nowhere" in text
    assert [note.partition(":")[0] for note in notes(store, "coder")] == [
        "not sent to @nobody",
        "not sent to #nowhere",
    ]
    assert rows(store, MESSAGES)[-1]["from_agent"] is None


def test_of_very_many_notes_only_some_are_told(store: Store) -> None:
    hire(store, "coder")
    write(store, "@coder go")
    names = ",".join(f"ghost{number}" for number in range(5000))
    answer(store, "coder", f"[@{names}: help] " + "[send_file: no]" * 3 + f"[@{'x' * 60}: hi]")
    ((_, text),) = told(store)
    assert len(text.encode()) < store.settings.message_bytes
    assert len(notes(store, "coder")) == MAX_NOTES + 1
    assert "more such notes" in notes(store, "coder")[-1]


def test_rooms_are_open_only_to_members_of_their_team(store: Store) -> None:
    team(store, "a", "b", id="ops")
    team(store, "coder", "reviewer")
    write(store, "@coder go")
    answer(store, "coder", "[#ops: hi] [#dev: hi]")
    assert posts(store) == [("dev", "coder", "hi")]
    assert "not sent to #ops" in told(store)[0][1]
    assert try_claim(store, "a") is None


def test_history_has_every_side_word_for_word(store: Store) -> None:
    team(store, "coder", "reviewer")
    write(store, "@coder go")
    words = "  Done. [@reviewer: look]\n[#dev: hi] [send_file: no] [@nobody: x]  "
    answer(store, "coder", words)
    answer(store, "reviewer", "fine")
    assert heard(store, "coder")[:2] == [("user", "go"), ("assistant", words)]
    assert [role for role, _ in heard(store, "reviewer")] == ["user", "user", "assistant"]
    assert heard(store, "reviewer")[0][1].endswith("look")
    assert heard(store, "reviewer")[2][1] == "fine"


def test_what_no_database_can_keep_is_replaced(store: Store) -> None:
    hire(store, "coder")
    write(store, "@coder go")
    answer(store, "coder", "a\0b\ud800c")
    assert told(store) == [("coder", "a\N{REPLACEMENT CHARACTER}b?c")]


def test_usage_is_in_the_attempt(store: Store) -> None:
    hire(store, "coder")
    root = write(store, "@coder go")
    usage = Usage(provider="claude", model="m", input_tokens=7, output_tokens=9, cost=0.25)
    answer(store, "coder", "done", usage=usage)
    (row,) = rows(store, ATTEMPTS)
    assert (row["provider"], row["model"], row["input_tokens"], row["output_tokens"]) == (
        *("claude", "m", 7, 9),
    )
    assert (row["cost"], row["conversation_id"]) == (0.25, root)


def test_nothing_to_say_is_no_empty_response(store: Store) -> None:
    hire(store, "coder")
    root = write(store, "@coder go")
    answer(store, "coder", " \n ")
    assert (responses(store), status(store, root)) == ([], "completed")


def test_an_allowed_file_goes_along_by_its_real_path(store: Store, files: Path) -> None:
    hire(store, "coder")
    (files / "sub").mkdir()
    (files / "sub" / "report.txt").write_text("fine")
    (files / "link").symlink_to("sub/report.txt")
    write(store, "@coder go")
    answer(
        store, "coder", "Here. [send_file: link] [send_file: sub/report.txt]", roots=[Root(files)]
    )
    (row,) = responses(store)
    assert files_of(row) == [str(files / "sub" / "report.txt")]
    assert row["message"] == "Here."
    assert notes(store, "coder") == []


def test_an_answer_may_be_a_file_alone(store: Store, files: Path) -> None:
    hire(store, "coder")
    (files / "report.txt").write_text("fine")
    write(store, "@coder go")
    answer(store, "coder", "[send_file: report.txt]", roots=[Root(files)])
    (row,) = responses(store)
    assert (row["message"], files_of(row)) == ("", [str(files / "report.txt")])


def test_a_file_outside_allowed_roots_is_refused_and_reported(store: Store, files: Path) -> None:
    hire(store, "coder")
    root = write(store, "@coder go")
    answer(
        store, "coder", "[send_file: /etc/hostname]", roots=[Root(files)], files=("../bullpen.db",)
    )
    (row,) = responses(store)
    assert files_of(row) == []
    for path in ("/etc/hostname", "../bullpen.db"):
        assert f"({path} was not sent: it is outside" in row["message"]
    assert len(notes(store, "coder")) == 2
    refused = events(store, "file_refused")
    assert [event["conversation_id"] for event in refused] == [root, root]
    assert {json.loads(event["data"])["file"] for event in refused} == {
        "/etc/hostname",
        "../bullpen.db",
    }


def test_a_file_for_nobody_is_told_to_the_agent(store: Store, files: Path) -> None:
    team(store, "coder", "reviewer")
    (files / "report.txt").write_text("fine")
    write(store, "[#dev: hello]")
    answer(store, "coder", "[send_file: report.txt]", roots=[Root(files)])
    assert responses(store) == []
    assert notes(store, "coder") == [
        "report.txt was not sent: nobody receives this answer",
    ]


def test_a_long_answer_is_a_file_with_a_preview(store: Store, files: Path) -> None:
    hire(store, "coder")
    exact, longer = "y" * 4000, "lorem ipsum " * 400
    sent = write(store, "@coder go")
    odd: Statement[None] = Statement(  # as clients could choose it once
        lambda: (
            update(MESSAGES)
            .where(MESSAGES.c.message_id == bindparam("sent"))
            .values(message_id=const("../../../tmp/x"))
        )
    )
    with store.write() as tx:
        tx.write(odd, {"sent": sent})
    answer(store, "coder", longer, roots=[Root(files)])
    write(store, "@coder again")
    answer(store, "coder", exact, roots=[Root(files)])
    first, second = responses(store)
    (path,) = files_of(first)
    assert Path(path).parent == files
    assert Path(path).read_text() == longer.strip()
    assert first["message"].startswith("lorem ipsum lorem")
    assert len(first["message"]) < 4100
    assert (second["message"], files_of(second)) == (exact, [])
    assert ("assistant", longer) in heard(store, "coder")


def test_a_handoff_or_post_too_long_for_a_message_is_a_file_that_the_agent_can_read(
    store: Store, files: Path
) -> None:
    team(store, "coder", "reviewer")
    root = write(store, "@coder go")
    long = "lorem ☃ " * (store.settings.message_bytes // 32)
    answer(store, "coder", f"[@reviewer: {long}] [#dev: {long}]", roots=[Root(files)])
    handoff, post = children(store, root)
    (path,) = files_of(handoff)
    assert Path(path).read_text() == long.strip()
    assert Path(path).name in handoff["message"]
    assert f"[file: {files}/post0_" in post["message"]


def test_a_stale_token_leaves_nothing(store: Store, files: Path, clock: FakeClock) -> None:
    team(store, "coder", "reviewer")
    (files / "report.txt").write_text("fine")
    write(store, "@dev go")
    claim = take(store, "coder")
    clock.advance(2 * MINUTE)
    do(store, expire_leases)
    before = dump(store)
    text = "[@reviewer: x] [#dev: x] [send_file: report.txt] [send_file: no] [@nobody: x]" * 9
    with pytest.raises(StaleToken):
        said(store, claim, text, roots=[Root(files)])
    assert dump(store) == before
    with store.write() as tx, pytest.raises(StaleToken):
        complete(tx, claim, RunOutput(text=text), [Root(files)])
    assert dump(store) == before


def test_a_cancelled_run_leaves_nothing(store: Store) -> None:
    hire(store, "coder")
    root = write(store, "@coder go")
    claim = take(store)
    do(store, cancel, root)
    before = dump(store)
    with pytest.raises(StaleToken):
        said(store, claim, "done [@coder: x]")
    assert dump(store) == before


def test_a_complete_that_is_broken_off_leaves_nothing(store: Store, files: Path) -> None:
    team(store, "coder", "reviewer")
    write(store, "@dev go")
    claim = take(store, "coder")
    before = dump(store)
    text = "[@reviewer: x] [#dev: x] [send_file: no]"
    with broken_off(store.write()) as tx:
        complete(tx, claim, RunOutput(text=text), [Root(files)])
    assert dump(store) == before
    said(store, claim, text, roots=[Root(files)])
    assert len(responses(store)) == 1


def test_a_handoff_to_an_agent_that_takes_nothing_waits_for_a_person(store: Store) -> None:
    hire(store, "coder")
    hire(store, "reviewer")
    do(store, drain_lane, "reviewer")
    root = write(store, "@coder go")
    answer(store, "coder", "[@reviewer: x]")
    (row,) = children(store, root)
    assert (row["status"], status(store, root)) == ("held", "completed")
