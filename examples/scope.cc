// scope: measures the duration of a C++ scope, in C++11. The measurement ends when the scope is left in any
// way, and records success or failure.
//
//     scope
//
// To use it, copy class Timer. From C++17 on, use std::uncaught_exceptions() instead of
// std::uncaught_exception().

#include <cstdio>
#include <exception>
#include <stdexcept>

#include <weir/weir.h>

// When its scope is left, adds NAME.duration.ms and NAME.success, or NAME.failure if it is left by an
// exception. name must stay valid as long as the timer. Neither throws nor allocates.
class Timer
{
  public:
    Timer(weir_stream *stream, const char *name)
        : prof_(weir_prof_begin(stream, name)), unwinding_(std::uncaught_exception())
    {
    }

    // An exception that was already active at construction does not count: a timer may be used in a destructor.
    ~Timer()
    {
        if (std::uncaught_exception() && !unwinding_)
            weir_prof_fail(&prof_);
        weir_prof_end(&prof_);
    }

    // For failures that are not exceptions.
    void fail()
    {
        weir_prof_fail(&prof_);
    }

    Timer(const Timer &) = delete;
    Timer &operator=(const Timer &) = delete;

  private:
    weir_prof prof_;
    bool unwinding_;
};

static int parse(weir_stream *stream, const char *text)
{
    Timer timer(stream, "parse");
    int number = 0;
    for (; *text; text++) {
        if (*text < '0' || *text > '9')
            throw std::invalid_argument(text);
        number = number * 10 + (*text - '0');
    }
    if (number > 1000)
        timer.fail();
    return number;
}

int main()
{
    weir_stream *stream = weir_get_stream("my_app");
    for (const char *text : {"12", "5x", "2000"}) {
        try {
            std::printf("%d\n", parse(stream, text));
        } catch (const std::exception &error) {
            std::printf("not a number at: %s\n", error.what());
        }
    }
    WEIR_EMIT(stream, {"texts", 3}, {"numbers", 2}); // works in C++ too
    return 0;
}
