"""bullpen send: what it takes, whom it writes for, and how it is left."""

from __future__ import annotations

import json
import signal
import stat
import subprocess
from pathlib import Path

import pytest

from bullpen.core.message import Answer, Outcome, Priority
from tests.cli.command import PROGRAM, Bullpen
from tests.cli.open_store import direct
from tests.conformance.verbs import done, rows, statuses

from bullpen.core.models import MESSAGES  # isort: skip


from tests.cli.sending import at_work, claimed, line, office, say, sending

__all__ = ["office"]


def test_the_text_comes_from_standard_input(office: Bullpen) -> None:
    with direct(office) as store:
        office.ok("send", "--agent", "coder", "--no-wait", stdin="one ☃\n")
        office.ok("send", "-", "--agent", "coder", "--no-wait", stdin="two")
        assert [row["message"] for row in rows(store, MESSAGES)] == ["one ☃\n", "two"]
    assert (
        office("send", "-", "--no-wait", stdin="x" * 101, BULLPEN_MESSAGE_BYTES="100").status == 2
    )
    assert office("send", "--no-wait", "--agent", "coder", stdin="").status == 2


def test_words_need_no_quotes_and_options_may_follow_them(office: Bullpen) -> None:
    office.ok("send", "@tester", "fix", "it", "--no-wait", "--priority", "high")
    with direct(office) as store:
        (row,) = rows(store, MESSAGES)
    assert (row["agent"], row["message"], row["priority"]) == ("tester", "fix it", Priority.HIGH)
    assert office("send", "", "--agent", "coder", "--no-wait", stdin="not read").status == 2


@pytest.mark.parametrize(
    ("text", "mention"),
    [
        ("fix @coder this", "coder"),
        ("ask @dev, or @coder", "dev"),
        ("fix @Coder this", "Coder"),
        ("@coder ask @tester", None),
        ("[@coder: ask @tester]", None),
        ("write to ann@coder.com", None),
        ("what is `@coder`?", None),
        ("ask @nobody", None),
    ],
)
def test_a_name_that_addresses_nobody_is_remarked_on(
    office: Bullpen, text: str, mention: str | None
) -> None:
    default = {"BULLPEN_DEFAULT_AGENT": "stranger"}
    sent = office.ok("send", text, "--no-wait", **default)
    note = "the message does not begin with"
    if mention is None:
        assert note not in sent.err
    else:
        assert f"Note: sent to @stranger, the default agent: {note} @{mention}.\n" in sent.err
        assert f"bullpen send '@{mention} ...'" in sent.err
    assert note not in office.ok("send", text, "--no-wait", "-q", **default).err
    assert note not in office.ok("send", text, "--agent", "tester", "--no-wait").err


def test_a_team_a_priority_a_delay_and_a_deadline(office: Bullpen) -> None:
    office.ok("send", "go", "--team", "dev", "--no-wait")
    office.ok("send", "go", "--agent", "coder", "--no-wait", "--priority", "critical")
    office.ok("send", "go", "--agent", "coder", "--no-wait", "--delay", "1h", "--deadline", "2h")
    with direct(office) as store:
        team, urgent, later = rows(store, MESSAGES)
    assert (team["agent"], team["team_id"]) == ("coder", "dev")
    assert urgent["priority"] == Priority.CRITICAL
    assert later["available_at"] - later["created_at"] == 3_600_000
    assert later["deadline"] - later["created_at"] == 7_200_000


@pytest.mark.parametrize(
    "args",
    [
        ("--team", "coder"),
        ("--team", "dev", "--agent", "coder"),
        ("--delay", "soon"),
        ("--deadline", "yesterday"),
        ("--priority", "huge"),
        ("--timeout", "-1"),
        ("--file", "/nowhere/at/all"),
    ],
    ids=" ".join,
)
def test_what_cannot_be_is_refused_and_nothing_is_sent(
    office: Bullpen, args: tuple[str, ...]
) -> None:
    result = office("send", "hello", "--no-wait", *args)
    assert result.status in (1, 2)
    assert result.out == ""
    with direct(office) as store:
        assert rows(store, MESSAGES) == []


def test_files_go_along_as_copies_of_the_homes_own(office: Bullpen, tmp_path: Path) -> None:
    for name, text in (("plan.txt", "a plan"), ("Bild ü.png", "an image")):
        (tmp_path / name).write_text(text)
    office.ok(
        *("send", "look", "--agent", "coder", "--no-wait"),
        *("--file", str(tmp_path / "plan.txt"), "--file", str(tmp_path / "Bild ü.png")),
    )
    with direct(office) as store:
        (row,) = rows(store, MESSAGES)
    plan, image = map(Path, json.loads(row["files"]))
    assert plan.parent == image.parent == office.home / "files"
    assert (plan.read_text(), image.read_text()) == ("a plan", "an image")
    assert plan.name.endswith("_plan.txt")
    assert stat.S_IMODE(plan.stat().st_mode) == 0o600
    office.ok("send", "--agent", "coder", "--no-wait", "--file", str(tmp_path / "plan.txt"))


def test_a_file_that_is_too_large_is_refused_and_nothing_stays(
    office: Bullpen, tmp_path: Path
) -> None:
    (tmp_path / "small").write_text("x")
    (tmp_path / "large").write_text("x" * 101)
    args = ("send", "look", "--no-wait", "--file", str(tmp_path / "small"))
    limit = {"BULLPEN_UPLOAD_BYTES": "100"}
    refused = office(*args, "--agent", "coder", "--file", str(tmp_path / "large"), **limit)
    assert refused.status == 2
    assert "large has more than 100 bytes" in refused.err
    assert office(*args, "--agent", "nobody", **limit).status == 1
    found = [each for each in (office.home / "files").rglob("*") if each.is_file()]
    assert found == []


def test_files_of_an_answer_are_named(office: Bullpen) -> None:
    with at_work(office) as store, sending(office, "@coder draw", "-q") as process:
        claim = claimed(store)
        done(store, claim.token, Outcome(answers=(Answer(message="", files=("/a/b.png",)),)))
        out, _ = process.communicate(timeout=60)
    assert out == "@coder: [file: /a/b.png]\n"


def test_a_reader_that_goes_away_ends_it_without_a_traceback(office: Bullpen) -> None:
    """As `| head -1` does."""
    with at_work(office) as store, sending(office, "[@coder: a] [@tester: b]") as process:
        done(store, claimed(store).token)
        assert line(process.stdout).endswith(": done\n")
        assert process.stdout is not None
        process.stdout.close()
        done(store, claimed(store).token)
        assert process.stderr is not None
        err = process.stderr.read()
        assert process.wait(60) == 1
    assert "Traceback" not in err
    assert "rror" not in err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_without_a_terminal_leaves_and_says_the_id(
    office: Bullpen, number: signal.Signals
) -> None:
    with at_work(office) as store, sending(office, "@coder fix it") as process:
        claim = claimed(store)
        say(store, claim, "reading")
        line(process.stderr)
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (75, "")
    assert f"bullpen queue cancel --conversation {claim.primary.message_id}" in err
    assert [each for each in (office.home / "run").iterdir() if each.suffix == ".sock"] == []
    with direct(office) as store:
        assert statuses(store) == {"processing": 1}


def test_what_nohup_ignores_is_ignored(office: Bullpen) -> None:
    with at_work(office) as store:
        process = subprocess.Popen(
            [*PROGRAM, "send", "@coder fix it"],
            env=office.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
        )
        claim = claimed(store)
        say(store, claim, "reading")
        line(process.stderr)
        process.send_signal(signal.SIGHUP)
        done(store, claim.token)
        out, _ = process.communicate(timeout=60)
    assert (process.returncode, out) == (0, "@coder: done\n")


def test_an_agent_does_not_write_in_a_persons_name(office: Bullpen) -> None:
    refused = office("send", "@tester hello", "--no-wait", BULLPEN_RUN="coder.0")
    assert refused.status == 1
    assert "@coder may not" in refused.err


def test_bytes_are_printed_as_they_are_whatever_the_locale(office: Bullpen) -> None:
    text = "ünï☃ \x1b[31mred"
    with at_work(office) as store:
        process = subprocess.Popen(
            [*PROGRAM, "send", "@coder say", "-q"],
            env=office.environment(
                LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0", PYTHONIOENCODING="ascii"
            ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
        )
        claim = claimed(store)
        done(store, claim.token, Outcome(answers=(Answer(message=text),)))
        out, _ = process.communicate(timeout=60)
    assert out.decode() == f"@coder: {text}\n"
    assert process.returncode == 0
