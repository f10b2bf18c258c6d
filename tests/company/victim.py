"""A processor that kills itself with SIGKILL when a run comes to the named step."""

from __future__ import annotations

import importlib
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

STEPS: dict[str, tuple[str, str, bool]] = {
    # step: (module, function, whether it dies after it and not before)
    "claimed": ("bullpen.processor.runs.Runs", "start", False),
    "briefed": ("bullpen.processor.execute", "load_context", True),
    "furnished": ("bullpen.processor.context", "write_templates", True),
    "before the child": ("bullpen.processor.children.child.Launcher", "start", False),
    "the child started": ("bullpen.processor.children.child.Launcher", "start", True),
    "the first line": ("bullpen.processor.providers.claude.ClaudeReader", "line", True),
    "something was said": ("bullpen.processor.progress.Progress", "take", True),
    "the child ended": ("bullpen.processor.providers.claude.ClaudeReader", "close", True),
    "before the answer is stored": ("bullpen.processor.execute", "complete", False),
    "before its commit": ("bullpen.processor.execute", "save_session", True),
    "after its commit": ("bullpen.processor.execute.RunExecutor", "_store_with_retry", True),
}


def arm(step: str) -> None:
    """Die at this step."""
    where, name, after = STEPS[step]
    owner = find_owner(where)
    real: Callable[..., Any] = getattr(owner, name)

    def dying(*given: Any, **more: Any) -> Any:  # noqa: ANN401 - whatever it is
        if not after:
            os.kill(os.getpid(), signal.SIGKILL)
        result = real(*given, **more)
        os.kill(os.getpid(), signal.SIGKILL)
        return result

    setattr(owner, name, dying)


def find_owner(where: str) -> Any:  # noqa: ANN401 - a module or a class
    """The module or the class of this name."""
    try:
        return importlib.import_module(where)
    except ModuleNotFoundError:
        module, _, name = where.rpartition(".")
        return getattr(importlib.import_module(module), name)


if __name__ == "__main__":
    from bullpen.cli.main import main

    arm(sys.argv.pop(1))
    main()
