"""What is refused before an address sees it: hosts, origins, sizes, numbers; and the headers of every answer."""

import asyncio
import json
import socket

import pytest

from ckgconv.serve.guard import HEADERS, Guard, known_host
from ckgconv.serve.limits import Limits

NAMES = frozenset({"localhost", "my-machine"})


@pytest.mark.parametrize(
    "host",
    ["localhost", "localhost:8000", "LOCALHOST:8000", "127.0.0.1:8000", "[::1]:8000", "192.168.0.7", "my-machine:80"],
)
def test_known_hosts(host):
    assert known_host(host, NAMES)


@pytest.mark.parametrize(
    "host",
    [
        *("", "evil.example", "evil.example:8000", "localhost.evil.example", "127.0.0.1.evil.example", "localhost:x"),
        *("user@localhost", "localhost/x", "[::1", "127.0.0.1:80:80", "localhost, evil.example", "127.1.example."),
    ],
)
def test_other_hosts(host):
    assert not known_host(host, NAMES)


def test_a_foreign_host_or_origin_is_refused(client):
    for method, address in (("GET", "/"), ("GET", "/api/model"), ("POST", "/api/predict")):
        response = client.request(method, address, headers={"host": "evil.example"})
        assert response.status_code == 421
        assert "--name" in response.json()["error"]
    for origin in ("http://evil.example", "null", "http://localhost:1", "file://"):
        response = client.post("/api/predict", json={"smiles": ["C"]}, headers={"origin": origin})
        assert response.status_code == 403
        assert "access-control-allow-origin" not in response.headers
    same = client.post("/api/predict", json={"smiles": ["C"]}, headers={"origin": str(client.base_url).rstrip("/")})
    assert same.status_code == 200


@pytest.mark.parametrize("asked", ["/", "/api/model", "/nothing", "/api/predict"])
def test_every_answer_has_the_headers(client, asked):
    response = client.get(asked)
    for name, value in HEADERS.items():
        assert response.headers[name] == value
    assert "frame-ancestors 'none'" in response.headers["content-security-policy"]
    assert "unsafe" not in response.headers["content-security-policy"]
    assert "access-control-allow-origin" not in response.headers
    assert "no-" in response.headers["cache-control"]


def test_large_bodies_are_refused(client):
    response = client.post("/api/predict", content=b"x" * 10_001)
    assert response.status_code == 413
    assert response.json()["error"] == "The request has more than 10,000 bytes: send it in parts."
    streamed = client.post("/api/predict", content=(b"x" * 1_000 for _ in range(100)))  # without a length
    assert streamed.status_code == 413
    file = client.post("/api/predict-file", files={"file": b"smiles\n" + b"C\n" * 20_000})
    assert file.status_code == 413


def test_an_announced_length_is_refused_at_once(address):
    host, port = address.removeprefix("http://").split(":")
    for length in ("999999999999", "9" * 200, "-1"):
        with socket.create_connection((host, int(port)), timeout=30) as connection:
            connection.sendall(
                f"POST /api/predict HTTP/1.1\r\nHost: {host}\r\nContent-Length: {length}\r\n\r\n".encode()
            )
            assert connection.recv(4000).split(b" ")[1] in (b"413", b"400")


def call(guard, body=b"{}", stall=False, method="POST"):
    """The status and the sentence of a guard, asked without a server."""
    sent = []

    async def receive():
        if stall:
            await asyncio.sleep(60)
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message):
        sent.append(message)

    scope = {"type": "http", "method": method, "path": "/api/predict", "headers": [(b"host", b"localhost")]}

    async def run():
        await guard(scope, receive, send)

    return run, sent


@pytest.mark.parametrize("announced", [True, False])
def test_the_rest_of_a_large_body_is_read_for_a_moment(announced):
    """A connection that is closed with data unread is reset, and the sender would not see the refusal."""

    async def never(scope, receive, send):
        raise AssertionError

    left, sent = [b"x" * 50] * 4, []

    async def receive():
        return {"type": "http.request", "body": left.pop(), "more_body": bool(left)}

    async def send(message):
        sent.append(message)

    length = [(b"content-length", b"200")] if announced else []
    scope = {"type": "http", "method": "POST", "path": "/api/predict", "headers": [(b"host", b"localhost"), *length]}
    asyncio.run(Guard(never, Limits(json_bytes=60), NAMES)(scope, receive, send))
    assert not left
    assert sent[0]["status"] == 413
    assert dict(sent[0]["headers"])[b"content-length"] == str(len(sent[1]["body"])).encode()


def test_too_many_requests_at_once_are_refused_but_the_page_is_not():
    async def waits(scope, receive, send):
        await receive()
        await asyncio.sleep(0.2)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"{}"})

    guard = Guard(waits, Limits(requests=2), NAMES)
    calls = [call(guard), call(guard), call(guard), call(guard, method="GET")]

    async def together():
        await asyncio.gather(*(run() for run, _ in calls))

    asyncio.run(together())
    assert [sent[0]["status"] for _, sent in calls] == [200, 200, 503, 200]
    assert "too many requests" in json.loads(calls[2][1][1]["body"])["error"]
    assert guard.active == 0


def test_a_body_that_does_not_arrive_is_given_up():
    async def never(scope, receive, send):
        raise AssertionError

    guard = Guard(never, Limits(body_seconds=0.05), NAMES)
    run, sent = call(guard, stall=True)
    asyncio.run(run())
    assert sent[0]["status"] == 408
    assert guard.active == 0
