"""The table of faults is complete and lists tests that exist."""

import glob
import os
import re

from harness import SOURCE, case, main
from table import ROWS


def source_of(path):
    """The source file of a test."""
    stem, kind = os.path.splitext(os.path.join(SOURCE, path))
    return stem + (".py" if kind == ".py" else ".c")


@case
def there_are_forty_rows_each_with_tests():
    assert sorted(ROWS) == list(range(1, 41))
    assert all(row.title and row.outcome and row.tried and row.tests for row in ROWS.values())


@case
def listed_tests_exist():
    for number, row in ROWS.items():
        for test in row.tests:
            path, _, choice = test.partition(":")
            with open(source_of(path), encoding="utf-8") as file:
                text = file.read()
            suite, _, name = choice.replace("*", r"\w*").rpartition("/")
            pattern = rf"^Test\({suite}, {name}\b" if path.endswith(".t") else rf"^def \w*{name}"
            assert not choice or re.search(pattern, text, re.M), (number, test)


@case
def tests_named_after_a_fault_are_listed():
    for path in glob.glob(os.path.join(SOURCE, "tests", "*", "*.py")):
        with open(path, encoding="utf-8") as file:
            for number in set(re.findall(r"^def fault_(\d\d)_", file.read(), re.M)):
                tests = ROWS[int(number)].tests
                assert any(source_of(test.partition(":")[0]) == path for test in tests), (number, path)


if __name__ == "__main__":
    main()
