"""A response that no part can be made of is tried as often as any other, and stops no other."""

from __future__ import annotations

from sqlalchemy import bindparam, update

from bullpen.core.models import RESPONSES
from bullpen.core.store.statement import Statement
from tests.channels.conformance.conftest import Account
from tests.processor.working import eventually

ONE_CHANNEL: dict[str, str] = {}

SET_FILES: Statement[None] = Statement(
    lambda: (
        update(RESPONSES)
        .where(RESPONSES.c.id == bindparam("response"))
        .values(files=bindparam("names"))
    )
)


def test_an_error_before_the_first_part_counts_as_an_attempt(stopped: Account) -> None:
    poison = stopped.respond("with a broken list of files")
    with stopped.store.write() as tx:
        tx.write(SET_FILES, {"response": poison, "names": "no list"})
    stopped.start()
    stopped.up()
    stopped.ends(stopped.respond("to another person", 2), "acked")

    def is_tried_again() -> bool:
        return int(stopped.response(poison)["delivery_attempts"]) > 1

    eventually(is_tried_again, "the second attempt")
    assert not stopped.posts()
