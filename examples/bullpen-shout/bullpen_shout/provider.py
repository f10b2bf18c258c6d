"""The provider `shout`. Only the processor imports it, when an agent first needs it."""

from __future__ import annotations

from bullpen import Failure, Launcher, Reply, ReportProgress, RunRequest, Settings, Stop, Usage


class Shout:
    """Answers in capitals."""

    def __init__(self, settings: Settings, launcher: Launcher) -> None:
        """A provider that starts programs keeps the launcher; this one needs neither."""

    def run(
        self, request: RunRequest, stop: Stop, report: ReportProgress
    ) -> Reply | Failure | None:
        """Answer the request's messages; None if it was stopped before there was an answer."""
        if stop.is_set():
            return None
        report("writing in capitals")
        return Reply(text=request.prompt.upper(), usage=Usage(provider="shout", model="lungs"))
