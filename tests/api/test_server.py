"""The server: it loses no request, and stops at once."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import time

from tests.api.arrival import until_it_is_read
from tests.api.served import LIMIT, START_SECONDS, Served, serving
from tests.api.stopping import stopped_at_once
from tests.cli.command import PROGRAM, Bullpen
from tests.ports import free_port
from tests.stores import Stores

HELLO = json.dumps({"message": "hello"}).encode()


def _request(served: Served, body: bytes, *more: str) -> bytes:
    lines = (
        "POST /api/message HTTP/1.1",
        f"Host: {served.url.removeprefix('http://')}",
        f"Authorization: Bearer {served.token}",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
        *more,
    )
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def _connect(served: Served) -> socket.socket:
    name, port = served.url.removeprefix("http://").split(":")
    return socket.create_connection((name, int(port)), timeout=LIMIT)


def _statuses(peer: socket.socket, count: int) -> list[bytes]:
    text = b""
    while text.count(b"HTTP/1.1 ") < count or not text.endswith(b"}"):
        chunk = peer.recv(65536)
        assert chunk, text
        text += chunk
    return [part[:3] for part in text.split(b"HTTP/1.1 ")[1:]]


def test_requests_that_come_together_are_all_answered(served: Served) -> None:
    with _connect(served) as peer:
        peer.sendall(_request(served, HELLO) * 5)
        assert _statuses(peer, 5) == [b"200"] * 5


def test_a_request_behind_a_refused_one_is_answered(served: Served) -> None:
    with _connect(served) as peer:
        refused = _request(served, HELLO, "Origin: http://evil.example")
        peer.sendall(refused[: -len(HELLO)])
        assert _statuses(peer, 1) == [b"403"]
        peer.sendall(HELLO + _request(served, HELLO))
        assert _statuses(peer, 1) == [b"200"]


def test_it_stops_at_once_with_idle_connections_open(stores: Stores) -> None:
    def attempt() -> float:
        with serving(stores.settings("sqlite")) as served:
            peers = [_connect(served) for _ in range(20)]
            for peer in peers[:10]:
                peer.sendall(_request(served, HELLO))
                _statuses(peer, 1)
            began = time.monotonic()
            served.process.send_signal(signal.SIGTERM)
            assert served.process.wait(LIMIT) == 0
            took = time.monotonic() - began
            for peer in peers:
                peer.close()
        return took

    assert stopped_at_once(attempt)


def test_it_can_be_stopped_while_it_starts(stores: Stores) -> None:
    settings = stores.settings("sqlite")
    environ = Bullpen(settings.home).environment(BULLPEN_API_PORT=str(free_port()))
    log = settings.home / "api.log"
    with log.open("wb") as out:
        process = subprocess.Popen([*PROGRAM, "run", "api"], env=environ, stdout=out, stderr=out)
    deadline = time.monotonic() + START_SECONDS
    while "Booting worker" not in log.read_text():
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < deadline
    process.send_signal(signal.SIGTERM)
    try:
        assert process.wait(LIMIT) == 0, log.read_text()
    finally:
        process.kill()
    assert "Traceback" not in log.read_text()


def test_a_request_that_is_under_way_is_answered_before_the_end(stores: Stores) -> None:
    with serving(stores.settings("sqlite")) as served, _connect(served) as peer:
        whole = _request(served, HELLO)
        peer.sendall(whole[:-3])
        until_it_is_read(peer)
        served.process.send_signal(signal.SIGTERM)
        peer.sendall(whole[-3:])
        assert _statuses(peer, 1) == [b"404"]  # there is no agent that it could be for
        assert served.process.wait(LIMIT) == 0


def test_each_request_is_a_line_of_the_log_without_what_is_secret(served: Served) -> None:
    served.ask("GET", "/api/me?code=bp_verysecretindeed", headers={"X-Request-Id": "find-me"})
    (line,) = [each for each in served.log.read_text().splitlines() if "find-me" in each]
    assert "method=GET path=/api/me status=200" in line
    assert "key=owner" in line
    assert "verysecret" not in line
    assert served.token not in served.log.read_text()


def test_the_log_can_be_json(stores: Stores) -> None:
    with serving(stores.settings("sqlite"), BULLPEN_LOG_FORMAT="json") as served:
        served.get("/api/me", headers={"X-Request-Id": "find-me"})
        lines = [json.loads(line) for line in served.log.read_text().splitlines()]
        (found,) = [each for each in lines if each.get("request") == "find-me"]
        assert (found["method"], found["path"], found["status"]) == ("GET", "/api/me", 200)
        assert found["logger"] == "bullpen.api.request"


def test_a_path_breaks_no_line_of_the_log(served: Served) -> None:
    served.ask("GET", "/api/x%0aINFO forged", headers={"X-Request-Id": "forger"})
    lines = [line for line in served.log.read_text().splitlines() if "forger" in line]
    assert len(lines) == 1
    assert not any(line.startswith("INFO forged") for line in served.log.read_text().splitlines())


def test_what_is_no_request_is_told_so_in_the_one_shape(served: Served) -> None:
    long = f"GET /{'x' * 9000} HTTP/1.1\r\nHost: x\r\n\r\n".encode()
    for sent in (
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
        b"nonsense\r\n\r\n",
        long,
    ):
        with _connect(served) as peer:
            peer.sendall(sent)
            text = b"".join(iter(lambda peer=peer: peer.recv(65536), b""))  # type: ignore[misc]
        assert text.startswith(b"HTTP/1.1 400 "), text
        error = json.loads(text.partition(b"\r\n\r\n")[2])
        assert error["code"] == "bad_request"
    assert "Traceback" not in served.log.read_text()
