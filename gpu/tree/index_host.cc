#include "gpu/tree/index_host.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <string>
#include <utility>

#include "gpu/host/guarded.h"
#include "gpu/keys/key_store.h"
#include "gpu/sort/sort_host.h"
#include "gpu/tree/tree_build_host.h"
#include "storage/prefetch.h"

namespace stride {

namespace {

// The rows of a column, one after the other, and where each begins and the last ends.
void copy_rows(const PackedColumn& column, std::vector<std::byte>* keys,
               std::vector<uint64_t>* offsets) {
  keys->clear();
  offsets->assign(1, 0);
  for (uint64_t i = 0; i < column.size; ++i) {
    Bytes key = column[i];
    keys->insert(keys->end(), key.begin(), key.end());
    offsets->push_back(keys->size());
  }
}

class HostIndex final : public ResidentIndex {
 public:
  explicit HostIndex(const IndexView& view) : view_(view) {}
  HostIndex(BulkVector<uint64_t> numbers, std::unique_ptr<KeyStore> store,
            const PackedColumn& column, std::vector<std::byte> image)
      : numbers_(std::move(numbers)), store_(std::move(store)), image_(std::move(image)) {
    view_.keys = column;
    view_.tree = {image_.data(), image_.size()};
  }

  IndexView view() const override {
    IndexView view = view_;
    view.resident = this;
    return view;
  }
  bool on_device() const override { return false; }
  bool has_values() const override { return false; }
  Status copy_image(std::vector<std::byte>* image) const override {
    return guarded([&] {
      image->assign(view_.tree.image, view_.tree.image + view_.tree.image_bytes);
      return Status();
    });
  }
  Status copy_keys(std::vector<std::byte>* keys, std::vector<uint64_t>* offsets) const override {
    return guarded([&] {
      copy_rows(view_.keys, keys, offsets);
      return Status();
    });
  }
  uint64_t memory_bytes() const override {
    uint64_t keys = store_ ? store_->bytes() : view_.keys.data_bytes;
    return keys + view_.tree.image_bytes;
  }

 private:
  BulkVector<uint64_t> numbers_;
  std::unique_ptr<KeyStore> store_;
  std::vector<std::byte> image_;
  IndexView view_;
};

PackedColumn as_packed(const KeyColumn& keys) {
  PackedColumn column;
  column.data = keys.data;
  column.data_bytes = keys.bytes();
  column.size = keys.size;
  column.width = keys.width;
  return column;
}

PackedColumn as_packed(const BulkVector<uint64_t>& numbers) {
  return as_packed(KeyColumn::fixed(numbers.data(), 8, numbers.size()));
}

// The chunks of a column that Backend::sort() takes; a row's id is its number.
std::vector<KeyColumn> chunks_of(const KeyColumn& keys) {
  constexpr uint64_t rows = uint64_t{1} << row_bits;
  std::vector<KeyColumn> chunks;
  for (uint64_t first = 0; first < keys.size; first += rows) {
    chunks.push_back(keys.slice(first, std::min(rows, keys.size - first)));
  }
  return chunks;
}

bool ensure_column(BlockGuard& guard, const PackedColumn& column) {
  if (!guard.ensure(column.data, column.row_bytes())) return false;
  if (column.fixed) return true;
  uint64_t groups = (column.size >> PackedOffsets::group_bits) + 1;
  return guard.ensure(column.offsets.bases, groups * sizeof(uint64_t)) &&
         guard.ensure(column.offsets.deltas, (column.size + 1) * column.offsets.delta_width);
}

}  // namespace

Status check_index(const IndexView& index, const IndexRows& rows) {
  if (BlockGuard* guard = index.guard) {
    bool intact = ensure_column(*guard, index.keys) &&
                  (!rows.values || ensure_column(*guard, *rows.values)) &&
                  (!rows.hidden || guard->ensure(rows.hidden, index.keys.size));
    if (!intact) return guard->failure();
  }
  if (!index.tree.image) return {};
  return check_tree({index.tree.image, index.tree.image_bytes}, index.keys.size);
}

Result<std::shared_ptr<ResidentIndex>> make_resident_host(const IndexView& index) {
  return std::shared_ptr<ResidentIndex>(std::make_shared<HostIndex>(index));
}

Result<std::shared_ptr<ResidentIndex>> build_index_host(TaskPool& pool, const KeyColumn& keys,
                                                        KeyOrder order, const AccessCosts& costs,
                                                        const TreeOptions& options) {
  STRIDE_TRY(options.check());
  STRIDE_TRY(check_key_count(keys.size));
  BulkVector<uint64_t> numbers;
  std::unique_ptr<KeyStore> store;
  PackedColumn column;
  if (order == KeyOrder::any) {
    Sorted sorted;
    STRIDE_TRY(sort_host(pool, chunks_of(keys), &sorted));
    numbers = std::move(sorted.keys8);
    if (numbers.empty() && keys.size > 0) {
      store = std::make_unique<KeyStore>(pool, keys, sorted.order);
    }
    column = store ? store->column() : as_packed(numbers);
    if (keys.is_fixed()) column.width = keys.width;
  } else if (keys.is_fixed()) {
    column = as_packed(keys);
  } else {
    store = std::make_unique<KeyStore>(pool, keys, std::span<const uint32_t>());
    column = store->column();
  }
  std::vector<std::byte> image;
  STRIDE_TRY(build_tree_host(pool, column, costs, options, &image));
  return std::shared_ptr<ResidentIndex>(
      std::make_shared<HostIndex>(std::move(numbers), std::move(store), column, std::move(image)));
}

namespace {

double seconds_of(const std::function<void()>& work) {
  auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

constexpr uint64_t numbers_per_line = 8, line_bytes = 64;

// Knuth's generator; fewer than 2^32 lines.
uint64_t random_line(uint64_t* random, uint64_t lines) {
  *random = *random * 6364136223846793005ull + 1442695040888963407ull;
  return ((*random >> 32) * lines >> 32) * numbers_per_line;
}

// One thread's random reads of lines of cache, several at once.
uint64_t gather_lines(const uint64_t* table, uint64_t lines, uint64_t begin, uint64_t end) {
  constexpr uint64_t at_once = 32;
  uint64_t sum = 0, random = begin * 2 + 1;
  for (; begin < end; begin += at_once) {
    uint64_t at[at_once];
    for (uint64_t& i : at) {
      i = random_line(&random, lines);
      prefetch(&table[i]);
    }
    for (uint64_t i : at) sum += table[i];
  }
  return sum;
}

}  // namespace

Status measure_limits_host(TaskPool& pool, uint64_t table_bytes, BackendLimits* limits) {
  constexpr uint64_t least_bytes = 1 << 20, gathers = 1 << 23, grain = 1 << 16;
  *limits = {};
  BulkVector<uint64_t> table(std::max(table_bytes, least_bytes) / 8), copy(table.size());
  auto bytes = static_cast<double>(table.size() * 8);
  pool.run(table.size(), grain, [&](uint64_t begin, uint64_t end) {
    std::fill(&table[begin], &table[begin] + (end - begin), begin);
    std::fill(&copy[begin], &copy[begin] + (end - begin), begin);
  });
  std::atomic<uint64_t> sum{0};
  for (int repeat = 0; repeat < 3; ++repeat) {
    double seconds = seconds_of([&] {
      pool.run(gathers, grain, [&](uint64_t begin, uint64_t end) {
        sum.fetch_add(gather_lines(table.data(), table.size() / numbers_per_line, begin, end),
                      std::memory_order_relaxed);
      });
    });
    limits->gathers_per_second = std::max(limits->gathers_per_second, gathers / seconds);
    seconds = seconds_of([&] {
      pool.run(table.size(), grain, [&](uint64_t begin, uint64_t end) {
        std::memcpy(&copy[begin], &table[begin], (end - begin) * 8);
      });
    });
    limits->copy_bytes_per_second = std::max(limits->copy_bytes_per_second, 2 * bytes / seconds);
  }
  return {};
}

Status measure_costs_host(TaskPool& pool, AccessCosts* costs) {
  constexpr uint64_t most_bytes = AccessCosts::bytes_of(AccessCosts::sizes - 1);
  constexpr uint64_t grain = 1 << 12, chained = 1 << 12;
  const uint64_t gathers = uint64_t{1 << 19} * pool.threads();
  *costs = AccessCosts::typical_host(pool.threads());
  BulkVector<uint64_t> table(most_bytes / 8);
  pool.run(table.size(), 1 << 16,
           [&](uint64_t begin, uint64_t end) { std::memset(&table[begin], 0, (end - begin) * 8); });
  std::atomic<uint64_t> sum{0};
  // The least of several rounds, each of all sizes, so that what disturbs for a while spoils none.
  costs->nanoseconds_at.fill(1e9);
  costs->latency_at.fill(1e9);
  auto take = [](double* least, uint64_t reads, const std::function<void()>& work) {
    *least = std::min(*least, seconds_of(work) / static_cast<double>(reads) * 1e9);
  };
  for (uint64_t round = 0; round < 8; ++round) {
    for (uint32_t i = 0; i < AccessCosts::sizes; ++i) {
      const uint64_t lines = AccessCosts::bytes_of(i) / line_bytes;
      take(&costs->nanoseconds_at[i], gathers, [&] {
        pool.run(gathers, grain, [&](uint64_t begin, uint64_t end) {
          sum.fetch_add(gather_lines(table.data(), lines, begin, end), std::memory_order_relaxed);
        });
      });
      take(&costs->latency_at[i], chained, [&] {
        uint64_t random = round;
        for (uint64_t n = 0; n < chained; ++n) random += table[random_line(&random, lines)];
        sum.fetch_add(random, std::memory_order_relaxed);
      });
    }
  }
  costs->drop_noise();
  return {};
}

}  // namespace stride
