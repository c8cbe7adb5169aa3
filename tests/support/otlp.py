"""Reads requests of OTLP with python3-protobuf: the messages are described here by the numbers and types of the standard's fields, so
nothing of weir is used.

As a program, `otlp.py PORT FILE REQUESTS`, it is a server that keeps the bodies of requests in the file; see killable.py."""

import base64
import json
import os
import signal
import sys

from harness import Skip
from killable import until_killed
from scripted import Scripted, reply

sys.path.append("/usr/lib/python3/dist-packages")  # where Debian's package is, whatever Python runs this
try:
    from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory
except ModuleNotFoundError:
    descriptor_pb2 = None

# opentelemetry/proto/{collector/metrics,metrics,common,resource}/v1: message: {field: (number, type)}; * repeated, ? optional
MESSAGES = {
    "AnyValue": {"string_value": (1, "string"), "bool_value": (2, "bool"), "int_value": (3, "int64"), "double_value": (4, "double")},
    "KeyValue": {"key": (1, "string"), "value": (2, "AnyValue")},
    "Resource": {"attributes": (1, "*KeyValue"), "dropped_attributes_count": (2, "uint32")},
    "InstrumentationScope": {"name": (1, "string"), "version": (2, "string"), "attributes": (3, "*KeyValue")},
    "ExportMetricsServiceRequest": {"resource_metrics": (1, "*ResourceMetrics")},
    "ResourceMetrics": {"resource": (1, "Resource"), "scope_metrics": (2, "*ScopeMetrics"), "schema_url": (3, "string")},
    "ScopeMetrics": {"scope": (1, "InstrumentationScope"), "metrics": (2, "*Metric"), "schema_url": (3, "string")},
    "Metric": {"name": (1, "string"), "description": (2, "string"), "unit": (3, "string"), "gauge": (5, "Gauge"), "sum": (7, "Sum"),
               "histogram": (9, "Histogram"), "exponential_histogram": (10, "ExponentialHistogram")},
    "Gauge": {"data_points": (1, "*NumberDataPoint")},
    "Sum": {"data_points": (1, "*NumberDataPoint"), "aggregation_temporality": (2, "int32"), "is_monotonic": (3, "bool")},
    "Histogram": {"data_points": (1, "*HistogramDataPoint"), "aggregation_temporality": (2, "int32")},
    "ExponentialHistogram": {"data_points": (1, "*ExponentialHistogramDataPoint"), "aggregation_temporality": (2, "int32")},
    "NumberDataPoint": {"start_time_unix_nano": (2, "fixed64"), "time_unix_nano": (3, "fixed64"), "as_double": (4, "?double"),
                        "as_int": (6, "?sfixed64"), "attributes": (7, "*KeyValue"), "flags": (8, "uint32")},
    "HistogramDataPoint": {"attributes": (9, "*KeyValue"), "start_time_unix_nano": (2, "fixed64"), "time_unix_nano": (3, "fixed64"),
                           "count": (4, "fixed64"), "sum": (5, "?double"), "bucket_counts": (6, "*fixed64"),
                           "explicit_bounds": (7, "*double"), "flags": (10, "uint32"), "min": (11, "?double"), "max": (12, "?double")},
    "ExponentialHistogramDataPoint": {
        "attributes": (1, "*KeyValue"), "start_time_unix_nano": (2, "fixed64"), "time_unix_nano": (3, "fixed64"), "count": (4, "fixed64"),
        "sum": (5, "?double"), "scale": (6, "sint32"), "zero_count": (7, "fixed64"), "positive": (8, "Buckets"), "negative": (9, "Buckets"),
        "flags": (10, "uint32"), "min": (12, "?double"), "max": (13, "?double"), "zero_threshold": (14, "double")},
    "Buckets": {"offset": (1, "sint32"), "bucket_counts": (2, "*uint64")},
    "ExportMetricsPartialSuccess": {"rejected_data_points": (1, "int64"), "error_message": (2, "string")},
    "ExportMetricsServiceResponse": {"partial_success": (1, "ExportMetricsPartialSuccess")},
    "Status": {"code": (1, "int32"), "message": (2, "string")},
}


def _build():
    file = descriptor_pb2.FileDescriptorProto(name="otlp.proto", package="otlp", syntax="proto3")
    field_type = descriptor_pb2.FieldDescriptorProto
    for name, fields in MESSAGES.items():
        message = file.message_type.add(name=name)
        for field, (number, kind) in fields.items():
            added = message.field.add(name=field, number=number)
            added.label = field_type.LABEL_REPEATED if kind[0] == "*" else field_type.LABEL_OPTIONAL
            if kind[0] == "?":
                added.proto3_optional = True
                added.oneof_index = len(message.oneof_decl)
                message.oneof_decl.add(name="_" + field)
            kind = kind.lstrip("*?")
            if kind in MESSAGES:
                added.type, added.type_name = field_type.TYPE_MESSAGE, ".otlp." + kind
            else:
                added.type = getattr(field_type, "TYPE_" + kind.upper())
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    factory = message_factory.MessageFactory(pool)
    return {name: factory.GetPrototype(pool.FindMessageTypeByName("otlp." + name)) for name in MESSAGES}


_classes = _build() if descriptor_pb2 else {}


def require():
    """Before a server needs it, whose threads cannot skip the case."""
    if not _classes:
        raise Skip("protobuf is not installed (Debian: python3-protobuf)")


def message(name, **fields):
    require()
    return _classes[name](**fields)


def _refuse_unknown(part):
    """Fields that the description does not have would otherwise be skipped."""
    from google.protobuf.unknown_fields import UnknownFieldSet
    assert not len(UnknownFieldSet(part)), part
    for field, value in part.ListFields():
        if field.message_type:
            for item in value if field.label == field.LABEL_REPEATED else [value]:
                _refuse_unknown(item)


def _refuse_wrong_json(node):
    """What protobuf's parser accepts, but the standard does not write: names with underscores, numbers for 64 bits, words for enums."""
    if isinstance(node, dict):
        for key, value in node.items():
            assert "_" not in key, key
            if key in ("timeUnixNano", "startTimeUnixNano", "asInt", "count", "zeroCount"):
                assert isinstance(value, str), (key, value)
            if key == "bucketCounts":
                assert all(isinstance(count, str) for count in value), value
            if key in ("aggregationTemporality", "scale", "offset"):
                assert isinstance(value, int), value
            _refuse_wrong_json(value)
    elif isinstance(node, list):
        for item in node:
            _refuse_wrong_json(item)


def decode(body, content_type):
    """The ExportMetricsServiceRequest of a request's body."""
    request = message("ExportMetricsServiceRequest")
    if content_type == "application/json":
        _refuse_wrong_json(json.loads(body))
        json_format.Parse(body.decode(), request)
    else:
        assert content_type == "application/x-protobuf", content_type
        request.ParseFromString(body)
        _refuse_unknown(request)
    return request


def attributes_of(items):
    """The attributes as a dict; all are texts."""
    result = {item.key: item.value.string_value for item in items}
    assert len(result) == len(items), "attributes are unique"
    return result


def points_of(request):
    """All data points as (scope, metric, kind, data, point), in order."""
    for resource in request.resource_metrics:
        for scope in resource.scope_metrics:
            for metric in scope.metrics:
                kinds = [field.name for field, _ in metric.ListFields() if field.message_type]
                assert len(kinds) == 1, metric
                data = getattr(metric, kinds[0])
                for point in data.data_points:
                    yield scope.scope.name, metric, kinds[0], data, point


def _middle(index, scale):
    """The value whose distance to both bounds of a bucket, relative to them, is the same."""
    low, inverse = 2.0 ** (index * 2.0 ** -scale) or 5e-324, 2.0 ** -(2.0 ** -scale)
    return low * (2 / (1 + inverse))


def ranks_of(point):
    """What an exponential histogram says of its values, as (value, count) in ascending order."""
    def side(buckets):
        return [(_middle(buckets.offset + i, point.scale), count) for i, count in enumerate(buckets.bucket_counts) if count]
    ranks = [(-value, count) for value, count in reversed(side(point.negative))] + [(0.0, point.zero_count)] + side(point.positive)
    return [(min(max(value, point.min), point.max), count) for value, count in ranks]


def quantiles_of(point):
    """The value of each rank."""
    return [value for value, count in ranks_of(point) for _ in range(count)]


def keep(port, path, requests):
    """Appends each body to the file before it responds, as a line of base64. Returns the server. requests: see until_killed."""
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
    with open(path, "rb") as stored:
        os.ftruncate(file, stored.read().rfind(b"\n") + 1)  # behind it: a write that was cut by the kill

    def respond(request):
        line = base64.b64encode(request.body) + b"\n"
        while line:
            line = line[os.write(file, line):]
        return reply(200)

    return Scripted(until_killed(respond, requests), port=port)


def kept_points(lines):
    """As points_of, of the lines of such a file."""
    for line in lines:
        yield from points_of(decode(base64.b64decode(line), "application/x-protobuf"))


if __name__ == "__main__":
    server = keep(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
    print(server.port, flush=True)
    signal.pause()
