"""A broker of message queues, which tests the service catalog with code that shares nothing with it.

It was written from the specification of the Open Service Broker API, version 2.17, alone. It is
strict: each request that breaks a rule for platforms is recorded as a violation. Everything is
asynchronous. The state is in a database, so that it survives a kill of the process.

    queuebroker.py ADDRESS PORT CERTIFICATE KEY DATABASE

Port 0 stands for a free port. The first line of the output is the port. The variables BROKER_USER
and BROKER_PASSWORD contain the credentials. These paths are not part of the API:

    GET  /test/state    the instances, bindings, requests and violations
    POST /test/lose     {"method": "PUT", "kind": "bindings"}: execute the next such request, but
                        close its connection without a response
    POST /test/hold     let all operations continue until
    POST /test/release
"""

import base64
import hmac
import http.server
import json
import os
import sqlite3
import ssl
import sys
import threading
import urllib.parse

VERSION = {"version": "2.1.0", "description": "Faster queues"}
PARAMETERS = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "type": "object",
    "properties": {"depth": {"type": "integer"}, "fail": {"type": "boolean"}},
    "additionalProperties": False,
}


def plan(name, free):
    return {
        "id": "7b0f2a1c-%s" % name, "name": name, "description": "A %s queue" % name, "free": free,
        "maintenance_info": VERSION,
        "schemas": {"service_instance": {"create": {"parameters": PARAMETERS}, "update": {"parameters": PARAMETERS}}},
    }


SERVICE = {
    "id": "41c5d7e9-queue", "name": "queue", "description": "Message queues", "tags": ["messages"],
    "bindable": True, "instances_retrievable": True, "bindings_retrievable": True, "plan_updateable": True,
    "metadata": {"displayName": "Queue", "providerDisplayName": "Tests"},
    "plans": [plan("shared", True), plan("dedicated", False)],
}
PLANS = {entry["id"] for entry in SERVICE["plans"]}

# The number of polls after which an operation ends.
POLLS = 2


class Refusal(Exception):
    """A response that is not a success."""

    def __init__(self, status, description, error=None):
        super().__init__(description)
        self.status, self.body = status, {"description": description}
        if error:
            self.body["error"] = error


class Store:
    """The state. An instance has the parent "", and a binding that of its instance."""

    def __init__(self, file):
        self.lock = threading.Lock()
        self.database = sqlite3.connect(file, check_same_thread=False, isolation_level=None)
        self.database.row_factory = sqlite3.Row
        self.database.executescript("""
            CREATE TABLE IF NOT EXISTS resources (id TEXT, parent TEXT, body TEXT, pending TEXT, operation TEXT, polls INTEGER,
                PRIMARY KEY (id, parent));
            CREATE TABLE IF NOT EXISTS requests (method TEXT, kind TEXT, id TEXT, status INTEGER, user TEXT);
            CREATE TABLE IF NOT EXISTS violations (text TEXT);
            CREATE TABLE IF NOT EXISTS losses (method TEXT, kind TEXT);
            CREATE TABLE IF NOT EXISTS holds (held INTEGER);
        """)

    def run(self, statement, *values):
        return self.database.execute(statement, values).fetchall()

    def find(self, parent, name):
        rows = self.run("SELECT * FROM resources WHERE parent = ? AND id = ?", parent, name)
        return dict(rows[0], body=json.loads(rows[0]["body"])) if rows else None

    def put(self, parent, name, body, operation=None, pending=None):
        self.run("INSERT OR REPLACE INTO resources VALUES (?, ?, ?, ?, ?, 0)", name, parent, json.dumps(body),
                 json.dumps(pending), operation)

    def remove(self, parent, name):
        self.run("DELETE FROM resources WHERE parent = ? AND id = ?", parent, name)

    def loses(self, method, kind):
        """Reports whether the response to a request is to be lost, once."""
        where = "WHERE rowid = (SELECT min(rowid) FROM losses WHERE method = ? AND kind = ?)"
        return bool(self.run("DELETE FROM losses %s RETURNING method" % where, method, kind))


class Request:
    """A request of the API, whose parts are checked."""

    def __init__(self, store, method, path, headers, content):
        self.store, self.method, self.headers = store, method, headers
        url = urllib.parse.urlsplit(path)
        self.parts = [urllib.parse.unquote(part) for part in url.path.strip("/").split("/")]
        self.query = dict(urllib.parse.parse_qsl(url.query, keep_blank_values=True))
        self.content = content
        self.body = {}
        self.user = ""

    def require(self, condition, text):
        """Records a violation of a rule for platforms."""
        if not condition:
            self.store.run("INSERT INTO violations VALUES (?)", "%s /%s: %s" % (self.method, "/".join(self.parts), text))

    def check_headers(self):
        version = self.headers.get("X-Broker-API-Version", "")
        if not version.startswith("2."):
            raise Refusal(412, "version 2 of the API is required")
        identity = self.headers.get("X-Broker-API-Originating-Identity")
        if identity is None:
            return
        platform, _, encoded = identity.partition(" ")
        try:
            self.user = json.loads(base64.b64decode(encoded, validate=True))["username"]
        except (ValueError, KeyError):
            self.require(False, "the originating identity has no user")
        self.require(platform == "kubernetes", "the platform of the identity is %r" % platform)

    def read(self):
        self.require(self.headers.get_content_type() == "application/json", "the body has another type than application/json")
        try:
            self.body = json.loads(self.content)
        except ValueError:
            raise Refusal(400, "the body is not JSON")
        if not isinstance(self.body, dict):
            raise Refusal(400, "the body is not an object")

    def check_plan(self, values, plan_needed=True):
        """Checks the service and the plan in a body or a query."""
        if values.get("service_id") != SERVICE["id"]:
            raise Refusal(400, "service_id names no service")
        if values.get("plan_id") not in PLANS and (plan_needed or "plan_id" in values):
            raise Refusal(400, "plan_id names no plan")
        if (values.get("maintenance_info") or VERSION).get("version") != VERSION["version"]:
            raise Refusal(422, "the plan has another version", "MaintenanceInfoConflict")

    def check_context(self):
        context = self.body.get("context")
        if not isinstance(context, dict):
            raise Refusal(400, "there is no context")
        if context.get("platform") == "kubernetes":
            for key in ("namespace", "clusterid"):
                self.require(isinstance(context.get(key), str) and context[key], "the context has no %s" % key)

    def check_async(self):
        if self.query.get("accepts_incomplete") != "true":
            raise Refusal(422, "all operations are asynchronous", "AsyncRequired")


def order_of(body):
    """Returns what makes two orders the same."""
    return [body.get("service_id"), body.get("plan_id"), body.get("parameters") or {}]


class Broker:
    """The operations of the API on instances and bindings."""

    def __init__(self, store):
        self.store = store

    def handle(self, request):
        request.check_headers()
        parts, method = request.parts, request.method
        if parts == ["v2", "catalog"] and method == "GET":
            return 200, {"services": [SERVICE]}, {}
        if parts[:2] != ["v2", "service_instances"] or len(parts) < 3:
            raise Refusal(404, "there is no such path")
        parent, name, rest = "", parts[2], parts[3:]
        if rest[:1] == ["service_bindings"] and len(rest) > 1:
            parent, name, rest = parts[2], rest[1], rest[2:]
        action = {
            ("GET", ()): self.get, ("GET", ("last_operation",)): self.poll, ("PUT", ()): self.create,
            ("PATCH", ()): self.update, ("DELETE", ()): self.delete,
        }.get((method, tuple(rest)))
        if action is None or method == "PATCH" and parent:
            raise Refusal(405, "there is no such operation")
        if parent and self.store.find("", parent) is None:
            raise Refusal(410 if method == "DELETE" else 404, "there is no such instance")
        return action(request, parent, name)

    def create(self, request, parent, name):
        request.read()
        body = request.body
        request.check_plan(body)
        request.check_context()
        request.check_async()
        if parent:
            self.check_instance(request, parent, body["plan_id"])
        else:
            for key in ("organization_guid", "space_guid"):
                request.require(isinstance(body.get(key), str) and body[key], "there is no %s" % key)
        existing = self.store.find(parent, name)
        if existing and existing["operation"] not in (None, "create"):
            raise Refusal(422, "another operation is in progress", "ConcurrencyError")
        if existing and order_of(existing["body"]) != order_of(body):
            raise Refusal(409, "the ID exists with other attributes")
        if existing and existing["operation"] is None:
            return 200, self.describe(parent, name, existing["body"]), {}
        if not existing:
            self.store.put(parent, name, body, "create")
        return 202, {"operation": "create"}, {}

    def update(self, request, parent, name):
        request.read()
        request.check_plan(request.body, plan_needed=False)
        request.check_async()
        existing = self.existing(parent, name, 404)
        if existing["operation"]:
            raise Refusal(422, "another operation is in progress", "ConcurrencyError")
        changed = {key: request.body[key] for key in ("plan_id", "parameters", "maintenance_info") if key in request.body}
        self.store.put(parent, name, existing["body"], "update", changed)
        return 202, {"operation": "update"}, {}

    def delete(self, request, parent, name):
        """Deletes a resource, also one that is being created, as orphan mitigation needs it."""
        request.check_plan(request.query)
        existing = self.existing(parent, name, 410)
        request.check_async()
        self.check_instance(request, parent or name, request.query["plan_id"])
        if existing["operation"] == "update":
            raise Refusal(422, "another operation is in progress", "ConcurrencyError")
        if not parent:
            request.require(not self.store.run("SELECT id FROM resources WHERE parent = ?", name), "the instance has bindings")
        self.store.put(parent, name, existing["body"], "delete")
        return 202, {"operation": "delete"}, {}

    def check_instance(self, request, name, plan_id):
        """Checks that a request names the current plan of an instance."""
        request.require(plan_id == self.store.find("", name)["body"]["plan_id"], "the plan is not that of the instance")

    def get(self, request, parent, name):
        existing = self.existing(parent, name, 404)
        if existing["operation"] in ("create", "delete"):
            raise Refusal(404, "the resource is being created or deleted")
        return 200, self.describe(parent, name, existing["body"]), {}

    def poll(self, request, parent, name):
        existing = self.existing(parent, name, 410)
        operation, body = existing["operation"], existing["body"]
        if operation is None:
            return 200, {"state": "succeeded"}, {}
        request.require(request.query.get("operation") == operation, "the operation is %r" % request.query.get("operation"))
        polls = existing["polls"] + 1
        if polls < POLLS or self.store.run("SELECT held FROM holds"):
            self.store.run("UPDATE resources SET polls = ? WHERE parent = ? AND id = ?", polls, parent, name)
            return 200, {"state": "in progress", "description": "step %d of %d" % (polls, POLLS)}, {"Retry-After": "1"}
        if operation == "delete":
            self.store.remove(parent, name)
        elif (body.get("parameters") or {}).get("fail"):
            # What was created until now stays, until the platform deletes it.
            self.store.put(parent, name, body)
            return 200, {"state": "failed", "description": "no room for the queue"}, {}
        else:
            self.store.put(parent, name, dict(body, **(json.loads(existing["pending"]) or {})))
        return 200, {"state": "succeeded"}, {}

    def existing(self, parent, name, status):
        existing = self.store.find(parent, name)
        if existing is None:
            raise Refusal(status, "there is no such resource")
        return existing

    def describe(self, parent, name, body):
        if parent:
            return {"credentials": {"address": "amqp://queues.example.com/%s" % parent, "token": "token-of-%s" % name}}
        return {
            "service_id": body["service_id"], "plan_id": body["plan_id"], "parameters": body.get("parameters") or {},
            "dashboard_url": "https://queues.example.com/%s" % name, "maintenance_info": VERSION,
        }


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self):
        content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        broker, store = self.server.broker, self.server.broker.store
        with store.lock:
            request = Request(store, self.command, self.path, self.headers, content)
            try:
                self.authenticate()
                if request.parts[0] == "test":
                    status, body, headers = self.control(store, request)
                else:
                    status, body, headers = broker.handle(request)
            except Refusal as refusal:
                status, body, headers = refusal.status, refusal.body, {}
            kind = "bindings" if "service_bindings" in request.parts else "instances"
            if request.parts[0] == "v2" and request.parts[-1] not in ("catalog", "last_operation"):
                store.run("INSERT INTO requests VALUES (?, ?, ?, ?, ?)", self.command, kind, request.parts[-1], status, request.user)
            if store.loses(self.command, kind):
                self.close_connection = True
                return
        text = json.dumps(body).encode()
        self.send_response(status)
        for name, value in dict(headers, **{"Content-Type": "application/json", "Content-Length": str(len(text))}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_PUT = do_PATCH = do_DELETE = do_POST = answer

    def authenticate(self):
        want = "Basic " + base64.b64encode(self.server.credentials.encode()).decode()
        if not hmac.compare_digest(self.headers.get("Authorization", "").encode(), want.encode()):
            raise Refusal(401, "wrong credentials")

    def control(self, store, request):
        action = request.parts[1]
        if action == "lose":
            request.read()
            store.run("INSERT INTO losses VALUES (?, ?)", request.body["method"], request.body["kind"])
        if action == "hold":
            store.run("INSERT INTO holds VALUES (1)")
        if action == "release":
            store.run("DELETE FROM holds")
        resources = [dict(row, body=json.loads(row["body"])) for row in store.run("SELECT * FROM resources")]
        return 200, {
            "resources": resources, "requests": [dict(row) for row in store.run("SELECT * FROM requests")],
            "violations": [row["text"] for row in store.run("SELECT text FROM violations")],
        }, {}

    def log_message(self, *_):
        """Requests are in the database."""


class Server(http.server.ThreadingHTTPServer):
    def handle_error(self, request, client_address):
        """Clients can close connections, for example when they do not trust the certificate."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


def main():
    address, port, certificate, key, file = sys.argv[1:]
    server = Server((address, int(port)), Handler)
    server.credentials = "%s:%s" % (os.environ["BROKER_USER"], os.environ["BROKER_PASSWORD"])
    server.broker = Broker(Store(file))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    # The handshake is left to the thread of the connection.
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    print(server.server_address[1], flush=True)
    server.serve_forever()


main()
