"""A page that shows which program serves it, and counts its visits if DATA_DIR names a persistent directory."""

import html
import os
import signal
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

HERE = Path(__file__).parent
PAGE = (HERE / "page.html").read_text()
VERSION = (HERE / "VERSION").read_text().strip()
COUNTING = threading.Lock()


def count_visit():
    """Return the number of visits, including this visit."""
    file = Path(os.environ["DATA_DIR"], "visits")
    with COUNTING:
        visits = int(file.read_text()) + 1 if file.exists() else 1
        new = file.with_suffix(".new")
        new.write_text(str(visits))
        new.rename(file)
    return visits


def page():
    facts = {
        "Version": VERSION,
        "Host": socket.gethostname(),
        "Build": os.environ.get("OPENSHIFT_BUILD_NAME", "none"),
        "Commit": os.environ.get("OPENSHIFT_BUILD_COMMIT", "none")[:7],
    }
    if "DATA_DIR" in os.environ:
        facts["Visits"] = count_visit()
    rows = "".join(f"<dt>{name}<dd>{html.escape(str(value))}" for name, value in facts.items())
    return PAGE.replace("{{greeting}}", html.escape(os.environ.get("GREETING", "Hello"))).replace("{{facts}}", rows)


class Handler(BaseHTTPRequestHandler):
    timeout = 10

    def do_GET(self):
        if self.path == "/":
            self.answer(200, "text/html; charset=utf-8", page())
        elif self.path == "/healthz":
            self.answer(200, "text/plain", "ok\n")
        else:
            self.answer(404, "text/plain", "not found\n")

    def answer(self, status, kind, text):
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format, *args):
        """Do not log requests."""


if __name__ == "__main__":
    port = int(os.environ.get("PORT", "8080"))
    print(f"version {VERSION} listens at port {port}", flush=True)
    server = ThreadingHTTPServer(("", port), Handler)
    # Complete open requests before the program exits.
    server.daemon_threads = False
    signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=server.shutdown).start())
    server.serve_forever()
    server.server_close()
