#pragma once
// What activation chose for the process.

namespace trnscope::sim {

struct Settings {
    bool numerics = true;   // false: shapes and times only, every value is zero
    bool blocking = false;  // every op waits for its numbers: errors point at their line
    bool in_bad_fork = false;
};

inline Settings& settings() {
    static Settings settings;
    return settings;
}

}  // namespace trnscope::sim
