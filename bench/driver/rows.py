"""The rows of the table: the compared figures, and the goals."""

from dataclasses import dataclass
from statistics import median

# ---- Goals -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Goal:
    """A limit for the ratio of weir's figure to the peer's, or for the figure itself; if there are two, one of them must be met."""
    text: str
    ratio_max: float = None
    ratio_min: float = None
    figure_max: float = None
    figure_min: float = None

    def is_met(self, figure, ratio):
        met = []
        if self.ratio_max is not None:
            met.append(ratio <= self.ratio_max)
        if self.ratio_min is not None:
            met.append(ratio >= self.ratio_min)
        if self.figure_max is not None:
            met.append(figure <= self.figure_max)
        if self.figure_min is not None:
            met.append(figure >= self.figure_min)
        return any(met)

    def margin(self, figure, ratio):
        """Returns how many times better than the goal the figure is; below 1: not met. None: not expressible as a ratio."""
        margins = []
        if self.ratio_max is not None:
            margins.append(self.ratio_max / ratio)
        if self.ratio_min is not None:
            margins.append(ratio / self.ratio_min)
        if self.figure_max:
            margins.append(self.figure_max / figure)
        if self.figure_min:
            margins.append(figure / self.figure_min)
        return max(margins) if margins else None


def at_most(ratio, text=None):
    return Goal(text or f"at most {ratio:g}x", ratio_max=ratio)


def part_of(number):
    return Goal(f"at most 1/{number}", ratio_max=1 / number)


def at_least(ratio):
    return Goal(f"at least {ratio:g}x", ratio_min=ratio)


# ---- Figures -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Figure:
    """One number of a job's report, and the unit in which it is shown."""
    job: str
    key: str
    unit: str
    scale: float = 1  # the reported number is multiplied by this
    decimals: int = 1


def call(job, key="call_ns"):
    return Figure(job, key, "ns", decimals=1)


def tail(job, key):
    return Figure(job, key, "ns", decimals=0)


def rate(job):
    return Figure(job, "rate", "M/s", 1e-6, 2)


def sustained(job):
    return Figure(job, "call_ns", "ns", decimals=1)


def processor(job):
    return Figure(job, "cpu_ns", "ns", decimals=1)


def stamps(job, key):
    return Figure(job, key, "ns", decimals=0)


def synced(job):
    return Figure(job, "event_us", "us", decimals=2)


def scrape(job):
    return Figure(job, "scrape_ms", "ms", decimals=1)


def chart(key):
    return Figure("chart", key, "ms", decimals=2)


def memory(job):
    return Figure(job, "peak_kb", "MB", 1 / 1024, 1)


@dataclass(frozen=True)
class Row:
    what: str
    figure: Figure
    peer_name: str = ""
    peer: Figure = None
    goal: Goal = None


def list_tails():
    peers = {"spdlog sync": "spdlog sync tails", "spdlog async": "spdlog async tails", "fprintf": "fprintf tails",
              "lttng-ust": "lttng tails", "rdtsc alone": "rdtsc tails"}
    names = {"p50_ns": "half of the calls", "p99_ns": "99 % of the calls", "p999_ns": "99.9 % of the calls",
             "max_ns": "the longest call"}
    return [Row(f"tail: {label} within", tail("weir tails", key), peer, tail(job, key)) for key, label in names.items()
            for peer, job in peers.items()]


GOALS = [
    Row("call by name", call("weir name"), "lttng-ust", call("lttng"), part_of(8)),
    Row("call by name", call("weir name"), "spdlog sync", call("spdlog sync"), part_of(16)),
    Row("call by name", call("weir name"), "spdlog async", call("spdlog async"), part_of(40)),
    Row("call by name", call("weir name"), "rdtsc alone", call("rdtsc"), at_most(1.7)),
    Row("call by handle", call("weir handle"), "rdtsc alone", call("rdtsc"), at_most(1.4)),
    Row("weir_emit of 8, a value", call("weir emit"), "rdtsc alone", call("rdtsc"),
        Goal("at most 6 ns, or 0.75x", ratio_max=0.75, figure_max=6)),
    Row("call by name, 2 threads", call("weir name, 2 threads"), "1 thread", call("weir name"), at_most(1.3)),
    Row("call by name, 10,000 series", call("weir 10000 series"), "1 series", call("weir name"), at_most(3)),
    Row("call by name, 64 threads, CPU time", call("weir 64 threads"), "1 thread", call("weir 1 null"),
        at_most(1.3, "no shared line: 1.3x")),
    Row("the same: calls that blocked", Figure("weir 64 threads", "waits", "", decimals=0), goal=Goal("no lock: 0", figure_max=0)),
    Row("call by name, 20 handlers", call("weir 20 null"), "1 handler", call("weir 1 null"), at_most(1.1, "no change: 1.1x")),
    Row("file, text", rate("weir text"), "spdlog sync", rate("spdlog sync lines"), at_least(5)),
    Row("file, text", rate("weir text"), "fprintf", rate("fprintf lines"), at_least(7)),
    Row("file, text", rate("weir text"), "spdlog async", rate("spdlog async lines"), at_least(12)),
    Row("file, text, 2 threads", rate("weir text, 2 threads"), "spdlog sync", rate("spdlog sync lines, 2 threads"), at_least(4)),
    Row("file, json", rate("weir json"), "fprintf", rate("fprintf json"), at_least(5)),
    Row("file, text, random doubles", rate("weir random"), "fprintf %.17g", rate("fprintf random"), at_least(6)),
    Row("null handler", rate("weir null"), "fprintf to a file", rate("fprintf lines"), at_least(18)),
    Row("http to VictoriaMetrics", rate("weir http"), "libcurl and snprintf", rate("curl"), at_least(1.3)),
    Row("kafka to mock brokers", rate("weir kafka"), "librdkafka and snprintf", rate("kafka"), at_least(0.8)),
    Row("nats to JetStream", rate("weir nats"), "libnats and snprintf", rate("nats"), at_least(0.8)),
    Row("elastic by http", rate("weir elastic"), "libcurl and snprintf", rate("curl elastic"), at_least(0.8)),
    Row("otlp by http", rate("weir otlp"), "libcurl and protobuf-c", rate("curl otlp"), at_least(0.8)),
    Row("peak memory, file, text", memory("weir text"), "fprintf", memory("fprintf lines"), at_most(1.5)),
    Row("sync to standard output, a file", synced("weir synced"), "Python's print", synced("print"), part_of(4)),
    Row("sync to standard output, a pipe", synced("weir synced, pipe"), "Python's print", synced("print, pipe"), part_of(4)),
    Row("child that adds a value: more than", Figure("weir children", "more_us", "us", decimals=0), "a child without weir",
        Figure("weir children", "plain_us", "us", decimals=0), Goal("at most 400 us", figure_max=400)),
    Row("wake-ups while idle", Figure("weir idle", "switches", "", decimals=0), goal=Goal("none", figure_max=0)),
    Row("from idle to the file", Figure("weir arrival", "median_us", "us", decimals=0),
        goal=Goal("under 1000 us", figure_max=999.9)),
    Row("counter by handle, aggregated", call("weir counter"), "prometheus-cpp", call("counter"), at_most(0.7)),
    Row("gauge by handle, aggregated", call("weir gauge"), "prometheus-cpp", call("gauge"), at_most(1.3)),
    Row("counter by handle, aggregated, 2 threads", call("weir counter, 2 threads"), "prometheus-cpp", call("counter, 2 threads"),
        part_of(10)),
    Row("histogram by handle, aggregated", call("weir histogram"), "prometheus-cpp, 14 buckets", call("histogram"), part_of(3)),
    Row("processor time of an increment, all threads", processor("weir aggregated counter"), "prometheus-cpp", processor("counter lines"),
        at_most(0.75)),
    Row("processor time of an increment, all threads", processor("weir aggregated counter"), "the call alone", call("weir counter"),
        at_most(1.05)),
    Row("the same with a journal", processor("weir journaled counter"), "without", processor("weir aggregated counter"), at_most(1.1)),
    Row("processor time of a measurement, all threads", processor("weir aggregated histogram"), "prometheus-cpp, 14 buckets",
        processor("histogram lines"), part_of(3)),
    Row("counter of a label set by handle, aggregated", call("weir labeled counter"), "without labels", call("weir counter"),
        at_most(1.1)),
    Row("null handler, aggregated", rate("weir aggregated"), "null handler", rate("weir null"), at_least(0.5)),
    Row("scrape of 10,000 series", scrape("weir scrape"), "prometheus-cpp", scrape("exposer scrape"), part_of(5)),
    Row("the same: peak memory", memory("weir scrape"), "prometheus-cpp", memory("exposer scrape"), at_most(1)),
    Row("call with labels", call("weir labeled"), goal=Goal("at most 60 ns", figure_max=60)),
    Row("call by the handle of a label set", call("weir labeled handle"), "without labels", call("weir null handle"), at_most(1.1)),
    Row("source statsd, without loss", rate("weir statsd"), "npm's statsd", rate("statsd"), at_least(10)),
    Row("source statsd, without loss", rate("weir statsd"), "collectd", rate("collectd"), at_least(2)),
    Row("source fifo, JSON lines to a file", rate("weir fifo"), "a loop like metrics-pusher's", rate("pusher"), at_least(50)),
    Row("forward to a file, acknowledged", rate("weir forward"), "the file itself", rate("weir text"), at_least(0.7)),
    Row("source fifo, JSON lines to a file", rate("weir fifo"), goal=Goal("at least 1 M/s", figure_min=1)),
    Row("stored by forward, acknowledged", rate("store forward"), "the handler sqlite", rate("weir sqlite"), at_least(0.5)),
    Row("stored by http, JSON lines, acknowledged", rate("store http"), "the handler sqlite", rate("weir sqlite"), at_least(0.5)),
    Row("chart of one series of ten", chart("chart_ms"), "sqlite3's count of its rows", chart("count_ms"), at_most(2)),
]

OTHERS = [
    Row("call by name", call("weir name"), "fprintf", call("fprintf")),
    Row("call by name", call("weir name"), "log4c", call("log4c")),
    Row("call by name", call("weir name"), "gauge, prometheus-cpp", call("gauge")),
    Row("call by name", call("weir name"), "counter, prometheus-cpp", call("counter")),
    Row("call by handle, 2 threads", call("weir handle, 2 threads"), "1 thread", call("weir handle")),
    Row("call by name, 2 threads", call("weir name, 2 threads"), "rdtsc alone", call("rdtsc, 2 threads")),
    Row("call by name, 2 threads", call("weir name, 2 threads"), "lttng-ust", call("lttng, 2 threads")),
    Row("call by name, 2 threads", call("weir name, 2 threads"), "spdlog sync", call("spdlog sync, 2 threads")),
    Row("call by name, 2 threads", call("weir name, 2 threads"), "spdlog async", call("spdlog async, 2 threads")),
    Row("call by name, 2 threads", call("weir name, 2 threads"), "fprintf", call("fprintf, 2 threads")),
    Row("call by name, 2 threads", call("weir name, 2 threads"), "log4c", call("log4c, 2 threads")),
    Row("call by name, 2 threads", call("weir name, 2 threads"), "counter, prometheus-cpp", call("counter, 2 threads")),
    Row("call with labels", call("weir labeled"), "by name", call("weir 1 null")),
    Row("call with labels, aggregated", call("weir aggregated labeled"), "not aggregated", call("weir labeled")),
    Row("null handler, aggregated, a counter", rate("weir aggregated counter"), "null handler", rate("weir null")),
    Row("null handler, aggregated, a histogram", rate("weir aggregated histogram"), "null handler", rate("weir null")),
    Row("histogram by handle, with percentiles", call("weir histogram, percentiles"), "prometheus-cpp, 14 buckets", call("histogram")),
    Row("processor time of a measurement, with percentiles", processor("weir aggregated percentiles"), "prometheus-cpp, 14 buckets",
        processor("histogram lines")),
    Row("sustained call, file, text", sustained("weir text"), "spdlog sync", sustained("spdlog sync lines")),
    Row("sustained call, file, text, 2 threads", sustained("weir text, 2 threads"), "spdlog sync",
        sustained("spdlog sync lines, 2 threads")),
    Row("sustained call, null handler", sustained("weir null"), "file, text", sustained("weir text")),
    *list_tails(),
    Row("file, text", rate("weir text"), "lttng-ust, binary", rate("lttng lines")),
    Row("file, text", rate("weir text"), "log4c", rate("log4c lines")),
    Row("file, text, 64 threads", rate("weir text, 64 threads"), "1 thread", rate("weir text")),
    Row("file, text, to each of 5 files", rate("weir 5 files"), "1 file", rate("weir text")),
    Row("file, text, to each of 20 files", rate("weir 20 files"), "1 file", rate("weir text")),
    Row("call by name, settings.clock system", call("weir name, clock system"), "auto", call("weir name")),
    Row("error of timestamps, 99 % within", stamps("weir stamps", "p99_ns")),
    Row("error of timestamps, all within", stamps("weir stamps", "max_ns")),
    Row("the same, settings.clock system", stamps("weir stamps, system", "max_ns")),
    Row("peak memory, file, text, 64 threads", memory("weir text, 64 threads"), "1 thread", memory("weir text")),
    Row("peak memory, 10,000 series", memory("weir 10000 series"), "1 series", memory("weir name")),
]


# ---- Results -----------------------------------------------------------------------------------


@dataclass
class Result:
    """A row with its numbers, one for each round in which both sides have one."""
    row: Row
    weir: list
    peer: list
    ratios: list
    void: str = ""

    @property
    def figure(self):
        return median(self.weir)

    @property
    def ratio(self):
        return median(self.ratios) if self.ratios else None

    @property
    def met(self):
        return None if self.void or not self.row.goal else self.row.goal.is_met(self.figure, self.ratio)


def judge(row, rounds):
    """Computes the result of a row. rounds: a list of {job: report, or the reason why it is void}."""
    sides = [side for side in (row.figure, row.peer) if side]
    for reports in rounds:
        for side in sides:
            if isinstance(reports.get(side.job), str):
                return Result(row, [], [], [], void=reports[side.job])
    present = [reports for reports in rounds if all(side.job in reports for side in sides)]
    if not present:
        return Result(row, [], [], [], void=f"{row.figure.job}: not measured")
    columns = [[reports[side.job][side.key] * side.scale for reports in present] for side in sides]
    peer = columns[1] if row.peer else []
    return Result(row, columns[0], peer, [ours / theirs for ours, theirs in zip(columns[0], peer)])
