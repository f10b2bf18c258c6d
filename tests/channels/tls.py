"""TLS on loopback: a certificate for one test, and the end of its connections."""

from __future__ import annotations

import asyncio
import shutil
import ssl
import subprocess
from pathlib import Path
from selectors import BaseSelector

import pytest


def certificate(directory: Path, name: str) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """The context of a server with this name, and that of a client that trusts it."""
    program = shutil.which("openssl")
    if program is None:
        pytest.skip("needs openssl")
    key, public = directory / "key.pem", directory / "certificate.pem"
    subprocess.run(
        [
            *(program, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"),
            *("-nodes", "-days", "2", "-subj", f"/CN={name}"),
            *("-addext", f"subjectAltName=DNS:{name}", "-keyout", str(key), "-out", str(public)),
        ],
        check=True,
        capture_output=True,
    )
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(public, key)
    return server, ssl.create_default_context(cafile=str(public))


async def all_closed(seconds: float = 20.0) -> None:
    """Wait until the loop has no connection left.

    A TLS connection that was closed stays open until the other side has closed it too, and a loop
    that ends before that leaves its socket to the garbage collector.
    """
    selector: BaseSelector = asyncio.get_running_loop()._selector  # type: ignore[attr-defined]
    async with asyncio.timeout(seconds):
        while len(selector.get_map()) > 1:  # the loop's own pipe
            await asyncio.sleep(0.001)
