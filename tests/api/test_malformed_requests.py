"""What is not exactly a request is refused: no proxy may read it another way than Bullpen."""

from __future__ import annotations

import pytest

from tests.api.served import Served
from tests.api.wire import answer_of, dial, head

JSON = "Content-Type: application/json"
CHUNKED = "Transfer-Encoding: chunked"


def _posted(served: Served, *lines: str, body: bytes = b"") -> bytes:
    return head(served, "POST", "/api/message", JSON, *lines) + body


def _malformed(served: Served) -> dict[str, bytes]:
    get = head(served, "GET", "/api/me")
    line, rest = get.split(b"\r\n", 1)
    good = b"2\r\n{}\r\n0\r\n\r\n"

    def chunked(body: bytes) -> bytes:
        return _posted(served, CHUNKED, body=body)

    def with_line(text: bytes) -> bytes:
        return get[:-2] + text + b"\r\n\r\n"

    def coded(text: bytes) -> bytes:
        return _posted(served)[:-2] + b"Transfer-Encoding:" + text + b"\r\n\r\n" + good

    return {
        "line feeds alone end the lines": get.replace(b"\r\n", b"\n") + b"\r\n\r\n",
        "a line feed alone ends one": with_line(b"X: a\nY: b"),
        "a bare carriage return": with_line(b"X: a\rb"),
        "a NUL": with_line(b"X: a\0b"),
        "a space before the colon": with_line(b"X : a"),
        "no name": with_line(b": a"),
        "no colon": with_line(b"X"),
        "a folded line": with_line(b"X: a\r\n b"),
        "a folded first line": line + b"\r\n X: a\r\n" + rest,
        "two spaces": get.replace(b"GET /", b"GET  /", 1),
        "a tab": get.replace(b"GET /", b"GET\t/", 1),
        "a later version": get.replace(b"HTTP/1.1", b"HTTP/2.0", 1),
        "no version": get.replace(b" HTTP/1.1", b"", 1),
        "two hosts": with_line(b"Host: localhost"),
        "no host": get.replace(b"Host: 127.0.0.1\r\n", b"", 1),
        "two lengths": _posted(served, "Content-Length: 2", "Content-Length: 2", body=b"{}"),
        "a list of lengths": _posted(served, "Content-Length: 2, 2", body=b"{}"),
        "a signed length": _posted(served, "Content-Length: +2", body=b"{}"),
        "a length with an underline": _posted(served, "Content-Length: 0_2", body=b"{}"),
        "a negative length": _posted(served, "Content-Length: -2", body=b"{}"),
        "no length": _posted(served, "Content-Length:", body=b"{}"),
        "a superscript length": _posted(served)[:-2] + b"Content-Length: \xb2\r\n\r\n{}",
        "a length and chunks": _posted(served, "Content-Length: 2", CHUNKED, body=good),
        "chunks and a length": _posted(served, CHUNKED, "Content-Length: 2", body=good),
        "chunked twice": _posted(served, CHUNKED, CHUNKED, body=good),
        "chunked, chunked": _posted(served, "Transfer-Encoding: chunked, chunked", body=good),
        "compressed": _posted(served, "Transfer-Encoding: gzip, chunked", body=good),
        "identity": _posted(served, "Transfer-Encoding: identity", body=b"{}"),
        "chunks in HTTP/1.0": chunked(good).replace(b"HTTP/1.1", b"HTTP/1.0", 1),
        **{f"{c!r} before chunked": coded(c + b"chunked") for c in (b"\x0b", b"\x0c", b"\x85")},
        "a no-break space before chunked": coded(b"\xa0chunked"),
        "a no-break space after chunked": coded(b"chunked\xa0"),
        "a line feed in an extension": chunked(b"2;a\nb\r\n{}\r\n0\r\n\r\n"),
        "a carriage return in an extension": chunked(b"2;a\rb\r\n{}\r\n0\r\n\r\n"),
        "a chunk's line that a line feed ends": chunked(b"2\n{}\r\n0\r\n\r\n"),
        "a chunk that a line feed ends": chunked(b"2\r\n{}\n0\r\n\r\n"),
        "a chunk that is longer": chunked(b"2\r\n{} \r\n0\r\n\r\n"),
        "a chunk's size with 0x": chunked(b"0x2\r\n{}\r\n0\r\n\r\n"),
        "a chunk's size with a sign": chunked(b"+2\r\n{}\r\n0\r\n\r\n"),
        "a chunk's size with a space before": chunked(b" 2\r\n{}\r\n0\r\n\r\n"),
        "a chunk's endless size": chunked(b"0" * 9000 + b"2\r\n{}\r\n0\r\n\r\n"),
        "an endless extension": chunked(b"2;" + b"a" * 90000 + b"\r\n{}\r\n0\r\n\r\n"),
        "a trailer without a colon": chunked(b"2\r\n{}\r\n0\r\nnonsense\r\n\r\n"),
        "a trailer with a space before the colon": chunked(b"2\r\n{}\r\n0\r\nX : a\r\n\r\n"),
        "a folded trailer": chunked(b"2\r\n{}\r\n0\r\nX: a\r\n b\r\n\r\n"),
        "a trailer that a line feed ends": chunked(b"2\r\n{}\r\n0\r\nX: a\n\r\n\r\n"),
        "an endless trailer": chunked(b"2\r\n{}\r\n0\r\n" + b"X: a\r\n" * 90000 + b"\r\n"),
        "an endless head": get[:-2] + b"X: a\r\n" * 90000 + b"\r\n",
        "an endless line": get[:-2] + b"X: " + b"a" * 500_000,
        "an endless request line": b"GET /" + b"a" * 500_000,
    }


def test_a_malformed_request_is_refused_and_its_connection_closed(served: Served) -> None:
    for what, sent in _malformed(served).items():
        with dial(served) as peer:
            peer.sendall(sent)
            status, error = answer_of(peer)
            assert (status, error["code"]) == (400, "bad_request"), what
    assert "Traceback" not in served.log.read_text()


@pytest.mark.parametrize("pause", [False, True])
def test_what_is_unusual_and_allowed_is_taken(served: Served, pause: bool) -> None:
    text = b'{"message": "hello", "agent": "worker"}'
    size = b"%x" % len(text)
    for what, body in {
        "one chunk": size + b"\r\n" + text + b"\r\n0\r\n\r\n",
        "capitals": size.upper() + b"\r\n" + text + b"\r\n0\r\n\r\n",
        "zeros before": b"000" + size + b"\r\n" + text + b"\r\n000\r\n\r\n",
        "an extension": size + b' ;a=b;c="d e"\r\n' + text + b"\r\n0;x\r\n\r\n",
        "a trailer": size + b"\r\n" + text + b"\r\n0\r\nX-Sum: 7\r\nY:\r\n\r\n",
        "two chunks": b"1\r\n{\r\n" + b"%x\r\n" % (len(text) - 1) + text[1:] + b"\r\n0\r\n\r\n",
    }.items():
        whole = _posted(served, "transfer-encoding:  Chunked\t", "Connection: close", body=body)
        with dial(served) as peer:
            if pause:
                for at in range(0, len(whole), 37):
                    peer.sendall(whole[at : at + 37])
            else:
                peer.sendall(whole)
            assert answer_of(peer)[0] == 200, what
