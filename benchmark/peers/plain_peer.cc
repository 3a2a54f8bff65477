#include "benchmark/peers/plain_peer.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstring>

#include "benchmark/harness/parallel.h"
#include "benchmark/harness/sorted_rows.h"
#include "benchmark/harness/value_refs.h"
#include "storage/prefetch.h"

namespace stride::benchmark {
namespace {

constexpr uint64_t min_lookups = 256;  // fewer are not worth another core
constexpr uint64_t min_rows = 16384;
constexpr unsigned group = 16;  // queries whose memory accesses overlap
constexpr uint32_t no_rank = 0xFFFFFFFF;

// What the dump begins with; the arrays follow in the order of the members of Arrays.
struct DumpHeader {
  uint64_t rows, key_bytes, value_bytes;
};

// Rank i has the key keys[i] and the value values[i].
struct Arrays {
  ResultBuffer<uint64_t> prefixes;  // key_prefix() of each key
  ResultBuffer<uint64_t> key_ends, value_ends;
  ResultBuffer<std::byte> keys, values;  // no keys where the prefixes are the keys

  uint64_t rows() const { return prefixes.size(); }
  static Bytes cut(const ResultBuffer<std::byte>& data, const ResultBuffer<uint64_t>& ends,
                   uint64_t rank) {
    uint64_t begin = rank ? ends[rank - 1] : 0;
    return {data.data() + begin, ends[rank] - begin};
  }
  Bytes key(uint64_t rank) const { return cut(keys, key_ends, rank); }
  Bytes value(uint64_t rank) const {
    Bytes value = cut(values, value_ends, rank);
    return found_value(value.data(), value.size());
  }
};

uint64_t hash_of(uint64_t prefix) {
  prefix = (prefix ^ prefix >> 32) * 0x9E3779B97F4A7C15ull;
  return prefix ^ prefix >> 29;
}

uint64_t hash_of(Bytes key) {
  uint64_t hash = key.size();
  for (; key.size() > 8; key = key.subspan(8)) hash = hash_of(hash ^ key_prefix(key));
  return hash_of(hash ^ key_prefix(key));
}

class PlainPeer : public EngineUnderTest {
 public:
  PlainPeer(const EngineSettings& settings, bool hashed)
      : settings_(settings),
        hashed_(hashed),
        numbers_(settings.key_width == 8),
        parallel_(settings.threads) {}

  Status open() override;
  Status write(const Records& records) override;
  Status read(ReadCheck& check) override { return read_all(check); }
  Status read(FullCheck& check) override { return read_all(check); }
  Status lookup(const KeyColumn& queries, LookupResult* result) override;
  Status close() override;

 private:
  // A place of the hash table: all that a look-up compares lies together.
  struct Slot {
    uint64_t prefix;
    uint32_t rank;
  };

  std::string path() const { return settings_.directory + "/dump"; }
  void fill(const Records& records, const ResultBuffer<SortedRow>& rows, uint64_t n);
  void build_table();
  Status dump() const;
  Status load(int file);
  template <class Each>
  Status each_array(Each&& each);
  void search(const KeyColumn& queries, uint64_t begin, unsigned n, uint32_t* ranks) const;
  void probe(const KeyColumn& queries, uint64_t begin, unsigned n, uint32_t* ranks) const;
  uint64_t slot_of(uint64_t prefix, Bytes key) const {
    return (numbers_ ? hash_of(prefix) : hash_of(key)) & (slots_.size() - 1);
  }
  template <class Check>
  Status read_all(Check& check);

  EngineSettings settings_;
  bool hashed_, numbers_;
  Parallel parallel_;
  Arrays arrays_;
  ResultBuffer<Slot> slots_;
  ResultBuffer<Bytes> found_;
};

Status PlainPeer::open() {
  int file = ::open(path().c_str(), O_RDONLY);
  if (file < 0) return errno == ENOENT ? Status() : Status::from_errno(errno, "open", path());
  Status status = load(file);
  ::close(file);
  if (status.ok() && hashed_) build_table();
  return status;
}

Status PlainPeer::close() {
  arrays_ = {};
  slots_ = {};
  found_ = {};
  return {};
}

Status PlainPeer::write(const Records& records) {
  ResultBuffer<SortedRow> rows;
  sort_rows(records, &parallel_, &rows);
  fill(records, rows, keep_last_of_equal(records, &rows));
  if (hashed_) build_table();
  return dump();
}

void PlainPeer::fill(const Records& records, const ResultBuffer<SortedRow>& rows, uint64_t n) {
  arrays_.prefixes.reset(n);
  arrays_.value_ends.reset(n);
  arrays_.key_ends.reset(numbers_ ? 0 : n);
  uint64_t key_bytes = 0, value_bytes = 0;
  for (uint64_t i = 0; i < n; ++i) {
    arrays_.prefixes[i] = rows[i].prefix;
    arrays_.value_ends[i] = value_bytes += records.value(rows[i].row).size();
    if (!numbers_) arrays_.key_ends[i] = key_bytes += records.key(rows[i].row).size();
  }
  arrays_.keys.reset(key_bytes);
  arrays_.values.reset(value_bytes);
  auto copy = [](Bytes from, Bytes to) {
    if (!from.empty()) std::memcpy(const_cast<std::byte*>(to.data()), from.data(), from.size());
  };
  parallel_.for_parts(n, min_rows, [&](unsigned, uint64_t begin, uint64_t end) {
    constexpr uint64_t ahead = 16;
    for (uint64_t i = begin; i < end; ++i) {
      if (i + ahead < end) prefetch(records.value(rows[i + ahead].row).data());
      copy(records.value(rows[i].row), Arrays::cut(arrays_.values, arrays_.value_ends, i));
      if (!numbers_) copy(records.key(rows[i].row), arrays_.key(i));
    }
  });
}

void PlainPeer::build_table() {
  uint64_t n = arrays_.rows();
  slots_.reset(std::bit_ceil(2 * n + 2));
  parallel_.for_parts(slots_.size(), min_rows, [&](unsigned, uint64_t begin, uint64_t end) {
    for (uint64_t i = begin; i < end; ++i) slots_[i] = {0, no_rank};
  });
  parallel_.for_parts(n, min_rows, [&](unsigned, uint64_t begin, uint64_t end) {
    for (uint64_t rank = begin; rank < end; ++rank) {
      uint64_t at = slot_of(arrays_.prefixes[rank], numbers_ ? Bytes() : arrays_.key(rank));
      for (;; at = (at + 1) & (slots_.size() - 1)) {
        std::atomic_ref<uint32_t> place(slots_[at].rank);
        uint32_t empty = no_rank;
        if (place.compare_exchange_strong(empty, static_cast<uint32_t>(rank))) break;
      }
      slots_[at].prefix = arrays_.prefixes[rank];
    }
  });
}

template <class Each>
Status PlainPeer::each_array(Each&& each) {
  STRIDE_TRY(each(arrays_.prefixes.data(), arrays_.prefixes.size() * 8));
  STRIDE_TRY(each(arrays_.value_ends.data(), arrays_.value_ends.size() * 8));
  STRIDE_TRY(each(arrays_.key_ends.data(), arrays_.key_ends.size() * 8));
  STRIDE_TRY(each(arrays_.keys.data(), arrays_.keys.size()));
  return each(arrays_.values.data(), arrays_.values.size());
}

Status PlainPeer::dump() const {
  int file = ::open(path().c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (file < 0) return Status::from_errno(errno, "open", path());
  auto put = [&](const void* data, uint64_t bytes) -> Status {
    for (uint64_t at = 0; at < bytes;) {
      ssize_t done = ::write(file, static_cast<const char*>(data) + at, bytes - at);
      if (done < 0) return Status::from_errno(errno, "write", path());
      at += static_cast<uint64_t>(done);
    }
    return {};
  };
  DumpHeader header{arrays_.rows(), arrays_.keys.size(), arrays_.values.size()};
  Status status = put(&header, sizeof(header));
  if (status.ok()) status = const_cast<PlainPeer*>(this)->each_array(put);
  if (status.ok() && settings_.durability == Durability::sync && ::fsync(file) != 0) {
    status = Status::from_errno(errno, "fsync", path());
  }
  ::close(file);
  return status;
}

Status PlainPeer::load(int file) {
  auto get = [&](void* data, uint64_t bytes) -> Status {
    for (uint64_t at = 0; at < bytes;) {
      ssize_t done = ::read(file, static_cast<char*>(data) + at, bytes - at);
      if (done < 0) return Status::from_errno(errno, "read", path());
      if (done == 0) return Status::corruption(path(), at, "the dump ends early");
      at += static_cast<uint64_t>(done);
    }
    return {};
  };
  DumpHeader header;
  STRIDE_TRY(get(&header, sizeof(header)));
  arrays_.prefixes.reset(header.rows);
  arrays_.value_ends.reset(header.rows);
  arrays_.key_ends.reset(numbers_ ? 0 : header.rows);
  arrays_.keys.reset(header.key_bytes);
  arrays_.values.reset(header.value_bytes);
  return each_array(get);
}

template <class Check>
Status PlainPeer::read_all(Check& check) {
  Check local = check;
  for (uint64_t i = 0; i < arrays_.rows(); ++i) {
    if (numbers_) {
      local.record(arrays_.prefixes[i], arrays_.value(i));
    } else {
      local.record(arrays_.key(i), arrays_.value(i));
    }
  }
  check = local;
  return {};
}

Status PlainPeer::lookup(const KeyColumn& queries, LookupResult* result) {
  found_.reset(queries.size);
  parallel_.for_parts(queries.size, min_lookups, [&](unsigned, uint64_t begin, uint64_t end) {
    for (uint64_t i = begin; i < end; i += group) {
      uint32_t ranks[group];
      unsigned n = static_cast<unsigned>(std::min<uint64_t>(group, end - i));
      if (hashed_) {
        probe(queries, i, n, ranks);
      } else {
        search(queries, i, n, ranks);
      }
      for (unsigned k = 0; k < n; ++k) {
        if (ranks[k] != no_rank) prefetch(&arrays_.value_ends[ranks[k]]);
      }
      for (unsigned k = 0; k < n; ++k) {
        found_[i + k] = ranks[k] == no_rank ? not_found_value : arrays_.value(ranks[k]);
      }
    }
  });
  gather_values(found_, &parallel_, result);
  return {};
}

// Lower bounds by halving, one step of all queries after the other.
void PlainPeer::search(const KeyColumn& queries, uint64_t begin, unsigned n,
                       uint32_t* ranks) const {
  const uint64_t* prefixes = arrays_.prefixes.data();
  uint64_t wanted[group], first[group] = {};
  for (unsigned k = 0; k < n; ++k) wanted[k] = key_prefix(queries[begin + k]);
  for (uint64_t count = arrays_.rows(); count > 1;) {
    uint64_t half = count / 2;
    for (unsigned k = 0; k < n; ++k) {
      first[k] += prefixes[first[k] + half - 1] < wanted[k] ? half : 0;
      prefetch(prefixes + first[k] + (count - half) / 2);
    }
    count -= half;
  }
  for (unsigned k = 0; k < n; ++k) {
    uint64_t rank = first[k];
    rank += rank < arrays_.rows() && prefixes[rank] < wanted[k];
    if (!numbers_) {
      while (rank < arrays_.rows() && prefixes[rank] == wanted[k] &&
             compare(arrays_.key(rank), queries[begin + k]) < 0) {
        ++rank;
      }
    }
    bool found = rank < arrays_.rows() && prefixes[rank] == wanted[k] &&
                 (numbers_ || compare(arrays_.key(rank), queries[begin + k]) == 0);
    ranks[k] = found ? static_cast<uint32_t>(rank) : no_rank;
  }
}

void PlainPeer::probe(const KeyColumn& queries, uint64_t begin, unsigned n, uint32_t* ranks) const {
  uint64_t wanted[group], at[group];
  for (unsigned k = 0; k < n; ++k) {
    wanted[k] = key_prefix(queries[begin + k]);
    at[k] = slot_of(wanted[k], queries[begin + k]);
    prefetch(&slots_[at[k]]);
  }
  for (unsigned k = 0; k < n; ++k) {
    ranks[k] = no_rank;
    for (uint64_t s = at[k]; slots_[s].rank != no_rank; s = (s + 1) & (slots_.size() - 1)) {
      if (slots_[s].prefix != wanted[k]) continue;
      if (!numbers_ && compare(arrays_.key(slots_[s].rank), queries[begin + k]) != 0) continue;
      ranks[k] = slots_[s].rank;
      break;
    }
  }
}

EngineConfiguration configuration(const char* engine, const char* description, bool hashed) {
  EngineConfiguration c{.engine = engine, .configuration = "plain", .description = description};
  c.is_database = false;
  c.make = [hashed](const EngineSettings& settings) {
    return std::make_unique<PlainPeer>(settings, hashed);
  };
  return c;
}

}  // namespace

std::vector<EngineConfiguration> plain_configurations() {
  return {configuration("vector", "sorted arrays in memory, no database", false),
          configuration("hash", "a hash table over sorted arrays in memory, no database", true)};
}

}  // namespace stride::benchmark
