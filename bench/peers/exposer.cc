// exposer: the same counters in prometheus-cpp, which its own server shows.

#include <memory>
#include <string>
#include <vector>

#include <prometheus/counter.h>
#include <prometheus/exposer.h>
#include <prometheus/registry.h>

#include "../support/scraping.h"

static std::unique_ptr<prometheus::Exposer> exposer;
static std::shared_ptr<prometheus::Registry> registry;
static std::vector<prometheus::Counter *> counters;

static void open_endpoint(int port, long series)
{
    registry = std::make_shared<prometheus::Registry>();
    std::vector<prometheus::Family<prometheus::Counter> *> families;
    for (int i = 0; i < SCRAPING_NAMES; i++)
        families.push_back(&prometheus::BuildCounter()
                                .Name("my_app_requests_" + std::to_string(i) + "_total")
                                .Help("requests_" + std::to_string(i) + " of my_app")
                                .Register(*registry));
    for (long i = 0; i < series; i++)
        counters.push_back(&families[static_cast<size_t>(i % SCRAPING_NAMES)]->Add(
            {{"method", "GET"}, {"route", "/route/" + std::to_string(i / SCRAPING_NAMES)}}));
    exposer.reset(new prometheus::Exposer("127.0.0.1:" + std::to_string(port)));
    exposer->RegisterCollectable(registry);
}

static void change()
{
    for (auto *counter : counters)
        counter->Increment();
}

int main(int argc, char **argv)
{
    const scraping_subject subject = {open_endpoint, change};
    int status = scraping(argc, argv, &subject);
    exposer.reset();
    return status;
}
