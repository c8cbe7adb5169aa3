// cxx_handler: appends values to a file as CSV, in C++11.
//
// Shows a handler with <weir/handler.hpp>: an object whose destructor frees its resources, and whose exceptions
// say what becomes of the values.

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sstream>
#include <string>
#include <unistd.h>

#include <weir/handler.hpp>

namespace {

struct CsvOptions {
    const char *path;
};

const weir_option rows[] = {
    WEIR_OPTION_ROW("path", PATH, WEIR_OPTION_REQUIRED, nullptr, nullptr, "the file", CsvOptions, path),
    weir_option(),
};

class Csv {
public:
    typedef CsvOptions Options;

    Csv(const weir_host &, const Options &options) : options_(options) {}

    void open()
    {
        file_.reset(::open(options_.path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
        if (!file_)
            throw failure_of("open");
    }

    void close() { file_.reset(); }

    // In a forked child: only close(2). The object is not freed, because only close(2) is allowed there.
    void abandon() noexcept
    {
        if (file_)
            ::close(file_.get());
    }

    // Writes event by event, each completely or not at all.
    void emit(weir::batch &batch)
    {
        while (batch.settled() < batch.size()) {
            uint32_t begin = batch.settled(), end = batch.event_end(begin);
            std::string lines;
            for (uint32_t i = begin; i < end; i++)
                lines += line_of(batch.series(batch[i]), batch[i]);
            write(lines);
            batch.settle(end - begin);
        }
    }

private:
    static std::string line_of(const weir_series &series, const weir_sample &sample)
    {
        std::ostringstream line;
        line.precision(17);
        line << sample.time_ns << ',' << quoted(series.group) << ',' << quoted(series.name) << ',';
        if (sample.kind == WEIR_KIND_INT)
            line << sample.value.i64 << '\n';
        else
            line << sample.value.f64 << '\n';
        return line.str();
    }

    // Quotes a field as RFC 4180 requires.
    static std::string quoted(const char *text)
    {
        std::string result = "\"";
        for (; *text; text++)
            result += *text == '"' ? std::string("\"\"") : std::string(1, *text);
        return result + '"';
    }

    void write(const std::string &text)
    {
        std::size_t written = 0;
        while (written < text.size()) {
            ssize_t wrote = ::write(file_.get(), text.data() + written, text.size() - written);
            if (wrote > 0)
                written += static_cast<std::size_t>(wrote);
            else if (errno != EINTR)
                throw take_back(written);
        }
    }

    // Removes the last bytes from the file, so that no incomplete line is left. Returns why.
    weir::failure take_back(std::size_t length)
    {
        weir::failure why = failure_of("write");
        off_t end = ::lseek(file_.get(), 0, SEEK_END);
        if (length && ::ftruncate(file_.get(), end - static_cast<off_t>(length)) != 0)
            return failure_of("truncate");
        return why;
    }

    weir::failure failure_of(const char *operation) const
    {
        return weir::reopen(std::string(operation) + " " + options_.path + ": " + std::strerror(errno));
    }

    const Options &options_; // owned by the core, valid until destroy
    weir::descriptor file_;
};

} // namespace

const weir_handler_type *weir_handler_type_at(uint32_t index)
{
    static const weir_handler_type type =
        weir::handler_type<Csv>("cxx_handler", "appends values to a file as CSV", rows);
    return index == 0 ? &type : nullptr;
}
