"""The part of Elasticsearch that answers POST /_bulk: it stores documents by index and id, and answers for each, in the order of the
request, as the reference documents. It checks what Elasticsearch checks: action lines, JSON without duplicate keys, index names, field names,
and that a field has one type.

As a program, `elastic.py PORT FILE REQUESTS`, it keeps what it stores in the file; see killable.py."""

import json
import os
import re
import signal
import sys

from killable import until_killed
from scripted import Scripted, reply

INDEX = re.compile(r"[^-_+A-Z\\/*?\"<>| ,#:][^A-Z\\/*?\"<>| ,#:]{0,254}")


def parse(line):
    """One JSON document without duplicate keys and special numbers."""
    def unique(pairs):
        keys = [key for key, _ in pairs]
        if len(set(keys)) != len(keys):
            raise ValueError("duplicate field " + str(keys))
        return dict(pairs)

    def refuse(text):
        raise ValueError("non-standard token " + text)
    return json.loads(line, object_pairs_hook=unique, parse_constant=refuse)


class Elastic:
    """answer(number, index, id, document): the status of a document, or None to store it; `number` counts all documents that arrived.
    spoil(request, body): the bytes of the whole response in place of those for this body; None: those. documents: that it has already."""

    def __init__(self, answer=lambda *_: None, spoil=lambda *_: None, port=0, documents=None):
        self.answer, self.spoil = answer, spoil
        self.documents = documents or {}  # by (index, id)
        self.arrived = []    # all (operation, index, id, document)
        self.types = {}
        self.server = Scripted(self._respond, port=port)
        self.url = self.server.url + "/_bulk"

    def _respond(self, request):
        lines = request.body.split(b"\n")
        if lines.pop() or len(lines) % 2 or request.headers["content-type"] != "application/x-ndjson":
            return reply(400, json.dumps({"error": {"type": "illegal_argument_exception", "reason": "must end with a newline"}, "status": 400}))
        items = [self._take(parse(action), line) for action, line in zip(lines[::2], lines[1::2])]
        errors = any("error" in item for each in items for item in each.values())
        body = json.dumps({"took": 3, "errors": errors, "items": items}).encode()
        spoiled = self.spoil(request, body)
        return reply(200, body, Content_Type="application/json") if spoiled is None else spoiled

    def _take(self, action, line):
        (operation, about), = action.items()
        index, identity = about["_index"], about["_id"]
        try:
            document = parse(line)
            self._check(index, identity, document)
            fault = None
        except ValueError as error:
            document, fault = None, error
        self.arrived.append((operation, index, identity, document))
        status = self.answer(len(self.arrived) - 1, index, identity, document)
        if fault or status == 400:
            return self._item(operation, index, identity, 400, "document_parsing_exception", str(fault or "failed to parse field [metrics.x]"))
        if status:
            return self._item(operation, index, identity, status, "es_rejected_execution_exception" if status == 429 else "scripted", "as told")
        if operation == "create" and (index, identity) in self.documents:
            return self._item(operation, index, identity, 409, "version_conflict_engine_exception", "document already exists")
        status = 200 if (index, identity) in self.documents else 201
        self.documents[(index, identity)] = document
        return {operation: {"_index": index, "_id": identity, "_version": 1, "result": "created",
                            "_shards": {"total": 2, "successful": 1, "failed": 0}, "_seq_no": 0, "_primary_term": 1, "status": status}}

    @staticmethod
    def _item(operation, index, identity, status, kind, reason):
        return {operation: {"_index": index, "_id": identity, "status": status,
                            "error": {"type": kind, "reason": reason, "caused_by": {"type": "x", "reason": "inner"}}}}

    def _check(self, index, identity, document):
        if not INDEX.fullmatch(index) or index in (".", "..") or len(index.encode()) > 255:
            raise ValueError(f"invalid index name [{index}]")
        if not identity or len(identity.encode()) > 512:
            raise ValueError("invalid id")
        if not re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z", document["@timestamp"]):
            raise ValueError("failed to parse date field")
        for part, fields in document.items():
            if isinstance(fields, dict):
                for name, value in fields.items():
                    self._check_field((index, part, name), value)

    def _check_field(self, field, value):
        if any(not part.strip() for part in field[2].split(".")):
            raise ValueError(f"field name cannot be [{field[2]}]")
        kind = self.types.setdefault(field, type(value))
        if kind != type(value) and not (kind is float and type(value) is int):
            raise ValueError(f"mapper [{field}] cannot be changed from type [{kind}] to [{type(value)}]")

    def values(self, name="value"):
        """Those of all documents that are stored."""
        return [document["metrics"][name] for document in self.documents.values() if name in document["metrics"]]

    def close(self):
        self.server.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Keeper(Elastic):
    """Appends what it stores to a file before it answers, a request at a time, and knows what is in it. requests: see until_killed."""

    def __init__(self, port, path, requests):
        self.new = []
        self._respond = until_killed(self._store, requests)
        self.file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        with open(path, encoding="utf-8") as file:
            lines = file.read().split("\n")
        os.ftruncate(self.file, os.path.getsize(path) - len(lines.pop().encode()))  # of a write that was cut by the kill
        known = {(index, identity): document for index, identity, document in map(json.loads, lines)}
        assert len(known) == len(lines), "stored twice"
        super().__init__(port=port, documents=known)

    def _take(self, action, line):
        before = len(self.documents)
        item = super()._take(action, line)
        if len(self.documents) > before:
            (_, index, identity, document) = self.arrived.pop()
            self.new.append(json.dumps([index, identity, document]) + "\n")
        self.arrived.clear()
        return item

    def _store(self, request):
        response = super()._respond(request)
        text, self.new = "".join(self.new).encode(), []
        while text:
            text = text[os.write(self.file, text):]
        return response


if __name__ == "__main__":
    keeper = Keeper(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
    print(keeper.server.port, flush=True)
    signal.pause()
