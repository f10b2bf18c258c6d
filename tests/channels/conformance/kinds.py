"""The channels under test, and what each platform has."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tests.channels.fakes.channels import FAKES
from tests.channels.fakes.harness import Harness
from tests.channels.fakes.mail_harness import mailbox


@dataclass(frozen=True)
class Kind:
    """One channel under test."""

    channel: str
    groups: bool = True
    """Whether it has groups."""
    edits: bool = True
    recovers: bool = True
    """Whether an unknown part can be looked up."""
    acknowledges: bool = True
    """Whether the platform gets an acknowledgement of each message."""

    @contextmanager
    def make(self) -> Iterator[Harness]:
        """A fake of the platform."""
        fake = FAKES[self.channel]
        with fake.platform() as platform:
            yield fake.harness(platform)


class EmailKind(Kind):
    """The e-mail example, a channel of another package."""

    @contextmanager
    def make(self) -> Iterator[Harness]:
        with mailbox() as harness:
            yield harness


KINDS = {
    each.channel: each
    for each in (
        Kind("slack"),
        Kind("sms", groups=False, edits=False),
        Kind("whatsapp", groups=False, edits=False),
        Kind("discord", acknowledges=False),
        Kind("telegram", recovers=False),
    )
}

EMAIL = EmailKind("email", groups=False, edits=False, acknowledges=False)
"""It shows that the contract is enough for other packages, in the tests of EMAIL_TESTS."""

EMAIL_TESTS = frozenset(
    {
        "test_a_message_is_stored_with_its_author_place_and_time",
        "test_a_message_that_comes_again_by_every_way_is_one_message",
        "test_an_answer_goes_back_to_where_the_question_came_from",
        "test_what_was_written_while_the_platform_was_not_reachable_is_taken_in_once",
        "test_what_was_written_while_bullpen_was_stopped_is_taken_in_once",
        "test_a_stranger_costs_one_row_and_one_reply_an_hour",
        "test_a_refused_part_is_dead_and_the_next_goes_on",
        "test_an_unknown_part_is_looked_up_and_arrives_once",
        "test_a_revoked_token_is_a_state_that_is_told_once",
        "test_a_file_is_a_part_of_its_own_after_the_text",
        "test_a_part_that_was_not_sent_is_sent_again",
        "test_what_one_payload_breaks_does_not_stop_the_next",
    }
)

EMAIL_FAULTS = ("close", "taken_then_500")
"""The faults of a send after which its outcome is unknown, as far as SMTP has them."""
