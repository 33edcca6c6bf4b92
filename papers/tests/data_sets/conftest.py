"""Fixtures: a web server on this machine, and an empty cache."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest


@dataclass
class Server:
    """A local web server: its files, and the paths that were requested."""

    files: dict[str, bytes] = field(default_factory=dict)
    missing_bytes: int = 0
    requests: list[str] = field(default_factory=list)
    url: str = ""


@pytest.fixture
def server() -> Iterator[Server]:
    state = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            state.requests.append(self.path)
            body = state.files.get(self.path)
            if body is None:
                self.send_error(404)
                return
            self.send_response(200)
            self.send_header("Content-Length", str(len(body) + state.missing_bytes))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    http_server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    state.url = f"http://127.0.0.1:{http_server.server_port}"
    thread = threading.Thread(target=http_server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield state
    http_server.shutdown()
    http_server.server_close()
    thread.join()


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder that does not exist yet, with no data folder set."""
    folder = tmp_path / "cache"
    monkeypatch.delenv("FIEDLER_DATA", raising=False)
    monkeypatch.setenv("FIEDLER_CACHE", str(folder))
    return folder
