"""Documents of Prometheus' formats with names and labels that become equal, read by the parsers of its client for Python."""

import collections
import os
import re

from harness import BUILD, case, main, run
from peers import prometheus_parsers

EXPOSED = os.path.join(BUILD, "tests", "support", "exposed")
SEED, DOCUMENTS = int(os.environ.get("WEIR_TEST_SEED", 1)), int(os.environ.get("WEIR_TEST_DOCUMENTS", 2000))
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z_0-9]*)="((?:[^"\\]|\\.)*)"(?:,|$)')


def documents(kind):
    done = run(EXPOSED, SEED, DOCUMENTS, kind)
    assert done.returncode == 0, done.stderr
    printed = done.stdout.split("\f")[:-1]
    assert len(printed) == DOCUMENTS
    return [(SEED + i, document) for i, document in enumerate(printed) if document]


def check_lines(document):
    """What the parsers tolerate: a TYPE or a label that comes twice."""
    types = collections.Counter(line.split(" ")[2] for line in document.splitlines() if line.startswith("# TYPE "))
    assert max(types.values()) == 1, types
    for line in document.splitlines():
        if not line.startswith("#") and "{" in line:
            labels = line[line.index("{") + 1:line.rindex("}")]
            keys = [match.group(1) for match in LABEL.finditer(labels)]
            assert "".join(match.group(0) for match in LABEL.finditer(labels)) == labels and len(set(keys)) == len(keys), line


def check_samples(families):
    samples = collections.Counter((sample.name, *sorted(sample.labels.items())) for family in families for sample in family.samples)
    assert max(samples.values()) == 1, samples.most_common(3)


def check(kind, parse):
    for seed, document in documents(kind):
        try:
            check_lines(document)
            check_samples(list(parse(document)))
        except Exception as problem:
            raise AssertionError(f"seed {seed}: {problem}\n{document}") from problem


@case
def no_names_and_labels_make_a_page_that_the_text_parser_refuses():
    check("prometheus", prometheus_parsers()[0])


@case
def no_names_and_labels_make_a_page_that_the_openmetrics_parser_refuses():
    check("openmetrics", prometheus_parsers()[1])


main()
