"""Answers in capitals. Imported by the processor alone, when an agent first needs it."""

from __future__ import annotations

from bullpen import Failure, Launcher, Reply, ReportProgress, RunRequest, Settings, Stop, Usage


class Shout:
    """The provider `shout`."""

    def __init__(self, settings: Settings, launcher: Launcher) -> None:
        """A provider that starts programs keeps the launcher; this one needs neither."""

    def run(
        self, request: RunRequest, stop: Stop, report: ReportProgress
    ) -> Reply | Failure | None:
        """Answer the request's messages; None if it was stopped before there was an answer."""
        if stop.is_set():
            return None
        report("taking a deep breath")
        return Reply(text=request.prompt.upper(), usage=Usage(provider="shout", model="lungs"))
