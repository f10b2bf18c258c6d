"""Progress where a chat shows one thing, such as typing: one request for all of its messages."""

from __future__ import annotations

from bullpen.channels.platform import Address, Progress, Stage
from bullpen.channels.progress import one_for_each_place


def progress(message: int, stage: Stage = Stage.QUEUED, *, chat: str = "C1") -> Progress:
    """The progress of a message."""
    return Progress(to=Address(chat=chat, message=str(message)), stage=stage)


def test_the_messages_of_a_chat_are_shown_by_one_request() -> None:
    due = [progress(each) for each in range(100)]
    assert one_for_each_place(due) == [progress(99)]


def test_a_running_message_is_shown_before_those_that_wait_or_have_ended() -> None:
    due = [progress(1), progress(2, Stage.WORKING), progress(3), progress(4, Stage.DONE)]
    assert one_for_each_place(due) == [progress(2, Stage.WORKING)]


def test_each_chat_is_shown() -> None:
    due = [progress(1), progress(2, chat="C2")]
    assert one_for_each_place(due) == due
