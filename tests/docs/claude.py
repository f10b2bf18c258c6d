"""Stands in for `claude` on pages that show a real provider: a fixed answer to each question."""

import json
import sys
import uuid
from pathlib import Path

DISCOUNT = """\
def total(prices, discount=0):
    return round(sum(prices) * (1 - discount))
"""
CODED = (
    "Done: `total()` takes `discount`, 0 by default. "
    "[@reviewer: Please check the discount in total().]"
)
ANSWERS = (
    (
        "Describe a message queue",
        "A message queue stores work in the order of its arrival until a worker has finished it.",
    ),
    (
        "Message from teammate @coder",
        "The discount is right: the default changes nothing, and the result is rounded to cents.",
    ),
    (
        "Message from teammate @planner",
        CODED,
    ),
    (
        "let @reviewer check it",
        CODED,
    ),
    (
        "Add a discount",
        "One optional argument is enough. [@coder: Add the argument `discount` to total().]",
    ),
)


def show(**event: object) -> None:
    """Print a line as claude does."""
    print(json.dumps(event), flush=True)


def main() -> None:
    """Answer one prompt; the coder's answer changes the file as well."""
    if "--version" in sys.argv:
        print("2.1.197 (Claude Code)")
        return
    prompt = sys.stdin.read()
    answer = next((text for cue, text in ANSWERS if cue in prompt), "pong")
    if answer == CODED:
        Path("shop.py").write_text(DISCOUNT)
    session = str(uuid.uuid4())
    show(type="system", subtype="init", model="claude-opus-4-8", session_id=session)
    show(
        type="result",
        subtype="success",
        is_error=False,
        result=answer,
        session_id=session,
        usage={"input_tokens": 2100, "output_tokens": 31},
        total_cost_usd=0.01,
    )


if __name__ == "__main__":
    main()
