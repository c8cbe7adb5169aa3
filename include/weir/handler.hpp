/* handler.hpp: handler types in C++11 and later, on top of <weir/handler.h>. Header only: what is compiled from
 * it belongs to the plugin, so it is no part of the ABI.
 *
 * A handler is an object of a class; weir::handler_type<Class> makes the callbacks from its member functions.
 * No exception leaves a callback, as the core is written in C: it becomes an outcome. What the callbacks may
 * do, and on which thread they are called, is as in <weir/handler.h>.
 *
 *     struct Options { const char *path; };
 *     const weir_option rows[] = {WEIR_OPTION_ROW("path", PATH, WEIR_OPTION_REQUIRED, nullptr, nullptr, "the
 * file", Options, path), {}};
 *
 *     class Handler {
 *     public:
 *         typedef ::Options Options;
 *         Handler(const weir_host &host, const Options &options);
 *         void open();
 *         void emit(weir::batch &batch);
 *         void close();
 *     };
 *
 *     const weir_handler_type *weir_handler_type_at(uint32_t index)
 *     {
 *         static const weir_handler_type type = weir::handler_type<Handler>("mine", "what it does", rows);
 *         return index == 0 ? &type : nullptr;
 *     }
 */
#ifndef WEIR_HANDLER_HPP
#define WEIR_HANDLER_HPP

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <new>
#include <string>
#include <utility>

#include <unistd.h>

#include <weir/handler.h>

namespace weir
{

/* ---- Exceptions ------------------------------------------------------------------------------ */

/* Thrown by a member function of a handler: what the outcome is to be. Any other exception is a failure with
 * WEIR_OUTCOME_RETRY, whose reason is its text. */
class failure : public std::exception
{
  public:
    failure(weir_outcome_code code, std::string reason) : code_(code), reason_(std::move(reason))
    {
    }

    const char *what() const noexcept override
    {
        return reason_.c_str();
    }

    /* The destination asks for a pause of at least so many milliseconds; see weir_outcome. */
    failure &retry_after(int64_t milliseconds)
    {
        retry_after_ms_ = milliseconds;
        return *this;
    }

    /* The error that waiting calls return; see weir_outcome. */
    failure &error(int32_t code)
    {
        error_ = code;
        return *this;
    }

    void put(weir_outcome *outcome) const noexcept
    {
        outcome->code = code_;
        outcome->retry_after_ms = retry_after_ms_;
        std::strncpy(outcome->reason, what(), sizeof outcome->reason - 1);
        if (error_)
            outcome->error = error_;
    }

  private:
    weir_outcome_code code_;
    std::string reason_;
    int64_t retry_after_ms_ = 0;
    int32_t error_ = 0;
};

/* throw weir::reopen("connect " + address + ": Connection refused"); */
inline failure retry(std::string reason)
{
    return failure(WEIR_OUTCOME_RETRY, std::move(reason));
}
inline failure reopen(std::string reason)
{
    return failure(WEIR_OUTCOME_REOPEN, std::move(reason));
}
inline failure drop(std::string reason)
{
    return failure(WEIR_OUTCOME_DROP, std::move(reason));
}
inline failure failed(std::string reason)
{
    return failure(WEIR_OUTCOME_FAILED, std::move(reason));
}

/* Thrown by the constructor of a handler: the configuration is refused; see weir_host.refuse. Another exception
 * refuses it too, without an option. */
class refusal : public std::exception
{
  public:
    refusal(std::string option, std::string reason) : option_(std::move(option)), reason_(std::move(reason))
    {
    }
    const char *what() const noexcept override
    {
        return reason_.c_str();
    }
    const char *option() const noexcept
    {
        return option_.c_str();
    }

  private:
    std::string option_, reason_;
};

/* ---- Descriptors ----------------------------------------------------------------------------- */

/* Owns a descriptor. */
class descriptor
{
  public:
    explicit descriptor(int fd = -1) noexcept : fd_(fd)
    {
    }
    descriptor(descriptor &&other) noexcept : fd_(other.release())
    {
    }
    descriptor &operator=(descriptor &&other) noexcept
    {
        reset(other.release());
        return *this;
    }
    descriptor(const descriptor &) = delete;
    descriptor &operator=(const descriptor &) = delete;
    ~descriptor()
    {
        reset();
    }

    int get() const noexcept
    {
        return fd_;
    }
    explicit operator bool() const noexcept
    {
        return fd_ >= 0;
    }

    void reset(int fd = -1) noexcept
    {
        int old = fd_;
        fd_ = fd;
        if (old >= 0)
            ::close(old);
    }

    /* Returns it; the caller owns it now. */
    int release() noexcept
    {
        int fd = fd_;
        fd_ = -1;
        return fd;
    }

  private:
    int fd_;
};

/* ---- Batches --------------------------------------------------------------------------------- */

/* What emit gets. If emit returns, all of it is settled, unless it has called settle: then what that said. If
 * emit throws, what settle said, and nothing without it. */
class batch
{
  public:
    explicit batch(const weir_batch *of) noexcept : of_(of)
    {
    }

    const weir_batch *get() const noexcept
    {
        return of_;
    }
    uint32_t size() const noexcept
    {
        return of_->count;
    }
    const weir_sample &operator[](uint32_t index) const noexcept
    {
        return of_->samples[index];
    }
    const weir_sample *begin() const noexcept
    {
        return of_->samples;
    }
    const weir_sample *end() const noexcept
    {
        return of_->samples + of_->count;
    }
    const weir_series &series(const weir_sample &sample) const noexcept
    {
        return *weir_batch_series(of_, &sample);
    }

    /* The index behind the last sample of the event that has this one. */
    uint32_t event_end(uint32_t index) const noexcept
    {
        while (index < of_->count && of_->samples[index].flags & WEIR_SAMPLE_MORE)
            index++;
        return index < of_->count ? index + 1 : of_->count;
    }

    /* The next `count` samples are settled, the last `rejected` of which the destination has refused for good.
     */
    void settle(uint32_t count, uint32_t rejected = 0) noexcept
    {
        is_used_ = true;
        done_ += count;
        rejected_ += rejected;
    }

    uint32_t settled() const noexcept
    {
        return done_;
    }

    void put(weir_outcome *outcome, bool threw) const noexcept
    {
        if (!is_used_ && !threw)
            return;
        outcome->done = done_;
        outcome->rejected = rejected_;
    }

  private:
    const weir_batch *of_;
    bool is_used_ = false;
    uint32_t done_ = 0, rejected_ = 0;
};

/* ---- Handler types --------------------------------------------------------------------------- */

/* Not part of the interface: the callbacks of a class. */
template <typename Handler> class callbacks
{
  public:
    static void set(weir_handler_type *type)
    {
        type->create = create;
        type->emit = emit;
        type->destroy = destroy;
        type->open = open_of<Handler>(0);
        type->close = close_of<Handler>(0);
        type->flush = flush_of<Handler>(0);
        type->wake = wake_of<Handler>(0);
        type->probe = probe_of<Handler>(0);
        type->abandon = abandon_of<Handler>(0);
        type->emit_now = emit_now_of<Handler>(0);
    }

  private:
    struct instance {
        instance(const weir_host *the_host, const typename Handler::Options &options)
            : host(the_host), handler(*the_host, options)
        {
        }
        const weir_host *host;
        Handler handler;
    };

    static Handler &handler_of(void *self)
    {
        return static_cast<instance *>(self)->handler;
    }

    /* Returns whether it threw. */
    template <typename Call> static bool guarded(weir_outcome *outcome, Call call) noexcept
    {
        try {
            call();
            return false;
        } catch (const failure &thrown) {
            thrown.put(outcome);
        } catch (const std::bad_alloc &) {
            put(outcome, "out of memory");
        } catch (const std::exception &thrown) {
            put(outcome, thrown.what());
        } catch (...) {
            put(outcome, "an exception that is no std::exception");
        }
        return true;
    }

    static void put(weir_outcome *outcome, const char *reason) noexcept
    {
        outcome->code = WEIR_OUTCOME_RETRY;
        std::strncpy(outcome->reason, reason, sizeof outcome->reason - 1);
    }

    static void *create(const weir_host *host, const void *options)
    {
        try {
            return new instance(host, *static_cast<const typename Handler::Options *>(options));
        } catch (const refusal &thrown) {
            host->refuse(host, thrown.option(), "%s", thrown.what());
        } catch (const std::bad_alloc &) {
            host->refuse(host, "", "out of memory");
        } catch (const std::exception &thrown) {
            host->refuse(host, "", "%s", thrown.what());
        } catch (...) {
            host->refuse(host, "", "an exception that is no std::exception");
        }
        return nullptr;
    }

    static void open(void *self, weir_outcome *outcome)
    {
        guarded(outcome, [&] { handler_of(self).open(); });
    }

    static void emit(void *self, const weir_batch *of, weir_outcome *outcome)
    {
        batch given(of);
        bool threw = guarded(outcome, [&] { handler_of(self).emit(given); });
        given.put(outcome, threw);
    }

    static void emit_now(void *self, const weir_batch *of, weir_outcome *outcome)
    {
        batch given(of);
        bool is_done = handler_of(self).emit_now(given);
        outcome->code = is_done ? WEIR_OUTCOME_OK : WEIR_OUTCOME_NOT_NOW;
        given.put(outcome, !is_done);
    }

    static void flush(void *self, int64_t timeout_ms, weir_outcome *outcome)
    {
        guarded(outcome, [&] { handler_of(self).flush(timeout_ms); });
    }

    static void close(void *self)
    {
        const weir_host *host = static_cast<instance *>(self)->host;
        weir_outcome outcome = weir_outcome();
        if (guarded(&outcome, [&] { handler_of(self).close(); }))
            host->log(host, WEIR_LOG_ERROR, "close: %s", outcome.reason);
    }

    static void wake(void *self, int why, weir_outcome *outcome)
    {
        guarded(outcome, [&] { handler_of(self).wake(why); });
    }

    static void probe(void *self, int64_t timeout_ms, weir_outcome *outcome)
    {
        guarded(outcome, [&] {
            std::string remark = handler_of(self).probe(timeout_ms);
            std::strncpy(outcome->reason, remark.c_str(), sizeof outcome->reason - 1);
        });
    }

    static void abandon(void *self)
    {
        handler_of(self).abandon();
    }
    static void destroy(void *self)
    {
        delete static_cast<instance *>(self);
    }

    /* The callback if the class has the member function, else NULL. */
    template <typename H> static auto open_of(int) -> decltype(std::declval<H &>().open(), &callbacks::open)
    {
        return open;
    }
    template <typename H> static auto close_of(int) -> decltype(std::declval<H &>().close(), &callbacks::close)
    {
        return close;
    }
    template <typename H>
    static auto flush_of(int) -> decltype(std::declval<H &>().flush(int64_t()), &callbacks::flush)
    {
        return flush;
    }
    template <typename H> static auto wake_of(int) -> decltype(std::declval<H &>().wake(0), &callbacks::wake)
    {
        return wake;
    }
    template <typename H>
    static auto probe_of(int) -> decltype(std::declval<H &>().probe(int64_t()), &callbacks::probe)
    {
        return probe;
    }
    template <typename H>
    static auto abandon_of(int) -> decltype(std::declval<H &>().abandon(), &callbacks::abandon)
    {
        static_assert(noexcept(std::declval<H &>().abandon()), "abandon must be noexcept");
        return abandon;
    }
    template <typename H>
    static auto emit_now_of(int)
        -> decltype(std::declval<H &>().emit_now(std::declval<batch &>()), &callbacks::emit_now)
    {
        static_assert(noexcept(std::declval<H &>().emit_now(std::declval<batch &>())),
                      "emit_now must be noexcept: an exception allocates memory");
        return emit_now;
    }
    template <typename H> static std::nullptr_t open_of(...)
    {
        return nullptr;
    }
    template <typename H> static std::nullptr_t close_of(...)
    {
        return nullptr;
    }
    template <typename H> static std::nullptr_t flush_of(...)
    {
        return nullptr;
    }
    template <typename H> static std::nullptr_t wake_of(...)
    {
        return nullptr;
    }
    template <typename H> static std::nullptr_t probe_of(...)
    {
        return nullptr;
    }
    template <typename H> static std::nullptr_t abandon_of(...)
    {
        return nullptr;
    }
    template <typename H> static std::nullptr_t emit_now_of(...)
    {
        return nullptr;
    }
};

/* Returns the type of a class with these members; name, summary and the table of options as in
 * weir_handler_type. Set further fields (flags, formats, defaults ...) of what it returns.
 *
 *     typedef ... Options;                                  the struct that the table fills
 *     Handler(const weir_host &host, const Options &options)  create: both are valid as long as the handler
 *     ~Handler()                                            destroy
 *     void emit(weir::batch &batch)
 *
 * and, each of them optional:
 *
 *     void open()
 *     void close()
 *     void flush(int64_t timeout_ms)
 *     void wake(int why)
 *     std::string probe(int64_t timeout_ms)                 returns a remark, or ""
 *     void abandon() noexcept                               calls close(2), fstat(2) and nothing else
 *     bool emit_now(weir::batch &batch) noexcept            on the caller's thread: neither waits nor
 * allocates; false: emit gets what is not settled, at once */
template <typename Handler>
weir_handler_type handler_type(const char *name, const char *summary, const weir_option *rows)
{
    weir_handler_type type = weir_handler_type();
    type.size = sizeof type;
    type.abi = WEIR_ABI;
    type.name = name;
    type.summary = summary;
    type.options = rows;
    type.option_row_size = sizeof(weir_option);
    type.options_size = sizeof(typename Handler::Options);
    callbacks<Handler>::set(&type);
    return type;
}

} // namespace weir

#endif
