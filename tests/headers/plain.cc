// Uses the headers from C++11.

#include <weir/handler.h>
#include <weir/source.h>
#include <weir/weir.h>

#include <cstdio>
#include <stdexcept>

static void measure(weir_stream *stream, bool fail)
{
    WEIR_PROF(prof, stream, "work");
    if (!fail)
        return;
    weir_prof_fail(&prof);
    throw std::runtime_error("out of the scope by an exception");
}

int main()
{
    weir_stream *stream = weir_get_stream("cxx");
    weir_add_value(stream, "value", 1.5);
    int result = WEIR_EMIT(stream, {"a", 1}, {"b", 2});
    measure(stream, false);
    try {
        measure(stream, true);
    } catch (const std::runtime_error &) {
        weir_add_int(stream, "caught", 1);
    }
    weir_sample_spec spec{};
    spec.size = sizeof spec;
    spec.name = "total";
    spec.value = 3;
    spec.cumulative = true;
    int failed = weir_add(stream, &spec);
    const weir_label label = {"part", "all"};
    spec.kind = WEIR_KIND_INT;
    spec.integer = 3;
    spec.labels = &label;
    spec.label_count = 1;
    if (failed || weir_add(stream, &spec))
        std::puts(weir_last_error());
    return result;
}
