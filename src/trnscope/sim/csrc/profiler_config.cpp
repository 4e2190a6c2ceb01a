#include "profiler_config.h"

#include <regex>

namespace trnscope::sim {
namespace {

std::set<std::int32_t> parse_cores(const std::string& text) {
    static const std::regex part(R"((\d{1,5})\s*(?:-\s*(\d{1,5}))?)");
    std::set<std::int32_t> cores;
    for (std::sregex_iterator at(text.begin(), text.end(), part), end; at != end; ++at) {
        const int first = std::stoi((*at)[1]);
        const int last = (*at)[2].matched ? std::stoi((*at)[2]) : first;
        for (int core = first; core <= last; ++core) cores.insert(core);
    }
    return cores;
}

std::optional<std::string> value_of(const std::string& text, const std::string& key) {
    const std::regex member("\"" + key + R"("\s*:\s*(?:"([^"]*)\"|(\d{1,18})))");
    std::smatch found;
    if (!std::regex_search(text, found, member)) return std::nullopt;
    return found[1].matched ? found[1].str() : found[2].str();
}

}  // namespace

ProfilerConfig parse_profiler_config(const std::string& text) {
    ProfilerConfig config;
    config.is_ours = value_of(text, "backend") == "trnscope_sim";
    if (!config.is_ours) return config;
    config.with_stack = value_of(text, "with_stack") == "1";
    if (const auto cores = value_of(text, "capture_enabled_for_nc")) {
        config.cores = parse_cores(*cores);
    }
    if (const auto count = value_of(text, "max_events_per_nc")) {
        config.max_events = std::stoull(*count);
    }
    return config;
}

}  // namespace trnscope::sim
