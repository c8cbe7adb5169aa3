"""Headers stand on their own; the public ones in C99 and C++11 as well, with every warning that a strict project turns on."""

import glob
import os
import shlex
import subprocess

from judge import BUILD, SOURCE, case, main, run

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
    assert {"weir.h", "handler.h"} <= set(headers)
    for header in headers:
        text = f"#include <weir/{header}>\n#include <weir/{header}>\nextern int something;\n"
        for standard in ("c99", "c11", "c17"):
            compile_text(CC, text, ".c", folder, f"-std={standard}", *STRICT, "-Wstrict-prototypes", *INCLUDE)
        for standard in ("c++11", "c++14", "c++17", "c++20"):
            compile_text(CXX, text, ".cc", folder, f"-std={standard}", *STRICT, *INCLUDE)


@case
def both_public_headers_go_together_in_either_order(folder):
    for order in (("weir", "handler"), ("handler", "weir")):
        text = "".join(f"#include <weir/{name}.h>\n" for name in order)
        compile_text(CC, text, ".c", folder, "-std=c99", *STRICT, *INCLUDE)
        compile_text(CXX, text, ".cc", folder, "-std=c++11", *STRICT, *INCLUDE)


@case
def private_headers_compile_alone(folder):
    include = [*INCLUDE, "-I", os.path.join(SOURCE, "lib")]
    for path in sorted(glob.glob(os.path.join(SOURCE, "lib", "*.h"))):
        if os.path.basename(path) == "pow10_table.h":
            continue  # a table in the middle of number.c
        text = f'#include "{os.path.basename(path)}"\n'
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
"""
    compile_text(CC, text, ".c", folder, "-std=c99", *STRICT, *INCLUDE)


@case
def a_cxx_program_runs(folder):
    done = run(os.path.join(BUILD, "tests", "headers", "plain"), WEIR_CONFIG={"groups": {"*": "console"}})
    assert done.returncode == 0 and done.stderr == "", done.stderr
    for words in ("]: value=1.5\n", "]: a=1\n", "]: b=2\n", "]: work.success=1\n", "]: work.failure=1\n", "]: caught=1\n", "]: total=3\n"):
        assert words in done.stdout, done.stdout


main()
