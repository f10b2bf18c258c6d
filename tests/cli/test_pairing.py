"""bullpen pairing: who may write on a channel, decided by the owner at the command line."""

from __future__ import annotations

from bullpen.core.channels.chats import Access, find_chat
from bullpen.core.channels.pairing import request_group, request_pairing
from bullpen.core.channels.senders import Tier, find_tier
from tests.cli.command import Bullpen
from tests.cli.open_store import at_work, company, direct


def ask(bullpen: Bullpen, sender: str, channel: str = "telegram", name: str = "Bob") -> str:
    """The code that an unpaired person gets."""
    with direct(bullpen) as store, store.write() as tx:
        code = request_pairing(tx, channel, sender, name)
    assert code is not None
    return code


def tier(bullpen: Bullpen, sender: str, channel: str = "telegram") -> Tier | None:
    """What a person may do."""
    with direct(bullpen) as store, store.read() as tx:
        return find_tier(tx, channel, sender)


def test_a_person_is_let_in_by_the_code_however_it_is_typed(on_both: Bullpen) -> None:
    code = ask(on_both, "4712")
    waiting = on_both.ok("pairing", "list")
    assert code in waiting.out
    assert "waiting" in waiting.out
    assert "pairing approve" in waiting.err
    typed = f" {code[:4].lower()}-{code[4:].lower()}"
    done = on_both.ok("pairing", "approve", typed, "--tier", "guest")
    assert done.out == "Approved Bob (4712) on telegram as guest.\n"
    assert tier(on_both, "4712") is Tier.GUEST
    assert code not in on_both.ok("pairing", "list").out
    used = on_both("pairing", "approve", code)
    assert (used.status, used.out) == (1, "")
    assert "no pairing request has the code" in used.err


def test_a_group_is_let_in_by_its_code_and_its_access_can_be_changed(on_both: Bullpen) -> None:
    with direct(on_both) as store, store.write() as tx:
        code = request_group(tx, "slack-sage", "C0123456789", "office")
    assert code is not None
    on_both.ok("pairing", "approve", code)
    (group,) = on_both.ok("pairing", "list", "--channel", "slack-sage", "--json").json
    assert (group["kind"], group["tier"], group["name"]) == ("group", "members", "office")
    on_both.ok("pairing", "tier", "slack-sage", "C0123456789", "everyone")
    with direct(on_both) as store, store.read() as tx:
        chat = find_chat(tx, "slack-sage", "C0123456789")
    assert chat is not None
    assert chat.access is Access.EVERYONE
    refused = on_both("pairing", "tier", "slack-sage", "C0123456789", "owner")
    assert refused.status == 2
    assert "the group C0123456789 has no tier" in refused.err
    negative = on_both("pairing", "tier", "telegram", "-1001234", "everyone")
    assert "has the id '-1001234'" in negative.err
    on_both.ok("pairing", "revoke", "slack-sage", "C0123456789")
    assert on_both.ok("pairing", "list", "--json").json == []


def test_a_person_is_blocked_given_another_tier_and_unpaired(bullpen: Bullpen) -> None:
    bullpen.ok("pairing", "approve", ask(bullpen, "4712"))
    assert tier(bullpen, "4712") is Tier.MEMBER
    bullpen.ok("pairing", "block", "telegram", "4712")
    assert tier(bullpen, "4712") is Tier.BLOCKED
    done = bullpen.ok("pairing", "tier", "telegram", "4712", "owner")
    assert "config set owner_channel telegram owner_id 4712" in done.err
    assert tier(bullpen, "4712") is Tier.OWNER
    bullpen.ok("pairing", "revoke", "telegram", "4712")
    assert tier(bullpen, "4712") is None
    gone = bullpen("pairing", "revoke", "telegram", "4712")
    assert (gone.status, gone.out) == (1, "")
    assert "neither a person nor a group has the id '4712' on telegram" in gone.err


def test_a_person_who_has_not_written_can_get_a_tier_and_the_command_says_so(
    bullpen: Bullpen,
) -> None:
    done = bullpen.ok("pairing", "tier", "sms", "+491701234567", "member")
    assert "nobody with the id +491701234567 has written on sms yet" in done.err
    assert tier(bullpen, "+491701234567", "sms") is Tier.MEMBER


def test_the_owner_of_the_settings_cannot_be_blocked_or_unpaired(bullpen: Bullpen) -> None:
    bullpen.ok("config", "set", "owner_channel", "telegram", "owner_id", "4711")
    for verb in ("block", "revoke"):
        refused = bullpen("pairing", verb, "telegram", "4711")
        assert (refused.status, refused.out) == (1, "")
        assert "4711 is owner_id in the settings" in refused.err


def test_a_channel_that_does_not_exist_is_refused_with_a_suggestion(bullpen: Bullpen) -> None:
    for args in (("block", "telegrm", "1"), ("list", "--channel", "telegrm")):
        refused = bullpen("pairing", *args)
        assert refused.status == 1
        assert "Did you mean 'telegram'?" in refused.err
    assert bullpen("pairing", "block", "web", "ann").status == 1


def test_an_empty_list_says_what_comes_next(bullpen: Bullpen) -> None:
    assert "bullpen channel list" in bullpen.ok("pairing", "list").out
    assert bullpen.ok("pairing", "list", "--waiting").out == "No request is waiting.\n"


def test_an_agent_can_let_nobody_in(bullpen: Bullpen) -> None:
    code = ask(company(bullpen), "4712")
    environ = at_work(bullpen, "coder")
    for args in (("list",), ("approve", code), ("tier", "telegram", "4712", "owner")):
        refused = bullpen("pairing", *args, **environ)
        assert refused.status != 0
        assert "may not" in refused.err
    assert tier(bullpen, "4712") is None


def test_codes_channels_and_people_are_completed(bullpen: Bullpen) -> None:
    code = ask(bullpen, "4712")

    def complete(*words: str) -> str:
        line = {"COMP_WORDS": " ".join(("bullpen", *words)), "COMP_CWORD": str(len(words))}
        return bullpen(_BULLPEN_COMPLETE="bash_complete", **line).out

    assert code in complete("pairing", "approve", "")
    assert "telegram" in complete("pairing", "block", "tele")
    assert "4712" in complete("pairing", "block", "telegram", "")
