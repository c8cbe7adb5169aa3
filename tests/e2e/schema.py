"""`weir schema` accepts exactly the configurations that weir accepts, as far as JSON Schema can express it."""

import glob
import json
import os
import re

from harness import PLUGIN_PATH, PLUGINS, SOURCE, TEST_PLUGINS, WEIR, Skip, case, main, run
from markdown import find_all
from mdoc import Page

try:
    import jsonschema
except ImportError:
    jsonschema = None

DOTTED = os.path.join(TEST_PLUGINS, "dotted.so")
HTTP = os.path.exists(os.path.join(PLUGINS, "http.so"))
FILE = '{"handlers":{"disk":{"type":"file","path":"/tmp/x",%s}},"groups":{"*":"disk"}}'
PUSH = '{"handlers":{"push":{"type":"http","url":"http://127.0.0.1/",%s}},"groups":{"*":"push"}}'
MLBENCH = PUSH % '"format":%s'
SOURCE_OF = '{"sources":{"s":{%s}},"groups":{"*":"null"}}'


def read_schema(**env):
    done = run(WEIR, "schema", **env)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    return json.loads(done.stdout)


_validators = {}  # by the schema's text: to check a schema takes as long as hundreds of configurations


def validator(schema):
    if not jsonschema:
        raise Skip("python3-jsonschema is not installed")
    text = json.dumps(schema)
    if text not in _validators:
        jsonschema.Draft7Validator.check_schema(schema)
        _validators[text] = jsonschema.Draft7Validator(schema)
    return _validators[text]


def without_comments(text):
    """Replaces comments by blanks, but not in strings."""
    return re.sub(r'("(?:[^"\\]|\\.)*")|//[^\n]*|/\*.*?\*/', lambda found: found.group(1) or " ", text, flags=re.S)


def write(folder, text):
    path = os.path.join(folder, "weir.json")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def problems_of(schema, text):
    return [f"{'.'.join(map(str, error.absolute_path))}: {error.message}"
            for error in validator(schema).iter_errors(json.loads(without_comments(text)))]


# ---- Valid configurations -----------------------------------------------------------------------------


def documented():
    """Every configuration of the documents and examples, with its place."""
    for path in sorted(glob.glob(os.path.join(SOURCE, "examples", "config", "*.json"))):
        with open(path, encoding="utf-8") as file:
            yield path, file.read()
    for text in find_all(SOURCE):
        for snippet in text.snippets("json", "jsonc"):
            yield text.path, snippet
    page = Page(os.path.join(SOURCE, "doc", "weir.json.5"))
    for section in page.sections() - {"FORMATS", "DIAGNOSTICS"}:
        for block in page.literals(section):
            if block.startswith("{"):
                yield page.path, block


@case
def every_configuration_of_documents_and_examples_is_accepted():
    schema, seen = read_schema(), 0
    for where, text in documented():
        if '"http"' in text and not HTTP:
            continue
        problems = problems_of(schema, text)
        assert not problems, f"{where}: {text}\n{problems}"
        seen += 1
    assert seen >= 20, seen


RIGHT = [
    "{}",
    '{"$schema":"weir.schema.json","settings":{"labels":{"host":"${HOSTNAME}"},"clock":"system","max_series":5}}',
    '{"settings":{"shutdown_timeout":"${T:-5s}","max_series":"${N:-7}","clock":"${C:-auto}","reload":"1.5 m"}}',
    '{"handlers":{"*":{"queue":"4MiB","format":"text"},"a":{"type":"null"}},"groups":{"*":["a"],"x.y":["inherit","console"],"z":[]}}',
    FILE % '"append":"${A:-false}","mode":"0640","batch":"${B:-100}","linger":".5s","queue":"10MB"',
    FILE % '"format":{"type":"influx","integers":true}',
    FILE % '"format":{"type":"${F:-influx}","integers":true}',
    FILE % '"format":"${F:-bai}"',
    FILE % '"format":{"type":"bai","style":"elasticsearch"}',
    FILE % '"spool":"$$x/${PID}"',
    '{"handlers":{"f":{"type":"${TYPE:-file}","path":"/tmp/x"}},"groups":{"*":"f"}}',
    '{"handlers":{"s":{"type":"dotted","tls":{"name":"n"},"plugin":"%s"}},"groups":{"*":"s"}}' % DOTTED,
    '{"groups":{"*":"console","weir":"null"}}',
    '{"groups":{"*":{"to":"null"},"a":[{"to":["null"],"only":["x"],"except":["y*"],"sample":0.5},"inherit","console"]}}',
    '{"groups":{"a":{"to":"null","rename":{"a":"b","c.*":"d.*"},"labels":{"k":"${K:-v}"},"drop_labels":[]}}}',
    '{"groups":{"*":{"to":["null","console"],"keep_labels":["a"]}}}',
    '{"include":[]}',
    '{"include":"./*.no_such","groups":{"*":"console"}}',
    SOURCE_OF % '"type":"fifo","path":"/tmp/${P:-p}","parse":"bai","group":"job","labels":{"client_id":"7"},"series_limit":"${N:-9}"',
    SOURCE_OF % '"type":"forward","listen":["unix:/tmp/s"],"mode":"0666","allow_uids":["7"]',
    SOURCE_OF % '"type":"statsd","listen":["udp://127.0.0.1:0"],"group_prefix":"s"',
]
RIGHT_HTTP = [
    PUSH % '"headers":{"X-Key":"${KEY:-k}"},"timeout":"10s","method":"PUT","verify":false',
    PUSH % '"format":"prometheus"',
    PUSH % '"format":{"type":"openmetrics","units":"as_is"}',
    MLBENCH % '{"type":"mlbench","run_id":"7"}',
]


def valid_configs():
    return RIGHT + (RIGHT_HTTP if HTTP else [])


@case
def weir_and_the_schema_accept_the_same_valid_configurations(folder):
    schema = read_schema()
    for text in valid_configs():
        done = run(WEIR, "check", write(folder, text))
        assert done.returncode == 0, f"{text}\n{done.stderr}"
        problems = problems_of(schema, text)
        assert not problems, f"{text}\n{problems}"


# ---- Invalid configurations ---------------------------------------------------------------------------

WRONG = [
    # the whole
    '[]',
    '{"group":{}}',
    '{"handlers":[]}',
    '{"groups":"console"}',
    '{"settings":null}',
    '{"$schema":7}',
    '{"include":7}',
    '{"include":""}',
    '{"include":["a",7]}',
    '{"include":"$X"}',
    # settings
    '{"settings":{"shutdown_timeout":5}}',
    '{"settings":{"shutdown_timeout":"5"}}',
    '{"settings":{"shutdown_timeout":"5x"}}',
    '{"settings":{"shutdown_timeout":"-5s"}}',
    '{"settings":{"shutdown_timeout":"5 s "}}',
    '{"settings":{"max_series":0}}',
    '{"settings":{"max_series":30000001}}',
    '{"settings":{"max_series":"many"}}',
    '{"settings":{"max_series":1.5}}',
    '{"settings":{"max_serie":5}}',
    '{"settings":{"clock":"rdtsc"}}',
    '{"settings":{"clock":true}}',
    '{"settings":{"labels":["a"]}}',
    '{"settings":{"labels":{"a":1}}}',
    '{"settings":{"labels":{"host":"$HOST"}}}',
    '{"settings":{"labels":{"host":"${1}"}}}',
    '{"settings":{"labels":{"host":"${HOST"}}}',
    '{"settings":{"labels":{"host":"${file:relative}"}}}',
    # handlers
    '{"handlers":{"disk":{"path":"/tmp/x"}}}',
    '{"handlers":{"disk":"file"}}',
    '{"handlers":{"disk":{"type":"fil","path":"/tmp/x"}}}',
    '{"handlers":{"disk":{"type":"../evil","plugin":"/x.so"}}}',
    '{"handlers":{"disk":{"type":"x","plugin":"x.so"}}}',
    '{"handlers":{"disk":{"type":"x","plugin":5}}}',
    '{"handlers":{"disk":{"type":"file"}}}',
    '{"handlers":{"inherit":{"type":"null"}}}',
    '{"handlers":{"a\\nb":{"type":"null"}}}',
    '{"handlers":{"":{"type":"null"}}}',
    '{"handlers":{"*":{"type":"file"}}}',
    '{"handlers":{"*":{"queue":"5"}}}',
    '{"handlers":{"*":{"path":"/tmp/x"}}}',
    '{"handlers":{"n":{"type":"null","format":"json"}},"groups":{"*":"n"}}',
    '{"handlers":{"n":{"type":"null","path":"/tmp/x"}},"groups":{"*":"n"}}',
    FILE % '"pat":"/y"',
    FILE % '"append":"yes"',
    FILE % '"append":1',
    FILE % '"append":null',
    FILE % '"queue":"64"',
    FILE % '"queue":4096',
    FILE % '"queue":"4mb"',
    FILE % '"overflow":"drop"',
    FILE % '"delivery":true',
    FILE % '"batch":0',
    FILE % '"batch":1000001',
    FILE % '"batch":"5"',
    FILE % '"spool":""',
    FILE % '"spool":["/x"]',
    FILE % '"format":"jsn"',
    FILE % '"format":"prometheus"',
    FILE % '"format":{"kind":"json"}',
    FILE % '"format":{"type":"json","indent":"2"}',
    FILE % '"format":{"type":"influx","integers":"yes"}',
    FILE % '"format":{"type":"influx","temporality":"deltas"}',
    FILE % '"format":{"type":"influx","name_separator":5}',
    FILE % '"format":{"type":"graphite","temporality":true}',
    FILE % '"format":{"type":"statsd","histograms":"g"}',
    FILE % '"format":{"type":"json","temporality":"delta"}',
    FILE % '"format":{"type":"bai","style":"kafka2"}',
    FILE % '"format":"openmetrics"',
    # sources
    '{"sources":[]}',
    '{"sources":{"s":{"path":"/tmp/x"}}}',
    SOURCE_OF % '"type":"fif","path":"/tmp/x"',
    SOURCE_OF % '"type":"fifo","pat":"/tmp/x"',
    SOURCE_OF % '"type":"fifo","path":"/tmp/x","parse":"xml"',
    SOURCE_OF % '"type":"fifo","path":"/tmp/x","series_limit":0',
    SOURCE_OF % '"type":"fifo","path":"/tmp/x","labels":["a"]',
    SOURCE_OF % '"type":"fifo","path":"/tmp/x","queue":"1MiB"',
    SOURCE_OF % '"type":"forward","listen":["unix:/tmp/s"],"parse":"json"',
    SOURCE_OF % '"type":"forward","connections":0',
    SOURCE_OF % '"type":"statsd","idle_timeout":"5"',
    '{"settings":{"instance":7}}',
    '{"settings":{"instance":"${1}"}}',
    FILE % '"format":{"type":"mlbench","run_id":"7"}',
    FILE % '"format":7',
    # routes
    '{"groups":{"*":5}}',
    '{"groups":{"*":{"handlers":[]}}}',
    '{"groups":{"*":{}}}',
    '{"groups":{"*":{"only":["a"]}}}',
    '{"groups":{"*":{"to":[]}}}',
    '{"groups":{"*":{"to":{"to":"null"}}}}',
    '{"groups":{"*":{"to":"null","samples":0.5}}}',
    '{"groups":{"*":{"to":"null","sample":2}}}',
    '{"groups":{"*":{"to":"null","only":"a"}}}',
    '{"groups":{"*":[{"to":"null","except":[5]}]}}',
    '{"groups":{"*":[{"to":"null","rename":["a"]}]}}',
    '{"groups":{"*":[{"to":"null","rename":{"a":""}}]}}',
    '{"groups":{"*":[{"to":"null","labels":{"a":5}}]}}',
    '{"groups":{"*":["console",["console"]]}}',
    '{"groups":{"*":"inherit"}}',
    '{"groups":{"*":["console","inherit"]}}',
    '{"groups":{"a":[""]}}',
    '{"groups":{"a..b":"console"}}',
    '{"groups":{"a.*":"console"}}',
    '{"groups":{".a":"console"}}',
    '{"groups":{"a\\tb":"console"}}',
]
WRONG_HTTP = [
    PUSH % '"method":"GET"',
    PUSH % '"headers":{"X-Key":7}',
    PUSH % '"verify":"no"',
    MLBENCH % '"mlbench"',
    MLBENCH % '{"type":"mlbench"}',
    MLBENCH % '{"type":"influx","run_id":"7"}',
    PUSH % '"format":{"type":"prometheus","units":"seconds"}',
    PUSH % '"format":{"type":"openmetrics","tags":true}',
]

# Configurations that only weir refuses, and why a schema cannot. Errors that a JSON parser hides from a validator (comments, duplicate
# keys, places) are not listed.
BEYOND = [
    # a number with a unit is a string to a schema, and strings have no range
    FILE % '"queue":"1B"',
    '{"settings":{"stats_interval":"2d"}}',
    FILE % '"linger":"99999999999999d"',
    # 100.0 is an integer to JSON Schema
    FILE % '"batch":100.0',
    # files that do not exist
    '{"include":"no_such.json"}',
    # the handlers are defined elsewhere in the same document
    '{"groups":{"*":"dsk"}}',
    '{"groups":{"*":"file"}}',
    # members of an object in a route that exclude each other, and what passes nothing
    '{"groups":{"*":{"to":"null","sample":0}}}',
    '{"groups":{"*":{"to":"null","only":[]}}}',
    '{"groups":{"*":{"to":"null","keep_labels":["a"],"drop_labels":["a"]}}}',
    '{"groups":{"*":["null",{"to":"null","sample":0.5}]}}',
    '{"groups":{"*":{"to":"null","rename":{"a":"b*"}}}}',
    # "*" applies to types that write this format and to others
    '{"handlers":{"*":{"format":"prometheus"},"a":{"type":"file","path":"/tmp/x"}},"groups":{"*":"a"}}',
    # options of a format that depend on each other, or on more than their type
    FILE % '"format":{"type":"influx","name_separator":" "}',
    # variables are expanded when the configuration is read
    '{"settings":{"labels":{"host":"${NO_SUCH_VARIABLE}"}}}',
    FILE % '"overflow":"${O:-drop}"',
    FILE % '"append":"${A:-yes}"',
    '{"handlers":{"f":{"type":"${T:-fil}"}},"groups":{"*":"f"}}',
    # a plugin's own types and options are not known before it is loaded
    '{"handlers":{"f":{"type":"x","plugin":"/no/such.so","y":1}},"groups":{"*":"f"}}',
    # checks in the code of a handler type are not in its option table
    FILE % '"mode":"rw-r--r--"',
    # schemas count characters, weir counts bytes
    json.dumps({"groups": {"ä" * 200: "console"}}, ensure_ascii=False),
    # the keys of settings.labels are names, those of other maps are not
    '{"settings":{"labels":{"a\\nb":"c"}}}',
]
BEYOND_HTTP = [
    # the same, and combinations of options; the url may also be in the environment, with the format otlp
    '{"handlers":{"p":{"type":"http"}},"groups":{"*":"p"}}',
    '{"handlers":{"p":{"type":"http","url":"no url"}},"groups":{"*":"p"}}',
    PUSH % '"password":"p"',
    MLBENCH % '{"type":"mlbench","run_id":"7","pod_name":"p"}',
]


def refused_by_weir(folder, text):
    return run(WEIR, "check", write(folder, text)).returncode == 1


@case
def weir_and_the_schema_refuse_the_same(folder):
    schema = read_schema()
    wrong = WRONG + (WRONG_HTTP if HTTP else [])
    assert len(wrong) >= 30
    for text in wrong:
        assert refused_by_weir(folder, text), f"weir accepts {text}"
    accepted = [text for text in wrong if not problems_of(schema, text)]
    assert not accepted, "the schema accepts " + "\n".join(accepted)


@case
def configurations_that_only_weir_can_refuse_are_listed(folder):
    schema = read_schema()
    for text in BEYOND + (BEYOND_HTTP if HTTP else []):
        assert refused_by_weir(folder, text), f"weir accepts {text}"
        assert not problems_of(schema, text), f"the schema refuses {text}: move it to the other list"


# ---- Descriptions for editors -------------------------------------------------------------------------


def members(folder_of, path=()):
    """(path, property) for each property of an object of the schema."""
    for name, property_ in folder_of.get("properties", {}).items():
        yield (*path, name), property_
        if "properties" in property_:
            yield from members(property_, (*path, name))


@case
def every_default_is_accepted_by_its_own_property():
    schema, seen = read_schema(), 0
    places = [schema["properties"]["settings"], *schema["definitions"].values()]
    for place in places:
        for path, property_ in members(place):
            if "default" in property_:
                checked = dict(property_, definitions=schema["definitions"])
                errors = [error.message for error in validator(checked).iter_errors(property_["default"])]
                assert not errors, (path, property_["default"], errors)
                seen += 1
    assert seen >= 60, seen


def default_of(option):
    """The default as a value in a configuration."""
    kind, text = option["type"], option["default"]
    if text is None or kind not in ("bool", "int", "double", "list"):
        return text
    if kind != "list":
        return json.loads(text)
    return json.loads(f"[{text}]") if option["allowed"] else [item for item in text.split(",") if item]


def assert_describes(place, options, where):
    """Checks that exactly the options of a table are described, each with its help, its default, and whether it is required."""
    found = {".".join(path): property_ for path, property_ in members(place) if "properties" not in property_}
    for name in ("type", "format"):
        found.pop(name, None)
    assert set(found) == {option["name"] for option in options}, (where, sorted(found))
    for option in options:
        property_ = found[option["name"]]
        assert property_["description"].startswith(option["help"]), (where, option, property_)
        assert property_.get("default") == default_of(option), (where, option, property_)
        top = option["name"].split(".")[0]
        assert not option["required"] or top in place["required"], (where, option)
        if option["type"] == "enum":
            assert property_["anyOf"][0]["enum"] == option["allowed"].split("|"), (where, option)


@case
def every_option_is_described_with_help_default_and_enum_values():
    schema = read_schema()
    handlers = json.loads(run(WEIR, "handlers", "--json").stdout)
    assert {"null", "console", "file", "fifo"} <= {handler["name"] for handler in handlers}
    for handler in handlers:
        place = schema["definitions"]["handler_" + handler["name"]]
        assert place["additionalProperties"] is False
        assert_describes(place, handler["options"] + handler["common_options"], handler["name"])
        assert ("format" in place["properties"]) == (handler["format"] is not None), handler["name"]
        assert not handler["format"] or place["properties"]["format"]["default"] == handler["format"]
    for form in json.loads(run(WEIR, "formats", "--json").stdout):
        assert_describes(schema["definitions"]["format_" + form["name"]], form["options"], form["name"])
    assert_describes(schema["properties"]["settings"], json.loads(run(WEIR, "settings", "--json").stdout), "settings")
    common = next(handler for handler in handlers if handler["name"] == "null")["common_options"]
    assert_describes(schema["definitions"]["defaults"], common, "handlers.*")


@case
def every_reference_has_a_definition_and_every_definition_is_used():
    schema = read_schema()
    referred = set(re.findall(r'"#/definitions/(\w+)"', json.dumps(schema)))
    assert referred == set(schema["definitions"]), referred ^ set(schema["definitions"])


@case
def types_of_the_plugin_path_are_offered_and_routes_name_those_that_need_no_options():
    schema = read_schema()
    types = schema["definitions"]["handler"]["else"]["properties"]["type"]["anyOf"][0]
    assert {"null", "console", "file", "fifo"} <= set(types["enum"]), types
    assert types["enum"] == sorted(types["enum"]) and len(types["enum"]) == len(types["enumDescriptions"])
    routes = schema["definitions"]["destination"]["anyOf"][0]["enum"]
    assert routes[0] == "inherit" and "console" in routes and "file" not in routes, routes


@case
def options_with_dots_are_objects_whose_members_may_be_required(folder):
    schema = read_schema()
    dotted = schema["definitions"]["handler_dotted"]
    assert dotted["required"] == ["tls"], dotted
    assert dotted["properties"]["tls"]["required"] == ["name"] and not dotted["properties"]["tls"]["additionalProperties"]
    right = '{"handlers":{"d":{"type":"dotted","tls":{"name":"n","deep":{"er":2.5}},"words":["a","b"]}},"groups":{"*":"d"}}'
    for text, good in ((right, True), (right.replace('"name":"n",', ""), False), (right.replace('"er"', '"err"'), False),
                       (right.replace("2.5", "11"), False), (right.replace('"a"', "1"), False),
                       ('{"handlers":{"d":{"type":"dotted"}},"groups":{"*":"d"}}', False),
                       ('{"groups":{"*":"dotted"}}', False)):
        if text != '{"groups":{"*":"dotted"}}':
            assert (not problems_of(schema, text)) == good, (text, problems_of(schema, text))
        assert (run(WEIR, "check", write(folder, text)).returncode == 0) == good, text


@case
def a_broken_plugin_is_reported_and_the_rest_is_described(folder):
    with open(os.path.join(folder, "broken.so"), "w", encoding="utf-8") as file:
        file.write("no object at all")
    done = run(WEIR, "schema", WEIR_PLUGIN_PATH=folder + ":" + PLUGIN_PATH)
    assert done.returncode == 1 and "broken.so" in done.stderr, done
    assert "handler_file" in json.loads(done.stdout)["definitions"]


main()
