// cxx_handler: appends values to a file as CSV, in C++11.
//
// Shows the rules for handlers in C++: the instance is an object whose destructor frees its resources, and no
// exception leaves a callback, because the core is written in C.

#include <cerrno>
#include <cstring>
#include <exception>
#include <fcntl.h>
#include <memory>
#include <sstream>
#include <string>
#include <unistd.h>

#include <weir/handler.h>

namespace {

struct Options {
    const char *path;
};

const weir_option rows[] = {
    WEIR_OPTION_ROW("path", PATH, WEIR_OPTION_REQUIRED, nullptr, nullptr, "the file", Options, path),
    weir_option(),
};

class File {
public:
    explicit File(const char *path) : fd_(::open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644)) {}
    ~File()
    {
        if (fd_ >= 0)
            ::close(fd_);
    }
    File(const File &) = delete;
    File &operator=(const File &) = delete;

    void close_only() const
    {
        if (fd_ >= 0)
            ::close(fd_);
    }

    bool is_open() const { return fd_ >= 0; }

    // Returns the number of bytes written; sets errno if that is less than the size of the text.
    std::size_t write(const std::string &text)
    {
        std::size_t written = 0;
        while (written < text.size()) {
            ssize_t wrote = ::write(fd_, text.data() + written, text.size() - written);
            if (wrote < 0 && errno != EINTR)
                break;
            if (wrote > 0)
                written += static_cast<std::size_t>(wrote);
        }
        return written;
    }

    // Removes the last bytes from the file, so that no incomplete line is left.
    void truncate_by(std::size_t length)
    {
        off_t end = ::lseek(fd_, 0, SEEK_END);
        if (::ftruncate(fd_, end - static_cast<off_t>(length)) != 0)
            return;
    }

private:
    int fd_;
};

class Handler {
public:
    explicit Handler(const Options &options) : options_(options) {}

    void open(weir_outcome *outcome)
    {
        file_.reset(new File(options_.path));
        if (!file_->is_open())
            fail(outcome, "open");
    }

    void close() { file_.reset(); }

    // In a forked child: only close(2). The object is not freed, because only close(2) is allowed there.
    void abandon() const
    {
        if (file_)
            file_->close_only();
    }

    // Writes event by event, each completely or not at all.
    void emit(const weir_batch *batch, weir_outcome *outcome)
    {
        outcome->done = 0;
        while (outcome->done < batch->count) {
            uint32_t end = outcome->done;
            std::string lines = lines_of_event(batch, end);
            std::size_t written = file_->write(lines);
            if (written < lines.size()) {
                fail(outcome, "write");
                file_->truncate_by(written);
                return;
            }
            outcome->done = end;
        }
    }

private:
    // Advances `index` to the end of the event.
    static std::string lines_of_event(const weir_batch *batch, uint32_t &index)
    {
        std::ostringstream lines;
        lines.precision(17);
        bool more = true;
        for (; more && index < batch->count; index++) {
            const weir_sample &sample = batch->samples[index];
            const weir_series *series = weir_batch_series(batch, &sample);
            lines << sample.time_ns << ',' << quoted(series->group) << ',' << quoted(series->name) << ',';
            if (sample.kind == WEIR_KIND_INT)
                lines << sample.value.i64 << '\n';
            else
                lines << sample.value.f64 << '\n';
            more = (sample.flags & WEIR_SAMPLE_MORE) != 0;
        }
        return lines.str();
    }

    // Quotes a field as RFC 4180 requires.
    static std::string quoted(const char *text)
    {
        std::string result = "\"";
        for (; *text; text++)
            result += *text == '"' ? std::string("\"\"") : std::string(1, *text);
        return result + '"';
    }

    void fail(weir_outcome *outcome, const char *operation) const
    {
        std::string reason = std::string(operation) + " " + options_.path + ": " + std::strerror(errno);
        outcome->code = WEIR_OUTCOME_REOPEN;
        std::strncpy(outcome->reason, reason.c_str(), sizeof outcome->reason - 1);
    }

    const Options &options_; // owned by the core, valid until destroy
    std::unique_ptr<File> file_;
};

// Runs a call of the handler. Turns an exception into the outcome RETRY: the samples that are not done are
// offered again.
template <typename Call> void guarded(weir_outcome *outcome, Call call) noexcept
{
    try {
        call();
    } catch (const std::exception &error) {
        outcome->code = WEIR_OUTCOME_RETRY;
        std::strncpy(outcome->reason, error.what(), sizeof outcome->reason - 1);
    }
}

Handler *self_of(void *self) { return static_cast<Handler *>(self); }

extern "C" {

static void *create(const weir_host *host, const void *options)
{
    try {
        return new Handler(*static_cast<const Options *>(options));
    } catch (const std::exception &error) {
        host->refuse(host, "", "%s", error.what());
        return nullptr;
    }
}

static void open_it(void *self, weir_outcome *outcome)
{
    guarded(outcome, [&] { self_of(self)->open(outcome); });
}

static void emit(void *self, const weir_batch *batch, weir_outcome *outcome)
{
    guarded(outcome, [&] { self_of(self)->emit(batch, outcome); });
}

static void close_it(void *self) { self_of(self)->close(); }
static void destroy(void *self) { delete self_of(self); }
static void abandon(void *self) { self_of(self)->abandon(); }
}

// C++11 has no designated initialisers: the fields are assigned by name, so that their order does not matter.
weir_handler_type make_type()
{
    weir_handler_type type = weir_handler_type();
    type.size = sizeof type;
    type.abi = WEIR_ABI;
    type.name = "cxx_handler";
    type.summary = "appends values to a file as CSV";
    type.options = rows;
    type.option_row_size = sizeof(weir_option);
    type.options_size = sizeof(Options);
    type.create = create;
    type.open = open_it;
    type.emit = emit;
    type.close = close_it;
    type.destroy = destroy;
    type.abandon = abandon;
    return type;
}

} // namespace

const weir_handler_type *weir_handler_type_at(uint32_t index)
{
    static const weir_handler_type type = make_type();
    return index == 0 ? &type : nullptr;
}
