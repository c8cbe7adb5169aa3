// spdlog: its basic file sink, written by the calling thread (way=sync) or by a thread of spdlog (way=async).
// The value is formatted with "{}", because "{:.3f}" takes 10 % longer.

#include <cstring>
#include <exception>
#include <memory>

#include <spdlog/async.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/spdlog.h>

#include "../support/measure.h"

static std::shared_ptr<spdlog::logger> logger;

static void open_logger(const struct task *task)
{
    try {
        if (std::strcmp(task->way, "async") == 0)
            logger = spdlog::basic_logger_mt<spdlog::async_factory>("my_app", task->file, true);
        else
            logger = spdlog::basic_logger_mt("my_app", task->file, true);
    } catch (const std::exception &error) {
        measure_fail("%s", error.what());
    }
    logger->set_pattern("[%E.%f][%n]: %v");
}

static void *begin(const struct task *)
{
    return logger.get();
}

static void add(void *state, const double *values, size_t count)
{
    auto *to = static_cast<spdlog::logger *>(state);
    for (size_t i = 0; i < count; i++)
        to->info("latency={}", values[i]);
}

static bool is_settled()
{
    auto pool = spdlog::thread_pool();
    return !pool || pool->queue_size() == 0;
}

// Destroying the last logger and the pool writes the queued messages and closes the file.
static void close_logger(const struct task *)
{
    logger.reset();
    spdlog::shutdown();
}

int main(int argc, char **argv)
{
    subject spdlog = {};
    spdlog.open = open_logger;
    spdlog.begin = begin;
    spdlog.add = add;
    spdlog.settled = is_settled;
    spdlog.close = close_logger;
    return measure(argc, argv, &spdlog);
}
