// cxx_handler: appends values to a file as CSV, in C++11.
//
// Shows what matters when a handler is written in C++: the instance is an object whose destructor frees all it has, and
// no exception leaves a callback, since the core is C.

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
    {"path", WEIR_OPTION_PATH, WEIR_OPTION_REQUIRED, nullptr, nullptr, "the file", offsetof(Options, path)},
    {nullptr, 0, 0, nullptr, nullptr, nullptr, 0},
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

    // How much of the text is in the file; less: errno tells why.
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

    // Takes the last bytes off again, so that no line is torn.
    void take_back(std::size_t length)
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

    // In a forked child: only close(2). The object itself stays where it is, since freeing memory is more than that.
    void abandon() const
    {
        if (file_)
            file_->close_only();
    }

    // Event by event, each written wholly or not at all.
    void emit(const weir_batch *batch, weir_outcome *outcome)
    {
        outcome->done = 0;
        while (outcome->done < batch->count) {
            uint32_t end = outcome->done;
            std::string lines = lines_of_event(batch, end);
            std::size_t written = file_->write(lines);
            if (written < lines.size()) {
                fail(outcome, "write");
                file_->take_back(written);
                return;
            }
            outcome->done = end;
        }
    }

private:
    // Raises `at` to where the event ends.
    static std::string lines_of_event(const weir_batch *batch, uint32_t &at)
    {
        std::ostringstream lines;
        lines.precision(17);
        bool more = true;
        for (; more && at < batch->count; at++) {
            const weir_sample &sample = batch->samples[at];
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

    // As RFC 4180 wants it.
    static std::string quoted(const char *text)
    {
        std::string result = "\"";
        for (; *text; text++)
            result += *text == '"' ? std::string("\"\"") : std::string(1, *text);
        return result + '"';
    }

    void fail(weir_outcome *outcome, const char *doing) const
    {
        std::string reason = std::string(doing) + " " + options_.path + ": " + std::strerror(errno);
        outcome->code = WEIR_OUTCOME_REOPEN;
        std::strncpy(outcome->reason, reason.c_str(), sizeof outcome->reason - 1);
    }

    const Options &options_; // the core's, valid until destroy
    std::unique_ptr<File> file_;
};

// Calls something of a handler's, and turns what it throws into an answer: nothing has changed, try again.
template <typename Call> void guarded(weir_outcome *outcome, Call call) noexcept
{
    try {
        call();
    } catch (const std::exception &problem) {
        outcome->code = WEIR_OUTCOME_RETRY;
        std::strncpy(outcome->reason, problem.what(), sizeof outcome->reason - 1);
    }
}

Handler *self_of(void *self) { return static_cast<Handler *>(self); }

extern "C" {

static void *create(const weir_host *host, const void *options)
{
    try {
        return new Handler(*static_cast<const Options *>(options));
    } catch (const std::exception &problem) {
        host->refuse(host, "", "%s", problem.what());
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

// C++11 has no designated initialisers, and the order of the fields is no business of ours: so by name, once.
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
