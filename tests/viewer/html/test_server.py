import http.client
import socket
import struct
import threading
from urllib.parse import urlsplit

import numpy as np
import pytest

from regard.viewer.html.server import NUMBERS, Model, Server
from regard.viewer.metrics.quantise import mean_pyramid, pyramid, quantise, quantise_signed
from regard.viewer.trace import Trace

from ..invented import large, negative, translation


@pytest.fixture(scope="module")
def server():
    """One for all that only ask it something."""
    with Server([translation(), large(600, 700)]) as running:
        yield running


def get(server, path, method="GET", **headers):
    connection = http.client.HTTPConnection("127.0.0.1", server.http.server_port, timeout=10)
    try:
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read(), answer.headers
    finally:
        connection.close()


def tile(server, **numbers):
    query = "&".join(f"{name}={value}" for name, value in numbers.items())
    return get(server, f"/{server.key}/tile?{query}")


def test_the_page_is_there_and_nowhere_else(server):
    status, page, headers = get(server, f"/{server.key}/")
    assert status == 200
    assert b'id="payload"' in page
    assert "script-src 'sha256-" in headers["Content-Security-Policy"]
    assert "connect-src 'self'" in headers["Content-Security-Policy"]
    assert headers["X-Content-Type-Options"] == "nosniff"
    for path in (
        "/",
        "/tile",
        f"/{server.key}",
        f"/{server.key}x/",
        f"/{server.key}/../etc/passwd",
        f"/{server.key}/%2e%2e",
        "/favicon.ico",
    ):
        wanted = 200 if path == f"/{server.key}" else 404
        assert get(server, path)[0] == wanted, path


def test_it_listens_on_the_loopback_address_alone(server):
    assert server.http.server_address[0] == "127.0.0.1"
    assert urlsplit(server.url).hostname == "127.0.0.1"


def test_keys_are_long_and_never_the_same(server):
    with Server([translation()]) as other:
        assert len(server.key) >= 20
        assert server.key != other.key


def test_a_foreign_name_for_this_address_is_refused(server):
    assert get(server, f"/{server.key}/", Host="evil.example:80")[0] == 404
    assert get(server, f"/{server.key}/", Host=f"localhost:{server.http.server_port}")[0] == 200


def test_tiles_together_are_the_matrix_at_every_level(server):
    weights = server.tiles.traces[1].attention().weights[0].astype(np.float32)
    for level, wanted in enumerate(pyramid(quantise(weights))):
        rows, columns = wanted.shape
        got = np.zeros_like(wanted)
        for i in range(-(-rows // 256)):
            for j in range(-(-columns // 256)):
                part = wanted[i * 256 : (i + 1) * 256, j * 256 : (j + 1) * 256]
                status, body, _ = tile(server, r=1, x=0, a=0, h=0, l=level, i=i, j=j)
                assert status == 200
                got[i * 256 : (i + 1) * 256, j * 256 : (j + 1) * 256] = np.frombuffer(body, np.uint8).reshape(part.shape)
        assert np.array_equal(got, wanted)


def test_exact_tiles_are_exact(server):
    weights = server.tiles.traces[1].attention().weights[0]
    _, body, _ = tile(server, r=1, h=0, i=2, j=1, e=1)
    assert np.array_equal(np.frombuffer(body, "<f4").reshape(88, 256), weights[512:600, 256:512].astype(np.float32))


def test_the_mean_of_the_heads_has_tiles_too(server):
    weights = server.tiles.traces[0].example().attentions[0].weights
    _, body, _ = tile(server, a=0, h=-1)
    assert np.array_equal(np.frombuffer(body, np.uint8).reshape(4, 4), quantise(weights.mean(0)))


@pytest.mark.parametrize(
    "query",
    [
        "r=2",
        "x=1",
        "a=99",
        "h=4",
        "h=-2",
        "l=9",
        "i=5",
        "j=5",
        "r=-1",
        "r=0x1",
        "r=1e3",
        "r=",
        "r=1&r=1",
        "file=/etc/passwd",
        "r=9999999999",
        "a=%00",
        "&" * 50,
        "r",
    ],
)
def test_a_tile_that_is_not_there_is_refused_in_one_line(server, query):
    status, body, _ = get(server, f"/{server.key}/tile?{query}")
    assert status == 400
    assert b"Traceback" not in body
    assert body.count(b"\n") == 1


def test_a_tile_is_named_by_numbers_alone():
    assert set(NUMBERS) == {"r", "x", "a", "h", "l", "i", "j", "e", "m"}


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "HEAD"])
def test_nothing_can_be_sent_to_it(server, method):
    assert get(server, f"/{server.key}/", method)[0] == 501


def test_many_readers_at_once_get_the_same_tiles(server):
    found = []
    threads = [threading.Thread(target=lambda: found.append(tile(server, r=1, l=1)[1])) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 12
    assert len(set(found)) == 1


def test_a_port_that_is_taken_says_so():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        number = taken.getsockname()[1]
        with pytest.raises(OSError, match=rf"port {number} cannot be had on 127.0.0.1: .*; --port 0 takes any free one"):
            Server([translation()], port=number)


def test_it_ends_when_it_is_closed():
    server = Server([translation()]).start()
    server.close()
    assert not server.thread.is_alive()
    with pytest.raises(OSError, match="refused"):
        get(server, "/")


def test_the_address_has_no_port_where_that_is_80(server):
    for host, status in (("127.0.0.1", 200), ("localhost", 200), ("127.0.0.1.evil.example", 404), ("", 404)):
        assert get(server, f"/{server.key}/", Host=host)[0] == status, host


def test_readers_who_ask_for_nonsense_or_leave_are_nothing_to_report(server, capfd):
    for said in (b"GET http://[ HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", b"GET /", f"GET /{server.key}/ HTTP/1.1\r\n".encode()):
        with socket.create_connection(("127.0.0.1", server.http.server_port)) as reader:
            reader.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # leave with a reset
            reader.sendall(said)
    assert get(server, f"/{server.key}/")[0] == 200
    server.close()
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("state", ["#q=2", "q=2"])
def test_a_state_is_a_fragment_with_or_without_its_mark(state):
    with Server([translation()], state=state) as running:
        assert running.opens == f"{running.url}#q=2"
    with Server([translation()]) as running:
        assert running.opens == running.url


def test_tiles_of_means_and_of_negative_weights_are_what_the_page_computes_itself():
    trace = negative()
    weights = trace.attention().weights
    with Server([trace, large(300, 300)]) as running:
        _, body, _ = tile(running, h=1)
        scale = max(1.0, float(np.abs(weights).max()))
        assert np.array_equal(np.frombuffer(body, np.uint8).reshape(5, 6), quantise_signed(weights[1], scale))
        _, body, _ = tile(running, r=1, l=2, m=1)
        level = mean_pyramid(running.tiles.traces[1].attention().weights[0])[2]
        assert np.array_equal(np.frombuffer(body, np.uint8).reshape(level.shape), quantise(level))


def other(text: str):
    """A trace of two words, of which the text is the first."""
    if text == "unknown":
        raise ValueError("the model has no token of 'unknown'")
    return [Trace.from_arrays(np.eye(2, dtype=np.float32), query=[text, "b"], key=["x", "y"])]


@pytest.fixture
def taking():
    with Server([translation()], model=Model("text", other)) as running:
        yield running


def send(server, body=b'{"text": "new words"}', key=None, **headers):
    given = {"Origin": f"http://127.0.0.1:{server.http.server_port}", "Content-Type": "application/json"} | headers
    connection = http.client.HTTPConnection("127.0.0.1", server.http.server_port, timeout=10)
    try:
        connection.request(
            "POST",
            f"/{key or server.key}/record",
            body=body,
            headers={k.replace("_", "-"): v for k, v in given.items() if v},
        )
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def test_a_page_with_a_model_takes_a_new_input_and_serves_what_the_model_did(taking):
    assert b'"takes":"text"' in get(taking, f"/{taking.key}/")[1]
    assert send(taking) == (200, "recorded\n")
    assert b"new words" in get(taking, f"/{taking.key}/")[1]
    assert tile(taking)[1] == quantise(np.eye(2, dtype=np.float32)).tobytes()
    assert send(taking, b'{"text": "unknown"}') == (422, "the model has no token of 'unknown'\n")
    assert b"new words" in get(taking, f"/{taking.key}/")[1], "what is refused changes nothing"


def test_the_bytes_of_a_picture_reach_the_model():
    seen = []
    with Server([translation()], model=Model("picture", lambda content: seen.append(content) or other("p"))) as running:
        assert send(running, b"\x89PNG", Content_Type="application/octet-stream")[0] == 200
        assert send(running, b"{}")[0] == 415
    assert seen == [b"\x89PNG"]


@pytest.mark.parametrize(
    ("headers", "status", "told"),
    [
        ({"Origin": "http://evil.example"}, 403, "an input is taken from the page itself alone"),
        ({"Origin": "null"}, 403, "an input is taken from the page itself alone"),
        ({"Origin": ""}, 403, "an input is taken from the page itself alone"),
        ({"Sec_Fetch_Site": "cross-site"}, 403, "an input is taken from the page itself alone"),
        ({"Host": "evil.example", "Origin": "http://evil.example"}, 404, "not found"),
        ({"key": "0" * 22}, 404, "not found"),
        ({"Content_Type": "text/plain"}, 415, "an input is sent as application/json"),
        ({"Content_Length": "-1"}, 411, "an input needs its length, in bytes, and at least one of them"),
        ({"Content_Length": "99999999"}, 413, "an input has at most 1,048,576 bytes"),
        ({"body": b"[1]"}, 422, "an input needs some text"),
        ({"body": b'{"text": "  "}'}, 422, "an input needs some text"),
        ({"body": b'{"text": 3}'}, 422, "an input needs some text"),
        ({"body": b"{"}, 422, "an input is sent as JSON, as the page does"),
        ({"body": b'{"text": "' + b"a" * 100_001 + b'"}'}, 422, "an input has at most 100,000 characters, got 100,001"),
    ],
)
def test_an_input_from_elsewhere_or_out_of_shape_is_refused_in_one_line(taking, headers, status, told):
    assert send(taking, **headers) == (status, f"{told}\n")


def test_one_input_at_a_time():
    begun, go = threading.Event(), threading.Event()

    def slow(text):
        begun.set()
        go.wait(10)
        return other(text)

    with Server([translation()], model=Model("text", slow)) as running:
        first = threading.Thread(target=send, args=[running])
        first.start()
        assert begun.wait(10)
        assert send(running) == (409, "the model is at work on another input; try again in a moment\n")
        go.set()
        first.join()


def test_a_body_that_ends_early_is_refused(taking):
    with socket.create_connection(("127.0.0.1", taking.http.server_port), timeout=10) as reader:
        host = f"127.0.0.1:{taking.http.server_port}"
        lines = [f"POST /{taking.key}/record HTTP/1.1", f"Host: {host}", f"Origin: http://{host}", "Content-Length: 50"]
        reader.sendall("\r\n".join([*lines, "Content-Type: application/json", "", "{"]).encode())
        reader.shutdown(socket.SHUT_WR)
        assert b"the input ended before its length" in b"".join(iter(lambda: reader.recv(4096), b""))
