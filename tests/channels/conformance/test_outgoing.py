"""Responses arrive once, whole and in order, and the error of a send decides what follows."""

from __future__ import annotations

import asyncio
import time

import pytest

from bullpen.channels import Note, NotSent, Platform, Recovered, Sending, Verdict, client
from bullpen.channels.outgoing import delivering
from bullpen.core.outbox.delivery import begin_part, mark_unknown
from bullpen.core.outbox.leases import expire_leases, lease_responses
from bullpen.core.outbox.manage import retry_response
from bullpen.core.outbox.parts import SendingPart
from bullpen.core.outbox.recovery import lease_unknown
from tests.channels.conformance.conftest import Account, receipts
from tests.channels.served import AGENT
from tests.processor.working import eventually

LONG = "\n\n".join(f"Paragraph {each}: " + "words and more words " * 30 for each in range(40))
LOST = ("close", "reset", "half", "hang", "error500", "html", "taken_then_500")
"""Faults after which nobody knows whether the platform took the part."""


def together(texts: list[str]) -> str:
    """Texts without what may differ between two splits."""
    return "".join("".join(texts).split())


def test_a_response_is_one_part_and_acked(served: Account) -> None:
    id_ = served.respond("hello")
    assert receipts(served.ends(id_, "acked"))[0]["upto"] == 5
    served.seen("hello")


def test_responses_of_one_chat_arrive_in_order(served: Account) -> None:
    texts = [f"number {each}" for each in range(12)]
    for each in texts:
        served.respond(each)
    served.seen(*texts)


def test_a_long_text_arrives_whole_in_several_parts(served: Account) -> None:
    id_ = served.respond(LONG)
    row = served.ends(id_, "acked")
    assert row["parts_sent"] == len(served.posts()) > 1
    assert together(served.posts()) == together([LONG])
    ends = [int(str(each["upto"])) for each in receipts(row)]
    assert ends == sorted(ends)


@pytest.mark.parametrize("looked_up", [False, True], ids=["sending", "looked up"])
def test_what_a_killed_client_was_sending_is_not_overtaken(
    stopped: Account, looked_up: bool
) -> None:
    if not stopped.kind.recovers:
        pytest.skip("nobody can find out whether it was sent")
    ids = [stopped.respond(each) for each in ("first", "second", "third")]
    with stopped.store.write() as tx:
        (first,) = lease_responses(tx, stopped.channel, "killed", 1)
        begin_part(tx, first.claim_token or "", SendingPart(0, upto=5, last=True))
        if looked_up:
            mark_unknown(tx, first.claim_token or "", "the platform did not answer")
            lease_unknown(tx, stopped.channel, "killed")
        expire_leases(tx, stopped.channel, ["killed"])
    stopped.start()
    stopped.ends(ids[-1], "acked")
    stopped.seen("first", "second", "third")


def test_a_rate_limit_holds_one_chat_and_nothing_else(served: Account) -> None:
    served.platform.fail_next("rate_limit", seconds=2.0)
    first = served.respond("first")
    eventually(lambda: "wait" in (served.response(first)["last_error"] or ""), "it is limited")
    second = served.respond("second")
    other = served.respond("other", number=2)
    served.ends(other, "acked")
    assert served.response(first)["status"] == "pending"
    served.ends(second, "acked")
    served.seen("first", "second")
    assert served.response(first)["delivery_attempts"] == 1


def test_a_part_that_was_not_sent_is_sent_again(served: Account) -> None:
    served.platform.fail_next("refuse", seconds=1.0)
    id_ = served.respond("hello")
    served.ends(id_, "acked")
    served.seen("hello")


def test_a_refused_part_is_dead_and_the_next_goes_on(served: Account) -> None:
    served.platform.fail_next("refused")
    first = served.respond("first")
    second = served.respond("second")
    assert served.ends(first, "dead")["last_error"]
    served.ends(second, "acked")
    served.seen("second")


@pytest.mark.parametrize("fault", LOST)
def test_an_unknown_part_is_looked_up_and_arrives_once(
    served: Account, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not served.kind.recovers:
        pytest.skip("the platform has no look-ups")
    monkeypatch.setattr(type(served.client_platform()), "send_seconds", 2.0)
    served.platform.fail_next(fault)
    first = served.respond("first")
    second = served.respond("second")
    served.ends(first, "acked")
    served.ends(second, "acked")
    served.seen("first", "second")
    assert not served.response(first)["possible_duplicate"]


def test_what_nobody_can_tell_stays_unknown_and_is_labelled_when_retried(served: Account) -> None:
    if served.kind.recovers:
        pytest.skip("the platform has look-ups")
    served.platform.fail_next("taken_then_500")
    id_ = served.respond("hello")
    served.ends(id_, "unknown")
    served.seen("hello")
    other = served.respond("next")
    served.ends(other, "acked")
    with served.store.write() as tx:
        retry_response(tx, id_)
    served.ends(id_, "acked")
    assert "possible duplicate" in served.posts()[-1]


def test_ha_64238_part_one_is_not_sent_again_when_part_two_fails(served: Account) -> None:
    served.stop()
    id_ = served.respond(LONG)
    sent = 0
    right = delivering.Deliverer._send_within

    async def second_fails(self: delivering.Deliverer, sending: object, note: object) -> str:
        nonlocal sent
        sent += 1
        if sent == 2:
            raise NotSent("the second part is not sent")
        return await right(self, sending, note)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(delivering.Deliverer, "_send_within", second_fails)
        served.start()
        served.ends(id_, "acked")
    assert together(served.posts()) == together([LONG])


def test_part_one_is_not_sent_again_after_an_upgrade_that_splits_otherwise(
    served: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    platform = type(served.client_platform())
    right = platform.fits
    sent = 0
    send = delivering.Deliverer._send_within

    async def only_one(self: delivering.Deliverer, sending: object, note: object) -> str:
        nonlocal sent
        sent += 1
        if sent > 1:
            raise NotSent("the old release is stopped")
        return await send(self, sending, note)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(delivering.Deliverer, "_send_within", only_one)
        id_ = served.respond(LONG)
        eventually(lambda: served.response(id_)["parts_sent"] == 1, "one part is sent")
        served.stop()
    monkeypatch.setattr(
        platform, "fits", lambda self, text: right(self, text) and text.length < 700
    )
    served.start()
    served.ends(id_, "acked")
    assert together(served.posts()) == together([LONG])


def test_a_file_is_a_part_of_its_own_after_the_text(served: Account) -> None:
    place = served.store.settings.workspace / AGENT
    place.mkdir(parents=True, exist_ok=True)
    (place / "report.txt").write_text("all is well")
    id_ = served.respond("see the file", files=(str(place / "report.txt"),))
    served.ends(id_, "acked")
    parts = served.platform.parts(served.direct())
    assert [bool(each.file) for each in parts] == [False, True], parts


def test_a_file_that_is_gone_is_said_in_words(served: Account) -> None:
    place = served.store.settings.workspace / AGENT
    place.mkdir(parents=True, exist_ok=True)
    (place / "report.txt").write_text("all is well")
    served.stop()
    id_ = served.respond("see the file", files=(str(place / "report.txt"),))
    (place / "report.txt").unlink()
    served.start()
    served.ends(id_, "acked")
    assert "does not exist" in served.posts()[-1]


def test_a_revoked_token_is_a_state_that_is_told_once(
    served: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However often it is tried again, and by however many processes."""
    if served.channel == "email":
        pytest.skip("its IMAP server accepts the old password, so each attempt connects")
    monkeypatch.setattr(client, "DOWN_SECONDS", (0.1,))
    served.platform.fail_next("revoked")
    id_ = served.respond("hello")
    for _ in range(2):
        eventually(lambda: served.state()[0] == "down", f"it is down: {served.state()}")
        assert served.state()[1]
        eventually(lambda: bool(notices(served)), "the notice")
        time.sleep(0.5)  # some attempts
        assert len(notices(served)) == 1
        assert served.response(id_)["status"] == "pending"
        assert not served.ended.is_set()
        served.stop()
        assert served.state()[0] == "stopped"
        served.start()


def notices(served: Account) -> list[str]:
    """The notices to the owner."""
    return [each["message"] for each in served.responses() if each["channel"] == "cli"]


def test_waiting_behind_slow_sends_counts_no_attempt(
    served: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = delivering.Deliverer._send_within

    async def slow(self: delivering.Deliverer, sending: Sending, note: Note) -> str:
        await asyncio.sleep(0.6)  # seven of them last longer than a lease
        return await right(self, sending, note)

    monkeypatch.setattr(delivering.Deliverer, "_send_within", slow)
    texts = [f"number {each}" for each in range(7)]
    ids = [served.respond(each) for each in texts]
    for each in ids:
        served.ends(each, "acked")
    served.seen(*texts)
    assert [served.response(each)["delivery_attempts"] for each in ids] == [1] * len(ids)


def test_a_retry_before_the_look_up_holds_up_nobody(
    served: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def later(self: Platform, sending: Sending) -> Recovered:
        return Recovered(Verdict.LATER)

    monkeypatch.setattr(type(served.client_platform()), "recover", later)
    served.platform.fail_next("error500")
    first = served.respond("first")
    served.ends(first, "unknown")
    second = served.respond("second")
    with served.store.write() as tx:
        retry_response(tx, first)
    served.ends(first, "acked")
    served.ends(second, "acked")
    assert [each.split()[-1] for each in served.posts()] == ["first", "second"]
