"""The examples are packages that work: a provider answers people who write e-mails."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

import pytest

from tests.channels.fakes.mail import PASSWORD, MailServer
from tests.cli.command import PROGRAM, Bullpen, Result
from tests.cli.conftest import remove, stop_all
from tests.ports import free_port
from tests.processor.working import eventually

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
LIMIT_SECONDS = 120.0

Service: TypeAlias = "dict[str, object]"


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The examples, installed into a directory as pip would, without the network."""
    target = tmp_path_factory.mktemp("packages")
    uv = (sys.executable, "-m", "uv", "pip", "install", "--quiet", "--offline", "--no-deps")
    subprocess.run(
        [
            *(*uv, "--no-build-isolation", "--python", sys.executable, "--target", str(target)),
            *(str(EXAMPLES / f"bullpen-{each}") for each in ("shout", "email", "offhours")),
        ],
        env={**os.environ, "UV_CACHE_DIR": str(tmp_path_factory.mktemp("uv"))},
        check=True,
        timeout=LIMIT_SECONDS,
    )
    return target


@pytest.fixture
def home(packages: Path) -> Iterator[Bullpen]:
    """The command in a new home, where these packages are installed. Its path has a blank in it."""
    path = Path(tempfile.mkdtemp(prefix="bp x-", dir="/tmp"))
    try:
        yield Bullpen(
            path,
            {
                "BULLPEN_API_PORT": str(free_port()),
                "PYTHONPATH": os.pathsep.join([str(packages), *filter(None, sys.path)]),
            },
        )
    finally:
        stop_all(path)
        remove(path)


def run(bullpen: Bullpen, *args: str, **more: str) -> Result:
    """Run a command in a process of its own, which finds the packages, and must succeed."""
    done = subprocess.run(
        [*PROGRAM, *args],
        env=bullpen.environment(**more),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
    )
    assert done.returncode == 0, done
    return Result(done.returncode, done.stdout, done.stderr)


def services(bullpen: Bullpen) -> dict[str, Service]:
    """The services as `bullpen status` shows them."""
    return {each["name"]: each for each in bullpen("status", "--json").json["services"]}


@pytest.fixture
def mail() -> Iterator[MailServer]:
    """The mail server of the bot's domain."""
    with MailServer() as server:
        yield server


def add_accounts(home: Bullpen, *accounts: tuple[str, dict[str, str]]) -> None:
    """Add the settings of accounts to the file of settings."""
    path = home.home / "settings.toml"
    if not path.exists():
        home.ok("config", "set", "api_processes", "1")
    with path.open("a") as file:
        for name, settings in accounts:
            lines = [f"{key} = {json.dumps(value)}" for key, value in settings.items()]
            file.write("\n".join([f"[{name}]", *lines, ""]))


def received(mail: MailServer, *texts: str) -> None:
    """Wait until people have received these mails, and no others."""

    def got() -> list[str]:
        return [" ".join(each.get_content().split()) for each in mail.sent]

    eventually(lambda: len(mail.sent) >= len(texts), f"{texts[-1]}", LIMIT_SECONDS)
    assert got() == list(texts)


def test_a_packages_provider_answers_on_a_packages_channel(home: Bullpen, mail: MailServer) -> None:
    ann = "ann@example.org"
    add_accounts(home, ("email", {**mail.settings, "default_agent": "loud"}))
    run(home, "up")
    run(home, "agent", "add", "loud", "--provider", "shout")
    assert "HELLO, YOU" in run(home, "send", "@loud hello, you").out
    run(home, "doctor", "--only", "plugin")
    assert "offhours" in run(home, "report", "list").out

    first = mail.write(ann, "hello")
    eventually(lambda: bool(mail.sent), "the pairing code", LIMIT_SECONDS)
    told = mail.sent.pop()
    assert (told["To"], told["In-Reply-To"], told["Subject"]) == (ann, first, "Re: Hello")
    (code,) = re.findall(r"pairing approve (\w+)", told.get_content())
    home.ok("pairing", "approve", code)
    received(mail, "You are now paired with Bullpen. Send a message to begin.")
    mail.sent.clear()

    # What must not be answered arrives before what is.
    for headers in (
        {"Auto-Submitted": "auto-replied"},
        {"Precedence": "bulk"},
        {"List-Id": "<news.example.org>"},
        {"Return-Path": "<>"},
    ):
        mail.write(ann, "I am on holiday", headers=headers)
    mail.write(ann, "forged", results="dmarc=fail header.from=example.org")
    question = mail.write(ann, "@loud one", subject="Numbers")
    received(mail, "ONE")
    (answer,) = mail.sent
    assert (answer["In-Reply-To"], answer["References"]) == (question, f"{question} {question}")
    assert (answer["Subject"], answer["Auto-Submitted"]) == ("Re: Numbers", "auto-replied")
    mail.write(ann, f"two\n\nOn Friday, Bot wrote:\n> {answer.get_content()}", reply_to=answer)
    received(mail, "ONE", "TWO")
    assert question in mail.sent[1]["References"]

    os.kill(int(str(services(home)["email"]["pid"])), signal.SIGKILL)
    mail.write(ann, "@loud three")
    received(mail, "ONE", "TWO", "THREE")

    mail.lost_answers = 1
    run(home, "response", "send", "--channel", "email", "--to", ann, "four")
    # Its chat waits until the look-up has ended.
    unknown = ("response", "list", "--state", "unknown", "--error", "cannot tell", "-q")
    eventually(lambda: bool(home.ok(*unknown).out.strip()), "its outcome is unknown", 60)
    home.ok("response", "retry", home.ok(*unknown).out.strip())
    received(mail, "ONE", "TWO", "THREE", "four", "(possible duplicate) four")
    assert mail.sent[3]["Message-ID"] == mail.sent[4]["Message-ID"]
    run(home, "down")
    log = (home.home / "logs" / "email.log").read_text()
    assert "Traceback" not in log
    assert PASSWORD not in log
    assert log.rstrip().endswith("has stopped")


def test_a_channel_is_left_out_until_its_settings_are_there(home: Bullpen) -> None:
    done = subprocess.run(
        [*PROGRAM, "run", "channel", "email"],
        env=home.environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
    )
    assert done.returncode != 0
    assert "needs the setting email.address" in done.stderr
    assert "BULLPEN_EMAIL_ADDRESS" in done.stderr


def test_an_account_that_is_set_up_while_bullpen_runs_is_started_without_a_restart(
    home: Bullpen, mail: MailServer
) -> None:
    run(home, "up")
    before = {name: each["pid"] for name, each in services(home).items()}
    assert not any(each.startswith("email") for each in before)
    add_accounts(home, ("email", mail.settings), ("email-office", mail.settings))
    run(home, "up")
    now = services(home)
    assert {name: now[name]["pid"] for name in before} == before
    assert {now[each]["state"] for each in ("email", "email-office")} == {"RUNNING"}
    add_accounts(home, ("email-lab", mail.settings))
    assert "email-lab" in run(home, "restart", "email-lab").out
    assert services(home)["email-lab"]["state"] == "RUNNING"
    run(home, "restart")
    assert {"email", "email-office", "email-lab"} <= services(home).keys()
    assert PASSWORD not in (home.home / "logs" / "email.log").read_text()
