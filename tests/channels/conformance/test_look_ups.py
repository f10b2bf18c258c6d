"""Look-ups: what became of a part without an answer, when another process has to find it out."""

from __future__ import annotations

import pytest

from bullpen.channels.discord import platform as discord
from tests.channels.conformance.conftest import Account
from tests.channels.conformance.quick import QUICK_MS
from tests.processor.working import eventually


@pytest.mark.parametrize("fault", ["error500", "taken_then_500"])
def test_equal_texts_are_not_confused_by_a_look_up_after_a_restart(
    served: Account, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The receipts of the first one are in the database, so the second is not taken for it."""
    if not served.kind.recovers:
        pytest.skip("the platform has no look-ups")
    monkeypatch.setattr(discord, "NONCE_MS", QUICK_MS)
    first = served.respond("Done.")
    served.ends(first, "acked")
    served.platform.lookup_off()
    served.platform.fail_next(fault)
    second = served.respond("Done.")
    eventually(lambda: served.response(second)["status"] != "pending", "it was sent")
    served.stop()
    served.platform.lookup_on()
    served.start()
    served.ends(second, "acked")
    served.seen("Done.", "Done.")
    assert not served.response(second)["possible_duplicate"]
