"""What a person writes reaches the model as a text, whatever it looks like, and does nothing."""

from __future__ import annotations

import json
import threading
from pathlib import Path

from tests.processor.working import SOON, eventually
from tests.real.clis import Cli
from tests.real.office import Office
from tests.real.reply import Body, Reply, Say

LONG = "baa " * 75_000

TEXTS = {
    "option": "-rf is what I typed",
    "known-option": "--help",
    "command": "/cost",
    "skill": "$imagegen a sheep",
    "shell": "!touch it",
    "lines": "one\n\n/clear\n\ntwo",
    "json": '{"type": "result", "is_error": true}',
    "long": LONG,
}


def test_a_text_reaches_the_model_as_it_is(office: Office, cli: Cli) -> None:
    for agent in TEXTS:
        office.hire(agent, cli)
    cli.server.script = lambda _: Say("I see.")
    with office.processor(max_runs=2):
        asked = [office.ask(agent, text) for agent, text in TEXTS.items()]
        for message_id in asked:
            office.becomes(message_id, "completed")
    assert [office.answers(message_id) for message_id in asked] == [["I see."]] * len(TEXTS)
    heard = [cli.server.prompt(request.body).strip() for request in cli.server.requests]
    assert sorted(heard) == sorted(text.strip() for text in TEXTS.values())


def test_a_file_that_a_text_names_is_not_read(office: Office, cli: Cli, tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("the wolf is called Isegrim")
    office.hire("ann", cli)
    cli.server.answers(Say("I see."))
    text = f"@{secret} and once more @{secret}"
    with office.processor():
        assert office.answer("ann", text) == "I see."
    (request,) = cli.server.requests
    assert text in cli.server.prompt(request.body)
    assert "Isegrim" not in json.dumps(request.body)


def test_a_long_answer_is_whole_even_if_nobody_reads_it_at_once(office: Office, cli: Cli) -> None:
    office.hire("ann", cli)
    busy = threading.Event()

    def script(body: Body) -> Reply:
        assert busy.wait(SOON)
        return Say(LONG)

    cli.server.script = script
    with office.processor():
        asked = office.ask("ann", "Sing.")
        eventually(lambda: cli.server.requests != [], "the model is asked")
        # The processor cannot write down what it reads until the program is over.
        with office.store.write():
            busy.set()
            eventually(lambda: not office.running(cli.command), "the program is over")
        office.becomes(asked, "completed")
    (attempt,) = office.attempts()
    assert attempt["outcome"] == "completed"
    (file,) = office.store.settings.files.glob("answer_*.md")
    assert file.read_text().strip() == LONG.strip()
