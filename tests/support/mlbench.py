"""The metrics part of MLBench's REST API: POST and GET /api/metrics/, GET /api/metrics/ID. It checks what MLBench's Django views and
models check, and fails as they do: with 500 where they do not catch an exception. With pods it is version 2.x; 3.0 knows no pod_name."""

import datetime
import http.server
import json
import re
import threading
import urllib.parse

# django.utils.dateparse.datetime_re
DATE = re.compile(r"(?P<year>\d{4})-(?P<month>\d{1,2})-(?P<day>\d{1,2})[T ](?P<hour>\d{1,2}):(?P<minute>\d{1,2})"
                  r"(?::(?P<second>\d{1,2})(?:[\.,](?P<microsecond>\d{1,6})\d{0,6})?)?(?P<tzinfo>\s*Z|[+-]\d{2}(?::?\d{2})?)?")
TRUTHS = {"True": True, "t": True, "1": True, "False": False, "f": False, "0": False}  # of a form


def parse_date(text):
    found = DATE.fullmatch(text)
    if not found:
        raise ValueError(f"date {text!r}")
    parts = {key: int(value.ljust(6, "0") if key == "microsecond" else value)
             for key, value in found.groupdict().items() if value and key != "tzinfo"}
    return datetime.datetime(**parts, tzinfo=datetime.timezone.utc)


def make_metric(form):
    """The row that the view stores; raises where the view or the model would."""
    metric = {key: form[key] for key in ("name", "value", "metadata")}
    metric["date"] = parse_date(form["date"])
    metric["cumulative"] = TRUTHS[form["cumulative"]]
    if len(metric["name"]) > 50 or len(metric["value"]) > 255:
        raise ValueError("too long")  # PostgreSQL's limits
    return metric


class MLBench:
    def __init__(self, runs=(), pods=()):
        self.metrics = {("run", run): [] for run in runs} | {("pod", pod): [] for pod in pods}
        self.faults, self.connections, self.knows_pods = [], 0, bool(pods)
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def setup(self):
                outer.connections += 1
                super().setup()

            def respond(self, status, content):
                body = json.dumps(content).encode()
                self.send_response(status)
                if status == 301:
                    self.send_header("Location", self.path + "/")
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                self.respond(*outer.create(self.path, self.headers["Content-Type"], body))

            def do_GET(self):
                self.respond(*outer.read(self.path))

            def log_message(self, *_):
                pass

        class Quiet(http.server.ThreadingHTTPServer):
            daemon_threads = True

        self.server = Quiet(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def create(self, path, content_type, body):
        if path == "/api/metrics":
            return 301, {}  # Django's APPEND_SLASH
        if path != "/api/metrics/":
            return 404, {"detail": "Not found."}
        if content_type != "application/x-www-form-urlencoded":
            return 415, {"detail": f'Unsupported media type "{content_type}" in request.'}
        pairs = urllib.parse.parse_qsl(body, keep_blank_values=True, strict_parsing=True, encoding="utf-8", errors="strict")
        form = dict(pairs)
        if "pod_name" in form and self.knows_pods and ("pod", form["pod_name"]) not in self.metrics:
            return 404, {"status": "Not Found", "message": "Pod not found"}
        if "run_id" not in form and not (self.knows_pods and "pod_name" in form):
            return 400, {"status": "Bad Request", "message": "Run ID has to be supplied", "data": form}
        owner = ("pod", form["pod_name"]) if "run_id" not in form else ("run", int(form["run_id"]))
        try:
            if len(pairs) != len(form):
                raise ValueError("duplicate field")
            metric = make_metric(form)
            self.metrics[owner].append(metric)
        except (KeyError, ValueError) as error:
            self.faults.append(f"{type(error).__name__} {error}: {body}")
            return 500, {"detail": "Server Error (500)"}
        return 201, show(metric)

    def read(self, path):
        """As GET /api/metrics/ID?metric_type=run|pod and GET /api/metrics/."""
        url = urllib.parse.urlsplit(path)
        if url.path == "/api/metrics/":
            return 200, {f"{kind}_metrics": {str(name): group(metrics) for (k, name), metrics in self.metrics.items() if k == kind}
                         for kind in ("pod", "run")}
        kind = dict(urllib.parse.parse_qsl(url.query)).get("metric_type", "pod")
        name = url.path.removeprefix("/api/metrics/").strip("/")
        owner = (kind, int(name) if kind == "run" else name)
        return (200, group(self.metrics[owner])) if owner in self.metrics else (500, {"detail": "Server Error (500)"})

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def show(metric):
    return {**metric, "date": metric["date"].strftime("%Y-%m-%dT%H:%M:%S.%fZ")}


def group(metrics):
    """The metrics by name, each list ordered by date."""
    result = {}
    for metric in sorted(metrics, key=lambda m: m["date"]):
        shown = show(metric)
        result.setdefault(shown.pop("name"), []).append(shown)
    return result
