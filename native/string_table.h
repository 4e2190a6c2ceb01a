// Distinct byte strings and their ids, in order of first use.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "scan_simd.h"

namespace trnscope {

// Texts stay at their address while the table lives. Not for several threads at once, except
// that texts already handed out may be read by others.
class StringTable {
  public:
    StringTable();

    // `text` must be readable for 16 bytes beyond its end, as what the table holds is.
    uint32_t intern(std::string_view text);
    std::string_view operator[](uint32_t id) const { return texts_[id]; }
    uint32_t size() const { return static_cast<uint32_t>(texts_.size()); }
    size_t num_bytes() const { return num_bytes_; }

  private:
    struct Slot {
        uint64_t hash = 0;
        uint32_t id_plus_1 = 0;
    };

    uint32_t insert(std::string_view text, uint64_t hash, size_t place);
    void grow();
    std::string_view store(std::string_view text);

    std::vector<Slot> slots_;
    std::vector<std::string_view> texts_;
    std::vector<std::unique_ptr<char[]>> chunks_;
    char* free_ = nullptr;
    size_t num_free_ = 0;
    size_t num_bytes_ = 0;
};

// A worker's table. Its ids mean nothing to others; the sequencer gives each the global id once
// the first batch that uses it is merged.
struct LocalTable {
    static constexpr uint32_t kUnknown = 0xFFFFFFFFu;

    StringTable table;
    std::vector<uint32_t> last_batch;  // by id: the newest batch that uses it (worker only)
    std::vector<uint32_t> global;      // by id: the global id or kUnknown (sequencer only)
};

// One string that a batch uses.
struct LocalUse {
    uint32_t id;
    std::string_view text;
};

// Hands out local ids and lists which ones each batch uses, in order of first use.
class LocalInterner {
  public:
    LocalInterner() { renew(); }

    uint32_t intern(std::string_view text) { return use(table_->table.intern(text)); }

    std::string_view text(uint32_t id) const { return table_->table[id]; }

    // Marks an id as used by the present batch.
    uint32_t use(uint32_t id) {
        if (id >= table_->last_batch.size()) table_->last_batch.resize(id + 1, 0);
        if (table_->last_batch[id] != batch_) {
            table_->last_batch[id] = batch_;
            uses_.push_back({id, table_->table[id]});
        }
        return id;
    }

    // Ends the present batch: what it used, and the table that its ids belong to. True if ids
    // handed out earlier are void from now on.
    bool take(std::vector<LocalUse>* uses, std::shared_ptr<LocalTable>* table);

  private:
    void renew();

    std::shared_ptr<LocalTable> table_;
    std::vector<LocalUse> uses_;
    uint32_t batch_ = 1;
};

}  // namespace trnscope
