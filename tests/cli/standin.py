#!/usr/bin/env python3
"""Stands in for `claude`: says `pong` to whoever has the right key and asks for a known model."""

import json
import os
import sys

GOOD = "sk-good"


def show(**event: object) -> None:
    """Print a line as claude does."""
    print(json.dumps(event), flush=True)


def option(*names: str) -> str:
    """What stands behind one of these options."""
    found = [sys.argv[at + 1] for at, each in enumerate(sys.argv) if each in names]
    return found[0] if found else ""


def main() -> None:
    """One run."""
    if "--version" in sys.argv:
        print("9.9.9 (Stand-in)")
        return
    names = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN")
    keys = {os.environ.get(name) for name in names}
    session = option("--session-id", "--resume")
    sys.stdin.read()
    show(type="system", subtype="init", model="stand-in", session_id=session)
    wrong = "Invalid API key · Please run /login" if GOOD not in keys else ""
    if option("--model") == "unheard-of":
        wrong = "the model unheard-of does not exist"
    if not wrong:
        show(type="assistant", message={"content": [{"type": "text", "text": "pong"}]})
    show(
        type="result",
        subtype="success",
        is_error=bool(wrong),
        result=wrong or "pong",
        session_id=session,
        usage={"input_tokens": 3, "output_tokens": 2},
        total_cost_usd=0.01,
    )
    sys.exit(1 if wrong else 0)


main()
