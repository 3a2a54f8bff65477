#include "gpu/tree/search_host.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <numeric>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "gpu/tree/search_group.h"
#include "gpu/tree/search_numbers.h"
#include "storage/first_failure.h"
#include "storage/key_filter.h"

namespace stride {

namespace {

// Below this a batch stays on the calling thread: waking another costs some 5 us, as much as a few
// hundred searches.
constexpr uint64_t queries_per_task = 2048;
// A task takes so many queries at a time: what is unresolved after one index goes to the next one
// while it is in cache.
constexpr uint64_t queries_per_block = 1024;

// An index, ready to be searched by any thread.
struct Prepared {
  // query_width: of queries of a fixed width, or 0.
  Prepared(const IndexView& index_view, uint32_t query_width)
      : index(index_view), numbers(query_width == number_width(index_view) ? query_width : 0) {
    if (has_tree(index)) tree.emplace(index.tree.image);
  }

  IndexView index;
  uint32_t numbers;  // their width, where queries and keys are numbers; else 0
  std::optional<TreeRef> tree;
};

uint32_t width_of(const KeyColumn& queries) { return queries.is_fixed() ? queries.width : 0; }

// The first guard that found damage.
class Damage {
 public:
  void report(BlockGuard* guard) {
    BlockGuard* none = nullptr;
    guard_.compare_exchange_strong(none, guard);
  }
  bool found() const { return guard_.load(std::memory_order_relaxed) != nullptr; }
  Status status() const {
    BlockGuard* guard = guard_.load();
    return guard ? guard->failure() : Status();
  }

 private:
  std::atomic<BlockGuard*> guard_{nullptr};
};

// The two ways to search, with queries taken from a column.
template <bool guarded, uint32_t width>
struct NumberGroups {
  using Query = uint64_t;
  NumberSearch<guarded, width> search;

  explicit NumberGroups(const Prepared& prepared) : search(prepared.index, *prepared.tree) {}
  static uint64_t take(const KeyColumn& queries, uint64_t row) {
    return NumberWindow<width>::stored(queries.data + row * width);
  }
};
template <bool guarded>
struct ByteGroups {
  using Query = Bytes;
  GroupSearch<guarded> search;

  explicit ByteGroups(const Prepared& prepared)
      : search(prepared.index, prepared.tree ? &*prepared.tree : nullptr) {}
  static Bytes take(const KeyColumn& queries, uint64_t row) { return queries[row]; }
};

// Calls run.template operator()<Groups>() with the way that suits the index.
template <class Run>
auto dispatch(const Prepared& prepared, const Run& run) {
  auto guarded = [&]<bool guard>(std::bool_constant<guard>) {
    switch (prepared.numbers) {
      case 8:
        return run.template operator()<NumberGroups<guard, 8>>();
      case 4:
        return run.template operator()<NumberGroups<guard, 4>>();
      default:
        return run.template operator()<ByteGroups<guard>>();
    }
  };
  return prepared.index.guard ? guarded(std::true_type()) : guarded(std::false_type());
}

// Searches one index for the pending queries (rows of `queries`), keeps in `pending` those that it
// does not hold, and returns how many these are.
template <class Groups>
uint32_t find_pending(const Prepared& prepared, uint32_t number, const KeyColumn& queries,
                      uint32_t* pending, uint32_t count, Location* out, Damage& damage) {
  Groups groups(prepared);
  typename Groups::Query group[group_queries];
  uint32_t ranks[group_queries];
  uint32_t left = 0;
  for (uint32_t begin = 0; begin < count; begin += group_queries) {
    uint32_t n = std::min(group_queries, count - begin);
    for (uint32_t i = 0; i < n; ++i) group[i] = Groups::take(queries, pending[begin + i]);
    groups.search.find(group, n, ranks);
    if (groups.search.damaged()) {
      damage.report(prepared.index.guard);
      return 0;
    }
    for (uint32_t i = 0; i < n; ++i) {
      uint32_t row = pending[begin + i];
      bool absent = ranks[i] == Location::absent;
      out[row] = {absent ? Location::absent : number, ranks[i]};
      pending[left] = row;
      left += absent;
    }
  }
  return left;
}

// The queries of a block, as filters see them.
class FilteredBlock {
 public:
  explicit FilteredBlock(const KeyColumn& queries) : queries_(queries) {}

  // Moves the pending queries that the filter admits to admitted(), and returns how many are left,
  // which it denies. Where it turns out to admit most of them it is not asked about the others.
  uint32_t deny(const KeyFilter& filter, uint32_t* pending, uint32_t count, Location* out) {
    uint32_t denied = 0;
    admitted_count_ = 0;
    bool all = true;
    for (uint32_t begin = 0; begin < count; begin += sampled) {
      const uint32_t end = std::min(count, begin + sampled);
      if (admitted_count_ * 4 > begin * 3) {
        std::copy(pending + begin, pending + count, admitted_ + admitted_count_);
        admitted_count_ += count - begin;
        all = false;
        break;
      }
      if (!hashed_) hash_keys(queries_, {pending + begin, end - begin}, hashes_);
      for (uint32_t i = begin; i < end; ++i) filter.prefetch(hashes_[pending[i]]);
      for (uint32_t i = begin; i < end; ++i) {
        const uint32_t row = pending[i];
        const bool admits = filter.may_contain(hashes_[row]);
        out[row] = {Location::absent, Location::absent};
        admitted_[admitted_count_] = pending[denied] = row;
        admitted_count_ += admits;
        denied += !admits;
      }
    }
    hashed_ |= all;  // no query becomes pending later
    return denied;
  }
  uint32_t* admitted() { return admitted_; }
  uint32_t admitted_count() const { return admitted_count_; }

 private:
  static constexpr uint32_t sampled = 64;

  const KeyColumn& queries_;
  bool hashed_ = false;  // all that are pending
  uint32_t admitted_count_ = 0;
  uint32_t admitted_[queries_per_block];
  uint64_t hashes_[queries_per_block];  // by row
};

void find_block(const std::vector<Prepared>& indexes, const KeyColumn& queries, Location* out,
                Damage& damage) {
  uint32_t pending[queries_per_block];
  FilteredBlock filtered(queries);
  auto count = static_cast<uint32_t>(queries.size);
  std::iota(pending, pending + count, 0u);
  if (indexes.empty()) {
    std::fill(out, out + count, Location{Location::absent, Location::absent});
  }
  for (uint32_t number = 0; number < indexes.size() && count > 0; ++number) {
    const Prepared& prepared = indexes[number];
    auto find = [&](uint32_t* rows, uint32_t n) {
      return dispatch(prepared, [&]<class Groups>() {
        return find_pending<Groups>(prepared, number, queries, rows, n, out, damage);
      });
    };
    if (!prepared.index.filter) {
      count = find(pending, count);
      continue;
    }
    count = filtered.deny(*prepared.index.filter, pending, count, out);
    const uint32_t left = find(filtered.admitted(), filtered.admitted_count());
    std::copy_n(filtered.admitted(), left, pending + count);
    count += left;
  }
}

// Searches one index for all queries: op(search, group, count, ranks).
template <class Op>
void search_range(const Prepared& prepared, const KeyColumn& queries, uint32_t* out, Damage& damage,
                  const Op& op) {
  dispatch(prepared, [&]<class Groups>() {
    Groups groups(prepared);
    typename Groups::Query group[group_queries];
    for (uint64_t begin = 0; begin < queries.size; begin += group_queries) {
      auto n = static_cast<uint32_t>(std::min<uint64_t>(group_queries, queries.size - begin));
      for (uint32_t i = 0; i < n; ++i) group[i] = Groups::take(queries, begin + i);
      op(groups.search, group, n, out + begin);
      if (groups.search.damaged()) return damage.report(prepared.index.guard);
    }
  });
}

void find_range(const Prepared& prepared, const KeyColumn& queries, uint32_t* out, Damage& damage) {
  search_range(prepared, queries, out, damage,
               [](auto& search, const auto* group, uint32_t n, uint32_t* ranks) {
                 search.find(group, n, ranks);
               });
}

void lower_bound_range(const Prepared& prepared, const KeyColumn& queries, uint32_t* out,
                       Damage& damage) {
  search_range(prepared, queries, out, damage,
               [](auto& search, const auto* group, uint32_t n, uint32_t* ranks) {
                 search.lower_bound(group, n, ranks);
               });
}

// Counts the key that is equal, where there is one, too.
template <bool guarded>
void pass_equal(const IndexView& index, const KeyColumn& queries, uint32_t* ranks, Damage& damage) {
  ColumnReader<guarded> keys(index);
  for (uint64_t i = 0; i < queries.size; ++i) {
    ranks[i] += ranks[i] < keys.size() && equal_keys(keys[ranks[i]], queries[i]);
    if (keys.damaged()) return damage.report(index.guard);
  }
}

void upper_bound_range(const Prepared& prepared, const KeyColumn& queries, uint32_t* out,
                       Damage& damage) {
  lower_bound_range(prepared, queries, out, damage);
  if (damage.found()) return;
  prepared.index.guard ? pass_equal<true>(prepared.index, queries, out, damage)
                       : pass_equal<false>(prepared.index, queries, out, damage);
}

// For each query, the smallest byte string that is greater than all that start with it.
class Successors {
 public:
  explicit Successors(const KeyColumn& queries) {
    offsets_.push_back(0);
    for (uint64_t i = 0; i < queries.size; ++i) append(queries[i]);
  }
  // A query without one has an empty row here.
  KeyColumn column() const {
    return KeyColumn::variable(bytes_.data(), offsets_.data(), offsets_.size() - 1);
  }

 private:
  void append(Bytes query) {
    size_t size = query.size();
    while (size > 0 && query[size - 1] == std::byte{0xFF}) --size;
    bytes_.insert(bytes_.end(), query.begin(), query.begin() + static_cast<ptrdiff_t>(size));
    if (size > 0) bytes_.back() = std::byte(static_cast<uint8_t>(bytes_.back()) + 1);
    offsets_.push_back(bytes_.size());
  }

  std::vector<std::byte> bytes_;
  std::vector<uint64_t> offsets_;
};

void prefix_block(const Prepared& prepared, const Prepared& of_successors, const KeyColumn& queries,
                  RankInterval* out, Damage& damage) {
  uint32_t first[queries_per_block], last[queries_per_block];
  lower_bound_range(prepared, queries, first, damage);
  Successors successors(queries);
  KeyColumn ends = successors.column();
  lower_bound_range(of_successors, ends, last, damage);
  if (damage.found()) return;
  auto all = static_cast<uint32_t>(prepared.index.keys.size);
  for (uint64_t i = 0; i < queries.size; ++i) {
    bool no_successor = ends.offsets[i] == ends.offsets[i + 1];
    out[i] = {first[i], no_successor ? all : std::max(first[i], last[i])};
  }
}

// Calls body(begin, count) for blocks of queries on the pool's threads.
template <class Body>
void for_blocks(TaskPool& pool, uint64_t queries, const Damage& damage, const Body& body) {
  pool.run(queries, queries_per_task, [&](uint64_t begin, uint64_t end) {
    for (; begin < end && !damage.found(); begin += queries_per_block) {
      body(begin, std::min(queries_per_block, end - begin));
    }
  });
}

Status check_sizes(const KeyColumn& queries, size_t out) {
  if (out == queries.size) return {};
  return Status::invalid("room for " + std::to_string(out) + " results of " +
                         std::to_string(queries.size) + " queries");
}

// One query: nothing to prepare or to overlap.
Status find_single(std::span<const IndexView> indexes, Bytes query, Location* out) {
  *out = {Location::absent, Location::absent};
  for (uint32_t number = 0; number < indexes.size(); ++number) {
    uint32_t rank;
    STRIDE_TRY(find_one(indexes[number], query, &rank));
    if (rank != Location::absent) {
      *out = {number, rank};
      return {};
    }
  }
  return {};
}

std::vector<Prepared> prepare(std::span<const IndexView> indexes, const KeyColumn& queries) {
  std::vector<Prepared> prepared;
  prepared.reserve(indexes.size());
  for (const IndexView& index : indexes) prepared.emplace_back(index, width_of(queries));
  return prepared;
}

}  // namespace

Status find_host(TaskPool& pool, std::span<const IndexView> indexes, const KeyColumn& queries,
                 std::span<Location> out) {
  STRIDE_TRY(check_sizes(queries, out.size()));
  if (queries.size == 1) return find_single(indexes, queries[0], out.data());
  std::vector<Prepared> prepared = prepare(indexes, queries);
  Damage damage;
  for_blocks(pool, queries.size, damage, [&](uint64_t begin, uint64_t count) {
    find_block(prepared, queries.slice(begin, count), out.data() + begin, damage);
  });
  return damage.status();
}

Status find_blocks_host(TaskPool& pool, std::span<const IndexView> indexes,
                        const KeyColumn& queries, const TakeLocations& take) {
  std::vector<Prepared> prepared = prepare(indexes, queries);
  Damage damage;
  FirstFailure refusal;
  for_blocks(pool, queries.size, damage, [&](uint64_t begin, uint64_t count) {
    if (refusal.failed()) return;
    Location locations[queries_per_block];
    find_block(prepared, queries.slice(begin, count), locations, damage);
    if (!damage.found()) refusal.report(take(begin, {locations, count}));
  });
  return refusal.failed() ? refusal.status() : damage.status();
}

namespace {

using SearchRange = void (*)(const Prepared&, const KeyColumn&, uint32_t*, Damage&);

Status search_host(TaskPool& pool, const IndexView& index, const KeyColumn& queries,
                   std::span<uint32_t> out, SearchRange search) {
  STRIDE_TRY(check_sizes(queries, out.size()));
  Prepared prepared(index, width_of(queries));
  Damage damage;
  for_blocks(pool, queries.size, damage, [&](uint64_t begin, uint64_t count) {
    search(prepared, queries.slice(begin, count), out.data() + begin, damage);
  });
  return damage.status();
}

}  // namespace

Status find_ranks_host(TaskPool& pool, const IndexView& index, const KeyColumn& queries,
                       std::span<uint32_t> out) {
  return search_host(pool, index, queries, out, find_range);
}
Status lower_bound_host(TaskPool& pool, const IndexView& index, const KeyColumn& queries,
                        std::span<uint32_t> out) {
  return search_host(pool, index, queries, out, lower_bound_range);
}
Status upper_bound_host(TaskPool& pool, const IndexView& index, const KeyColumn& queries,
                        std::span<uint32_t> out) {
  return search_host(pool, index, queries, out, upper_bound_range);
}

Status prefix_interval_host(TaskPool& pool, const IndexView& index, const KeyColumn& queries,
                            std::span<RankInterval> out) {
  STRIDE_TRY(check_sizes(queries, out.size()));
  Prepared prepared(index, width_of(queries)), of_successors(index, 0);
  Damage damage;
  for_blocks(pool, queries.size, damage, [&](uint64_t begin, uint64_t count) {
    prefix_block(prepared, of_successors, queries.slice(begin, count), out.data() + begin, damage);
  });
  return damage.status();
}

}  // namespace stride
