"""Each header compiles alone; the public ones also as C99 and C++11, with the warnings of strict projects."""

import glob
import itertools
import os
import shlex
import shutil
import subprocess

from harness import BUILD, SOURCE, case, main, run

CC = shlex.split(os.environ.get("WEIR_TEST_CC", "cc"))
CXX = shlex.split(os.environ.get("WEIR_TEST_CXX", "c++"))
INCLUDE = ["-I", os.path.join(SOURCE, "include"), "-I", os.path.join(BUILD, "include")]
STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror"]


def compile_text(compiler, text, suffix, folder, *flags):
    path = os.path.join(folder, "unit" + suffix)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    done = subprocess.run([*compiler, *flags, "-c", path, "-o", os.path.join(folder, "unit.o")], capture_output=True, text=True)
    assert done.returncode == 0 and done.stderr == "", f"{text}{' '.join(flags)}\n{done.stderr}"


@case
def public_headers_compile_alone_as_c_and_as_cxx(folder):
    headers = [os.path.basename(path) for path in glob.glob(os.path.join(SOURCE, "include", "weir", "*.h"))] + ["version.h"]
    assert {"weir.h", "handler.h", "host.h", "options.h", "types.h", "testing.h"} <= set(headers)
    for header in headers:
        text = f"#include <weir/{header}>\n#include <weir/{header}>\nextern int something;\n"
        for standard in ("c99", "c11", "c17"):
            compile_text(CC, text, ".c", folder, f"-std={standard}", *STRICT, "-Wstrict-prototypes", *INCLUDE)
        for standard in ("c++11", "c++14", "c++17", "c++20"):
            compile_text(CXX, text, ".cc", folder, f"-std={standard}", *STRICT, *INCLUDE)


@case
def the_cxx_header_compiles_alone(folder):
    text = "#include <weir/handler.hpp>\n#include <weir/handler.hpp>\nextern int something;\n"
    for standard in ("c++11", "c++14", "c++17", "c++20"):
        compile_text(CXX, text, ".cc", folder, f"-std={standard}", *STRICT, "-Wold-style-cast", *INCLUDE)


@case
def public_headers_can_be_included_in_any_order(folder):
    for order in itertools.permutations(("weir", "handler", "testing", "options")):
        text = "".join(f"#include <weir/{name}.h>\n" for name in order)
        compile_text(CC, text, ".c", folder, "-std=c99", *STRICT, *INCLUDE)
        compile_text(CXX, text, ".cc", folder, "-std=c++11", *STRICT, *INCLUDE)


@case
def private_headers_compile_alone(folder):
    include = [*INCLUDE, "-I", os.path.join(SOURCE, "lib")]
    paths = sorted(glob.glob(os.path.join(SOURCE, "lib", "*", "*.h")))
    assert len(paths) > 50, paths
    for path in paths:
        if os.path.basename(path) == "pow10_table.h":
            continue  # included by number.c only
        text = f'#include "{os.path.relpath(path, os.path.join(SOURCE, "lib"))}"\n'
        compile_text(CC, text, ".c", folder, "-std=gnu11", "-D_GNU_SOURCE", *STRICT, *include)


@case
def the_macros_work_in_c99(folder):
    text = """
#include <weir/weir.h>
int measure(weir_stream *stream);
int measure(weir_stream *stream)
{
    WEIR_PROF(prof, stream, "work");
    return WEIR_EMIT(stream, {"a", 1}, {"b", 2});
}
int spool_is_known(const weir_handler_stats *stats);
int spool_is_known(const weir_handler_stats *stats)
{
    return WEIR_HAS(stats, spool_limit);
}
"""
    compile_text(CC, text, ".c", folder, "-std=c99", *STRICT, *INCLUDE)


CXX_PROGRAM = """
#include <weir/handler.h>
#include <weir/testing.h>
#include <weir/weir.h>
static void emit(void *, const weir_batch *batch, weir_outcome *outcome)
{
    for (uint32_t i = 0; i < batch->count; i++)
        if (!weir_batch_series(batch, &batch->samples[i])->unit)
            outcome->rejected++;
    outcome->error = WEIR_ERR_TOO_LARGE;
    if (WEIR_HAS(batch, label_count) && !WEIR_HAS(outcome, reason))
        outcome->code = WEIR_OUTCOME_RETRY;
}
const weir_handler_type *weir_handler_type_at(uint32_t index)
{
    static weir_handler_type type = weir_handler_type();
    type.emit = emit;
    return index ? nullptr : &type;
}
int measure(weir_stream *stream)
{
    WEIR_PROF(prof, stream, "work");
    weir_testing_sample sample = weir_testing_sample();
    return WEIR_EMIT(stream, {"a", 1}, {"b", 2}) + weir_testing_add_outcome(WEIR_TESTING_RETRY, 0, 1) +
           (weir_testing_get(nullptr, "a", 0, &sample, sizeof sample) ? 0 : 1);
}
"""


FIELDS = {"BOOL": "bool", "INT": "int64_t", "DOUBLE": "double", "STRING": "const char *", "PATH": "const char *", "DURATION": "int64_t",
          "SIZE": "int64_t", "ENUM": "int64_t", "LIST": "weir_list", "MAP": "weir_map"}
ROW = """
#include <stdbool.h>
#include <weir/options.h>
struct inner { %(ctype)s field; };
struct options { char before; struct inner inner; };
extern const weir_option rows[];
const weir_option rows[] = {
    WEIR_OPTION_ROW("in.field", %(type)s, WEIR_OPTION_REQUIRED, NULL, NULL, "a field", struct options, inner.field),
};
"""


def is_refused(compiler, text, suffix, folder, *flags):
    path = os.path.join(folder, "refused" + suffix)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    done = subprocess.run([*compiler, *flags, "-c", path, "-o", os.path.join(folder, "unit.o")], capture_output=True, text=True)
    assert done.returncode == 0 or "the field does not have the C type of the option" in done.stderr, done.stderr
    return done.returncode != 0


@case
def a_row_for_a_field_of_another_type_does_not_compile(folder):
    for row, ctype in FIELDS.items():
        right = ROW % {"type": row, "ctype": ctype}
        compile_text(CC, right, ".c", folder, "-std=c99", *STRICT, *INCLUDE)
        compile_text(CC, right, ".c", folder, "-std=c11", *STRICT, *INCLUDE)
        compile_text(CXX, right, ".cc", folder, "-std=c++11", *STRICT, *INCLUDE)
        for other in sorted(set(FIELDS.values()) | {"int", "unsigned long", "float", "char *", "char"} - {ctype}):
            wrong = ROW % {"type": row, "ctype": other}
            assert is_refused(CC, wrong, ".c", folder, "-std=c11", *INCLUDE) == (other != ctype), wrong
            assert is_refused(CXX, wrong, ".cc", folder, "-std=c++11", *INCLUDE) == (other != ctype), wrong


@case
def the_headers_cause_no_warnings_in_cxx(folder):
    """With each installed compiler and further warnings of strict projects; not as system headers."""
    compilers = [CXX] + [[name] for name in ("g++", "clang++") if shutil.which(name) and name not in CXX]
    warnings = ["-Wold-style-cast", "-Wcast-qual", "-Wcast-align", "-Wnon-virtual-dtor", "-Woverloaded-virtual", "-Wundef", "-Wsign-conversion"]
    for compiler in compilers:
        for standard in ("c++11", "c++17"):
            compile_text(compiler, CXX_PROGRAM, ".cc", folder, f"-std={standard}", *STRICT, *warnings, *INCLUDE)


@case
def a_cxx_program_runs(folder):
    done = run(os.path.join(BUILD, "tests", "headers", "plain"), WEIR_CONFIG={"groups": {"*": "console"}})
    assert done.returncode == 0 and done.stderr == "", done.stderr
    for words in ("]: value=1.5\n", "]: a=1\n", "]: b=2\n", "]: work.success=1\n", "]: work.failure=1\n", "]: caught=1\n", "]: total=3\n"):
        assert words in done.stdout, done.stdout


main()
