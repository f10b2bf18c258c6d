"""The statuses that are in memory: bounded, and lost without harm when the client ends."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from bullpen.channels.failures import OutcomeUnknown
from bullpen.channels.platform import Recovered, Verdict
from bullpen.channels.twilio import inbound
from bullpen.channels.twilio.inbound import Reports
from tests.channels.fakes.twilio import FakeTwilio
from tests.channels.recording import no_note, until
from tests.channels.twilio.accounts import ANN, a_part, receiving, started


def test_the_statuses_in_memory_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inbound, "MAX_REPORTS", 3)
    reports = Reports()
    for number in range(5):
        reports.add(f"bABCD{number}.0", f"SM{number}", "delivered", now=number)
    assert [reports.sid_of(f"bABCD{each}.0", since=0) for each in range(5)] == [
        *("", "", "SM2", "SM3", "SM4")
    ]
    assert reports.is_news("SM0", "sent"), "forgotten"
    assert not reports.is_news("SM4", "sent")


def test_a_part_whose_status_came_before_the_client_ended_is_found_in_the_list(
    sms: FakeTwilio, tmp_path: Path
) -> None:
    part = a_part()

    async def main() -> None:
        async with receiving(sms, tmp_path) as (platform, intake):
            sms.fail("error", "POST */Messages.json", taken=True)
            with pytest.raises(OutcomeUnknown):
                await platform.send(part, no_note)
            await until(lambda: intake.payloads)
        async with started(sms, tmp_path) as another:
            (message,) = sms.sent(ANN)
            assert await another.recover(part) == Recovered(Verdict.FOUND, message.sid)

    asyncio.run(main())
