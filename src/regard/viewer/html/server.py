"""The page from a local server: nothing is left out, since tiles of any matrix are cut from the trace when they are wanted.

Bound to the loopback address, with a random key in the URL. There are two routes to read, the page and the tile; a tile is
named by whole numbers alone, so no request can name a file. Where a model stands behind the page there is a third, by which
the page itself, and no other, sends a new input: a text, or the bytes of a picture.
"""

import hmac
import json
import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal
from urllib.parse import parse_qs

import numpy as np

from regard.data.axis import Array
from regard.errors import TrainingError
from regard.viewer.html import render
from regard.viewer.metrics import matrices
from regard.viewer.metrics.quantise import farthest, mean_pyramid, pyramid, quantise, signed_bytes
from regard.viewer.trace import Trace

TILE = 256
"""Cells along a side of a tile."""
KEPT = 8
"""Matrices whose pyramids are kept."""
LOOPBACK = "127.0.0.1"
NUMBERS = {"r": 0, "x": 0, "a": 0, "h": -1, "l": 0, "i": 0, "j": 0, "e": 0, "m": 0}
"""Parameters of a request for a tile with their minimum: run, example, attention, head (-1: the mean), level, row and
column of the tile, whether exact values are wanted, and whether smaller levels are means and not maxima."""


MOST_BYTES = {"text": 1 << 20, "picture": 20 << 20}
"""Maximum bytes of an input that is sent."""
LONGEST = 100_000
"""Characters of a text that is sent."""
SENT_AS = {"text": "application/json", "picture": "application/octet-stream"}
"""Content types of inputs. A foreign page may send neither without asking first, and it is never allowed to."""


@dataclass(frozen=True)
class Model:
    """The model behind a page, which records a new input: `takes` a text, or a picture as the bytes of its file."""

    takes: Literal["text", "picture"]
    record: Callable[[Any], Sequence[Trace]]


class Server:
    """A page about one trace or two, at `url` until `close`; at `opens` with the state that was asked for.

    With a `model` the page takes a new input, and from then on shows what the model did with that.
    """

    def __init__(
        self,
        traces: Sequence[Trace],
        *,
        port: int = 0,
        state: str = "",
        language: str | None = None,
        daemon: bool = True,
        model: Model | None = None,
    ):
        self.key = secrets.token_urlsafe(16)
        self.model, self.busy, self.language = model, threading.Lock(), language
        self.show(traces, state)
        try:
            self.http = ThreadingHTTPServer((LOOPBACK, port), _handler(self))
        except OSError as error:
            raise OSError(
                f"port {port} cannot be had on {LOOPBACK}: {error.strerror}; --port 0 takes any free one"
            ) from error
        self.url = f"http://{LOOPBACK}:{self.http.server_port}/{self.key}/"
        self.opens = self.url + (f"#{state.removeprefix('#')}" if state else "")
        self.thread = threading.Thread(target=self.http.serve_forever, name="regard view", daemon=daemon)

    def show(self, traces: Sequence[Trace], state: str = "") -> None:
        """Serve a page about these traces from now on."""
        takes = None if self.model is None else self.model.takes
        page = render.html(traces, state=state, language=self.language, tiles="tile", takes=takes)
        self.policy = render.policy(page, served=True)
        self.tiles, self.page = Tiles(traces), page.encode("utf-8", "surrogatepass")

    def start(self) -> "Server":
        """Answer from now on, in a thread of its own."""
        self.thread.start()
        return self

    def close(self) -> None:
        """Stop answering."""
        if self.thread.is_alive():
            self.http.shutdown()
            self.thread.join()
        self.http.server_close()

    def __enter__(self) -> "Server":
        return self.start()

    def __exit__(self, *reason: object) -> None:
        self.close()


class Tiles:
    """Any piece of any matrix of some traces."""

    def __init__(self, traces: Sequence[Trace]):
        self.traces = traces
        self.lock = threading.Lock()
        self.pyramids: OrderedDict[tuple[int, int, int, int, int], list[Array]] = OrderedDict()

    def cut(self, r: int, x: int, a: int, h: int, l: int, i: int, j: int, e: int, m: int) -> bytes:  # noqa: E741 - as in the URL
        """The bytes of a tile; IndexError where there is no such thing."""
        if not (
            r < len(self.traces) and x < len(self.traces[r].examples) and a < len(self.traces[r].examples[x].attentions)
        ):
            raise IndexError("there is no such attention")
        attention_map = self.traces[r].examples[x].attentions[a]
        if attention_map.weights is None or h >= attention_map.weights.shape[0]:
            raise IndexError("there is no such head")
        place = np.s_[i * TILE : (i + 1) * TILE, j * TILE : (j + 1) * TILE]
        if e:
            exact = matrices.matrix(self.traces[r].examples[x], attention_map, h, place)
            return _some(exact).astype("<f4").tobytes()
        with self.lock:
            levels = self._pyramid((r, x, a, h, min(m, 1)))
        if l >= len(levels):
            raise IndexError("there is no such level")
        return _some(levels[l][place]).tobytes()

    def _pyramid(self, which: tuple[int, int, int, int, int]) -> list[Array]:
        if which in self.pyramids:
            self.pyramids.move_to_end(which)
            return self.pyramids[which]
        r, x, a, h, mean = which
        example = self.traces[r].examples[x]
        attention_map = example.attentions[a]
        film = [frame for frame in self.traces[r].training if frame.example == x]
        scale, signed = matrices.scale(attention_map, film), matrices.signed(attention_map, film)
        weights = matrices.matrix(example, attention_map, h)
        if mean:
            levels = [matrices.in_bytes(level, scale, signed) for level in mean_pyramid(weights)]
        elif signed:
            levels = [signed_bytes(level) for level in pyramid(farthest(matrices.in_bytes(weights, scale, signed)))]
        else:
            levels = pyramid(quantise(weights, scale))
        self.pyramids[which] = levels
        if len(self.pyramids) > KEPT:
            self.pyramids.popitem(last=False)
        return levels


def _some(cells: Array) -> Array:
    if not cells.size:
        raise IndexError("there is no such tile")
    return np.ascontiguousarray(cells)


def _handler(server: Server) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        """Answers for one server."""

        server_version, sys_version, protocol_version = "regard", "", "HTTP/1.1"
        timeout = 30

        def handle(self) -> None:
            """Answer until the reader leaves, which may be at any time and is nothing to report."""
            with suppress(ConnectionError, TimeoutError):
                super().handle()

        def do_GET(self) -> None:
            path, _, query = self.path.partition("?")
            key, _, route = path.removeprefix("/").partition("/")
            if not hmac.compare_digest(key.encode(), server.key.encode()) or not self._from_here():
                self._answer(HTTPStatus.NOT_FOUND, b"not found\n", "text/plain; charset=utf-8")
            elif route == "":
                self._answer(HTTPStatus.OK, server.page, "text/html; charset=utf-8")
            elif route == "tile":
                self._tile(query)
            else:
                self._answer(HTTPStatus.NOT_FOUND, b"not found\n", "text/plain; charset=utf-8")

        def do_POST(self) -> None:
            self.close_connection = True  # what was not read of a refused body is not taken for the next request
            key, _, route = self.path.removeprefix("/").partition("/")
            if not hmac.compare_digest(key.encode(), server.key.encode()) or not self._from_here():
                self._say(HTTPStatus.NOT_FOUND, "not found")
            elif server.model is None or route != "record":
                self._say(HTTPStatus.NOT_IMPLEMENTED, "this page takes no input")
            elif self.headers.get("Origin") != f"http://{self.headers.get('Host')}" or self._foreign():
                self._say(HTTPStatus.FORBIDDEN, "an input is taken from the page itself alone")
            elif self.headers.get("Content-Type", "").partition(";")[0].strip().lower() != SENT_AS[server.model.takes]:
                self._say(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"an input is sent as {SENT_AS[server.model.takes]}")
            elif not (length := _length(self.headers.get("Content-Length"))) or self.headers.get("Transfer-Encoding"):
                self._say(HTTPStatus.LENGTH_REQUIRED, "an input needs its length, in bytes, and at least one of them")
            elif length > MOST_BYTES[server.model.takes]:
                self._say(
                    HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"an input has at most {MOST_BYTES[server.model.takes]:,} bytes"
                )
            else:
                self._record(server.model, self.rfile.read(length), length)

        def _record(self, model: Model, body: bytes, length: int) -> None:
            """Run the model on an input, one at a time, and show what it did."""
            if len(body) < length:
                return self._say(HTTPStatus.BAD_REQUEST, "the input ended before its length")
            if not server.busy.acquire(blocking=False):
                return self._say(HTTPStatus.CONFLICT, "the model is at work on another input; try again in a moment")
            try:
                server.show(model.record(_text(body) if model.takes == "text" else body))
            except (TrainingError, ValueError, LookupError, OSError) as error:
                self._say(HTTPStatus.UNPROCESSABLE_ENTITY, " ".join(str(error.args[0] if error.args else error).split()))
            else:
                self._say(HTTPStatus.OK, "recorded")
            finally:
                server.busy.release()

        def _foreign(self) -> bool:
            """True if the browser says that another page sent this."""
            return self.headers.get("Sec-Fetch-Site", "same-origin") != "same-origin"

        def _say(self, status: HTTPStatus, text: str) -> None:
            self._answer(status, f"{text}\n".encode("utf-8", "backslashreplace"), "text/plain; charset=utf-8")

        def _from_here(self) -> bool:
            """True if the browser meant this address: another name for it is how a foreign page would reach in."""
            host, _, _ = self.headers.get("Host", "").partition(":")  # there is no port where it is 80
            return host in (LOOPBACK, "localhost")

        def _tile(self, query: str) -> None:
            try:
                cells = server.tiles.cut(**_numbers(query))
            except (ValueError, IndexError) as error:
                self._answer(HTTPStatus.BAD_REQUEST, f"{error}\n".encode(), "text/plain; charset=utf-8")
            else:
                self._answer(HTTPStatus.OK, cells, "application/octet-stream")

        def _answer(self, status: HTTPStatus, body: bytes, kind: str) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Cache-Control", "no-store")
            self.send_header("X-Content-Type-Options", "nosniff")
            self.send_header("Referrer-Policy", "no-referrer")
            self.send_header("Content-Security-Policy", server.policy)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *parts: Any) -> None:
            """Say nothing: the key would stand in the log."""

    return Handler


def _length(told: str | None) -> int:
    """The length of a body; 0 where it is not told in digits."""
    return int(told) if told is not None and told.isdecimal() and told.isascii() and len(told) <= 9 else 0


def _text(body: bytes) -> str:
    """The text that was sent."""
    try:
        sent = json.loads(body)
    except ValueError as error:
        raise ValueError("an input is sent as JSON, as the page does") from error
    text = sent.get("text") if isinstance(sent, dict) else None
    if not isinstance(text, str) or not text.strip():
        raise ValueError("an input needs some text")
    if len(text) > LONGEST:
        raise ValueError(f"an input has at most {LONGEST:,} characters, got {len(text):,}")
    return text.encode("utf-8", "replace").decode()


def _numbers(query: str) -> dict[str, int]:
    """The whole numbers that name a tile."""
    given = parse_qs(query, keep_blank_values=True, max_num_fields=len(NUMBERS), strict_parsing=True)
    if strange := given.keys() - NUMBERS.keys():
        raise ValueError(f"a tile is asked for by {', '.join(NUMBERS)}, not by {min(strange)[:20]!r}")
    numbers = {}
    for name, least in NUMBERS.items():
        text = given.get(name, ["0"])
        if len(text) != 1 or len(text[0]) > 9 or not text[0].removeprefix("-").isdecimal() or int(text[0]) < least:
            raise ValueError(f"{name} needs one whole number from {least} on")
        numbers[name] = int(text[0])
    return numbers
