// Random sequences of version edits that fit, and what they add up to.
#pragma once

#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "storage/manifest.h"
#include "tests/support/catch.h"

namespace stride::test {

inline std::string describe(const ManifestState& state) {
  std::ostringstream out;
  out << "next " << state.next_id;
  for (const TableRecord& t : state.tables) {
    out << "; table " << t.id << " " << t.name << " " << t.key_width
        << (t.share_equal_values ? " shared" : "");
    if (t.numbers != NumberType::none) out << " " << to_string(t.numbers);
    out << (t.sums_wrap ? " wrap" : "");
    if (t.expiry)
      out << " ends " << t.expiry->offset << " " << t.expiry->valid_bit << " "
          << to_string(t.expiry->unit) << " " << t.expiry->time_to_live;
  }
  for (const SegmentRecord& s : state.segments) {
    out << "; segment " << s.segment << " " << s.table << " " << s.run << " " << s.rows << " "
        << s.tombstones << " " << s.bytes;
    if (s.expiry != ExpiryRange()) out << " ends " << s.expiry.first << " " << s.expiry.last;
  }
  for (const LogRecord& log : state.logs)
    out << "; log " << log.number << " " << log.id << " " << log.run;
  if (state.synced_logs != 0) out << "; synced " << state.synced_logs;
  return out.str();
}

// With the edits that were not synced, where nothing is wrong with the files that they name.
inline ManifestState whole(const Manifest::Recovered& recovered) {
  ManifestState state = recovered.state;
  for (const UnsyncedEdit& unsynced : recovered.unsynced) {
    Status status = state.apply(unsynced.edit);
    CHECK_OK(status);
  }
  return state;
}

class EditMaker {
 public:
  explicit EditMaker(uint64_t seed) : random_(seed) {}
  const ManifestState& state() const { return state_; }

  // An edit that fits what the earlier ones made. apply() it, or make another in its place.
  VersionEdit make() {
    VersionEdit edit;
    uint64_t next = state_.next_id;
    if (state_.tables.empty() || random_() % 4 == 0) {
      std::string name = "table " + std::to_string(next) + std::string(random_() % 40, 'x');
      edit.created.push_back({static_cast<uint32_t>(next++), name,
                              static_cast<uint32_t>(random_() % 9), 0, random_() % 3 == 0});
      auto numbers = static_cast<NumberType>(random_() % 5);
      edit.created.back().numbers = numbers;
      edit.created.back().sums_wrap = is_integer(numbers) && random_() % 2;
      const auto unit =
          static_cast<FieldType>(static_cast<unsigned>(FieldType::timestamp_s) + random_() % 4);
      if (random_() % 3 == 0)
        edit.created.back().expiry = {static_cast<uint32_t>(random_() % 50),
                                      random_() % 2 ? Schema::no_bit : 80u, unit,
                                      static_cast<int64_t>(random_() % 1000)};
    } else if (random_() % 6 == 0) {
      edit.dropped.push_back(any(state_.tables).id);
    } else if (random_() % 6 == 0) {
      rename(&edit);
    }
    if (!state_.segments.empty() && edit.dropped.empty() && random_() % 3 == 0) {
      edit.removed.push_back(any(state_.segments).segment);
    }
    for (uint64_t n = random_() % 4; n > 0 && !state_.tables.empty() && edit.dropped.empty(); --n) {
      uint64_t id = next++, rows = random_() % 1000;
      edit.added.push_back({id, any(state_.tables).id, next++, rows, rows / 10, rows * 50});
      if (random_() % 2)
        edit.added.back().expiry = {static_cast<int64_t>(random_()),
                                    static_cast<int64_t>(random_())};
    }
    if (!state_.logs.empty() && random_() % 3 == 0)
      edit.removed_logs.push_back(any(state_.logs).number);
    if (random_() % 3 == 0) edit.created_logs.push_back({next++, random_()});
    for (const LogRecord& log : state_.logs) {
      if (log.run != 0) continue;
      if (random_() % 3 == 0 && edit.removed_logs.empty())
        edit.sealed_logs.push_back({log.number, next++});
      break;
    }
    if (random_() % 4 == 0) edit.synced_logs = random_() % 1000;
    edit.next_id = next;
    return edit;
  }
  void apply(const VersionEdit& edit) {
    Status status = state_.apply(edit);
    CHECK_OK(status);
  }

 private:
  // One table, or two that change places.
  void rename(VersionEdit* edit) {
    const TableRecord& one = any(state_.tables);
    const TableRecord& other = any(state_.tables);
    if (one.id != other.id) {
      edit->renamed = {{one.id, other.name}, {other.id, one.name}};
    } else {
      edit->renamed = {{one.id, one.name + "'"}};
    }
  }
  template <class T>
  const T& any(const std::vector<T>& from) {
    return from[random_() % from.size()];
  }
  std::mt19937_64 random_;
  ManifestState state_;
};

}  // namespace stride::test
