"""A certificate for a name on loopback, made for one test."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from pathlib import Path

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
