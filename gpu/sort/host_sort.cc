// A batch is partitioned by the first bits in which its keys differ (all threads together), until
// each part fits a core's cache; the parts are then sorted one by one, each by one thread. Keys of
// 8 bytes are numbers, and sorted as such; of others the first 8 bytes past what all share are, and
// ties are finished by the bytes that follow.
#include "gpu/sort/host_sort.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "gpu/sort/sort_input.h"
#include "gpu/sort/sort_rows.h"
#include "gpu/sort/sort_ties.h"
#include "storage/column.h"
#include "storage/status.h"
#include "storage/work_watch.h"

namespace stride {

namespace {

// A part of the rows that is sorted apart from the others.
struct Part {
  uint64_t begin;
  uint64_t size;
  uint64_t depth;  // bytes that its keys share
  bool in_result;  // where its rows are: in the result's arrays or in the second ones
  uint64_t kept;   // once sorted: rows without those that a newer one replaces
};

class BatchSort {
 public:
  BatchSort(TaskPool& pool, const SortInput& input, Sorted* sorted)
      : pool_(pool),
        watch_(WorkWatch::current()),
        input_(input),
        keys_(input.keys()),
        sorted_(sorted),
        rows_(input.rows()) {}

  void run() {
    if (rows_ == 0) return;
    RowOrder order = find_order();
    if (order.ascending) return take_in_order(order.strictly);
    allocate();
    partition_input(order);
    while (!large_.empty()) {
      Part part = large_.back();
      large_.pop_back();
      divide(part);
    }
    pool_.run_each(small_.size(), [&](uint64_t i, uint64_t) {
      finish(small_[i]);
      tell(small_[i].size);
    });
    collect();
  }

 private:
  bool numbers() const { return input_.all_numbers(); }

  // What one thread sorts in its cache: 12 bytes a row, twice.
  static constexpr uint64_t part_rows = 1 << 15;
  static constexpr uint64_t rows_per_task = 1 << 16;
  // Each of them is done before a sort that is watched can end early.
  static constexpr uint32_t watched_tasks = 32;
  // More streams than that would thrash the first cache and the address cache.
  static constexpr uint32_t max_partition_bits = 11;

  RowOrder find_order() {
    std::vector<RowOrder> orders(tasks(rows_));
    for_tasks(rows_, [&](uint64_t task, uint64_t begin, uint64_t end) {
      orders[task] =
          numbers() ? order_of_numbers(input_, begin, end) : order_of_keys(input_, begin, end);
    });
    for (const RowOrder& order : orders) orders[0].add(order);
    return orders[0];
  }

  // Rows are cut into the same tasks for each pass over them.
  uint64_t tasks(uint64_t rows) const {
    return std::clamp<uint64_t>(rows / rows_per_task, 1,
                                std::max(pool_.threads() * 4, watch_ ? watched_tasks : 1));
  }
  // A sort in memory passes over all rows four to six times, and touches their memory before.
  void tell(uint64_t rows) {
    if (watch_) watch_->add(rows);
  }
  template <class Body>
  void for_tasks(uint64_t rows, const Body& body) {
    const uint64_t count = tasks(rows);
    pool_.run_each(count, [&](uint64_t task, uint64_t) {
      const uint64_t begin = rows * task / count, end = rows * (task + 1) / count;
      body(task, begin, end);
      tell(end - begin);
    });
  }

  void take_in_order(bool strictly) {
    sorted_->order.resize(rows_);
    for_tasks(rows_, [&](uint64_t, uint64_t begin, uint64_t end) {
      input_.for_parts(begin, end, [&](uint64_t position, const KeyColumn& part, uint32_t id) {
        for (uint64_t i = 0; i < part.size; ++i) {
          sorted_->order[position + i] = id + static_cast<uint32_t>(i);
        }
      });
    });
    if (!strictly) drop_equal_neighbours();
    if (!numbers()) return;
    sorted_->keys8.resize(sorted_->order.size());
    pool_.run(sorted_->order.size(), rows_per_task, [&](uint64_t begin, uint64_t end) {
      for (uint64_t i = begin; i < end; ++i) {
        std::memcpy(&sorted_->keys8[i], keys_[sorted_->order[i]].data(), 8);
      }
    });
  }

  void drop_equal_neighbours() {
    BulkVector<uint32_t>& order = sorted_->order;
    uint64_t kept = 0;
    for (uint64_t i = 0; i < rows_; ++i) {
      if (watch_ && i % rows_per_task == 0) watch_->throw_if_stopped();
      if (i + 1 < rows_ && equal_keys(keys_[order[i]], keys_[order[i + 1]])) continue;
      order[kept++] = order[i];
    }
    order.resize(kept);
  }

  void allocate() {
    sorted_->order.resize(rows_);
    if (numbers()) {
      sorted_->keys8.resize(rows_);
    } else {
      result_numbers_ = BulkVector<uint64_t>(rows_);
    }
    numbers_ = BulkVector<uint64_t>(rows_);
    ids_ = BulkVector<uint32_t>(rows_);
    if (!watch_) return;
    for (Rows rows : {second(), result()}) {
      touch(rows.numbers, rows_ * sizeof *rows.numbers);
      touch(rows.ids, rows_ * sizeof *rows.ids);
    }
  }
  // Has the system give memory now, bit by bit. The first tasks of a partition, which write
  // everywhere, would wait for all of it, and can't be stopped meanwhile.
  void touch(void* memory, uint64_t bytes) {
    constexpr uint64_t page = 4096, row_bytes = 24;  // of a row, in all arrays
    auto* at = static_cast<volatile std::byte*>(memory);
    pool_.run(bytes / page, 256, [&](uint64_t begin, uint64_t end) {
      for (uint64_t i = begin; i < end; ++i) at[i * page] = std::byte{0};
      tell((end - begin) * page / row_bytes);
    });
  }
  Rows result() {
    return {numbers() ? sorted_->keys8.data() : result_numbers_.data(), sorted_->order.data()};
  }
  Rows second() { return {numbers_.data(), ids_.data()}; }
  Rows rows_of(const Part& part, bool in_result) {
    return (in_result ? result() : second()).at(part.begin);
  }

  // Numbers go straight from the chunks to where the first partition puts them; slices of other
  // keys are taken first.
  void partition_input(const RowOrder& order) {
    Part all{0, rows_, numbers() ? 0 : order.shared_bytes, true, 0};
    if (!numbers() || rows_ <= part_rows) {
      gather_input(all);
      return add_part(all);
    }
    auto bits = BucketBits::after_shared(order.differing, partition_bits(rows_));
    partition(all, bits, second(), [&](uint64_t begin, uint64_t end, const auto& take) {
      input_.for_parts(begin, end, [&](uint64_t, const KeyColumn& column, uint32_t id) {
        for (uint64_t i = 0; i < column.size; ++i) {
          take(load_big_endian(column.data + i * 8), id + static_cast<uint32_t>(i));
        }
      });
    });
  }

  void gather_input(const Part& part) {
    Rows to = rows_of(part, part.in_result);
    for_tasks(rows_, [&](uint64_t, uint64_t begin, uint64_t end) {
      input_.for_parts(begin, end, [&](uint64_t position, const KeyColumn& column, uint32_t id) {
        for (uint64_t i = 0; i < column.size; ++i) {
          Bytes key = column[i];
          to.numbers[position + i] = slice8(key.data(), key.size(), part.depth);
          to.ids[position + i] = id + static_cast<uint32_t>(i);
        }
      });
    });
  }

  static uint32_t partition_bits(uint64_t rows) {
    return std::clamp(static_cast<uint32_t>(std::bit_width(rows / part_rows)), 1u,
                      max_partition_bits);
  }

  void add_part(const Part& part) {
    if (part.size == 0) return;
    (part.size <= part_rows ? small_ : large_).push_back(part);
  }

  // Distributes a part's rows over buckets, stably, with all threads, and adds the buckets as
  // parts. read(begin, end, take) calls take(number, id) for those rows of the part.
  template <class Read>
  void partition(const Part& part, BucketBits bits, Rows to, const Read& read) {
    uint64_t buckets = bits.buckets(), count = tasks(part.size);
    std::vector<uint32_t> next(count * buckets);
    for_tasks(part.size, [&](uint64_t task, uint64_t begin, uint64_t end) {
      uint32_t* sizes = &next[task * buckets];
      read(begin, end, [&](uint64_t number, uint32_t) { ++sizes[bits.of(number)]; });
    });
    uint32_t sum = 0;
    for (uint64_t bucket = 0; bucket < buckets; ++bucket) {
      uint32_t begin = sum;
      for (uint64_t task = 0; task < count; ++task) {
        sum += std::exchange(next[task * buckets + bucket], sum);
      }
      add_part({part.begin + begin, sum - begin, part.depth, !part.in_result, 0});
    }
    for_tasks(part.size, [&](uint64_t task, uint64_t begin, uint64_t end) {
      uint32_t* places = &next[task * buckets];
      read(begin, end, [&](uint64_t number, uint32_t id) {
        uint32_t place = places[bits.of(number)]++;
        to.numbers[place] = number;
        to.ids[place] = id;
      });
    });
  }

  uint64_t differing_in(const Part& part) {
    Rows rows = rows_of(part, part.in_result);
    std::vector<uint64_t> bits(tasks(part.size));
    for_tasks(part.size, [&](uint64_t task, uint64_t begin, uint64_t end) {
      bits[task] = differing_bits(rows.numbers + begin, end - begin) |
                   (rows.numbers[begin] ^ rows.numbers[0]);
    });
    uint64_t all = 0;
    for (uint64_t b : bits) all |= b;
    return all;
  }

  // Splits a part that is too large for one thread's cache.
  void divide(const Part& part) {
    uint64_t differing = differing_in(part);
    if (differing == 0) return divide_equal(part);
    Rows from = rows_of(part, part.in_result);
    auto bits = BucketBits::after_shared(differing, partition_bits(part.size));
    partition(part, bits, rows_of(part, !part.in_result),
              [&](uint64_t begin, uint64_t end, const auto& take) {
                for (uint64_t i = begin; i < end; ++i) take(from.numbers[i], from.ids[i]);
              });
  }

  // All numbers of the part are equal: so are the keys, or they are told apart by what follows.
  void divide_equal(Part part) {
    Rows rows = rows_of(part, part.in_result);
    if (numbers()) {
      Rows to = rows_of(part, true);
      to.numbers[0] = byte_swap(rows.numbers[0]);
      to.ids[0] = rows.ids[part.size - 1];
      part.kept = 1;
      done_.push_back(part);
      return;
    }
    uint64_t finished =
        TieSorter(keys_).split_by_length(rows.ids, rows.numbers, part.size, part.depth);
    finish(part, rows, finished);
    Part rest{part.begin + finished, part.size - finished, part.depth + 8, part.in_result, 0};
    if (rest.size == 0) return;
    take_next_slices(&rest);
    add_part(rest);
  }

  // The first rows of a part are in order, and their numbers say which of them stay.
  void finish(const Part& part, Rows rows, uint64_t finished) {
    uint32_t* to = rows_of(part, true).ids;
    uint64_t kept = 0;
    for (uint64_t i = 0; i < finished; ++i) {
      if (rows.numbers[i]) to[kept++] = rows.ids[i];
    }
    if (kept) done_.push_back({part.begin, finished, part.depth, true, kept});
  }

  void take_next_slices(Part* part) {
    Rows rows = rows_of(*part, part->in_result);
    Bytes first = keys_[rows.ids[0]];
    std::vector<uint64_t> shared(tasks(part->size), first.size() - part->depth);
    for_tasks(part->size, [&](uint64_t task, uint64_t begin, uint64_t end) {
      for (uint64_t i = begin; i < end && shared[task] > 0; ++i) {
        shared[task] = shared_bytes(first, keys_[rows.ids[i]], part->depth, shared[task]);
      }
    });
    part->depth += *std::min_element(shared.begin(), shared.end());
    pool_.run(part->size, rows_per_task, [&](uint64_t begin, uint64_t end) {
      for (uint64_t i = begin; i < end; ++i) {
        rows.numbers[i] = keys_.slice(rows.ids[i], part->depth);
      }
    });
  }

  // Sorts a small part into the result.
  void finish(Part& part) {
    Rows rows = rows_of(part, part.in_result), other = rows_of(part, !part.in_result);
    Rows to = rows_of(part, true);
    if (!numbers()) {
      part.kept = TieSorter(keys_).sort(rows, other, part.size, part.depth);
      if (!part.in_result) std::copy(rows.ids, rows.ids + part.kept, to.ids);
      return;
    }
    RowSorter().sort(rows, other, part.size, !part.in_result);
    uint64_t kept = 0;
    for (uint64_t i = 0; i < part.size; ++i) {
      bool last = i + 1 == part.size || to.numbers[i] != to.numbers[i + 1];
      // As stored, once it is compared no more.
      to.numbers[kept] = byte_swap(to.numbers[i]);
      to.ids[kept] = to.ids[i];
      kept += last;
    }
    part.kept = kept;
  }

  // Closes the gaps that replaced rows left between the parts.
  void collect() {
    done_.insert(done_.end(), small_.begin(), small_.end());
    std::sort(done_.begin(), done_.end(),
              [](const Part& a, const Part& b) { return a.begin < b.begin; });
    uint64_t kept = 0;
    std::vector<uint64_t> places;
    for (const Part& part : done_) {
      places.push_back(kept);
      kept += part.kept;
    }
    if (kept == rows_) return;
    numbers_ = {};
    ids_ = {};
    Sorted packed;
    packed.order.resize(kept);
    if (numbers()) packed.keys8.resize(kept);
    pool_.run(done_.size(), 1, [&](uint64_t begin, uint64_t end) {
      for (uint64_t i = begin; i < end; ++i) {
        Rows from = rows_of(done_[i], true);
        std::copy_n(from.ids, done_[i].kept, packed.order.data() + places[i]);
        if (numbers()) std::copy_n(from.numbers, done_[i].kept, packed.keys8.data() + places[i]);
      }
    });
    *sorted_ = std::move(packed);
  }

  TaskPool& pool_;
  WorkWatch* const watch_;  // null: nobody watches
  const SortInput& input_;
  ChunkKeys keys_;
  Sorted* sorted_;
  uint64_t rows_;
  BulkVector<uint64_t> result_numbers_;
  BulkVector<uint64_t> numbers_;
  BulkVector<uint32_t> ids_;
  std::vector<Part> large_, small_, done_;
};

}  // namespace

Status check_chunks(std::span<const KeyColumn> chunks) {
  constexpr uint64_t limit = uint64_t{1} << row_bits;
  if (chunks.size() > limit) {
    return Status::invalid(std::to_string(chunks.size()) + " chunks to sort: at most " +
                           std::to_string(limit));
  }
  uint64_t rows = 0;
  for (const KeyColumn& chunk : chunks) {
    rows += chunk.size;
    if (chunk.size <= limit) continue;
    return Status::invalid("a chunk of " + std::to_string(chunk.size) + " rows to sort: at most " +
                           std::to_string(limit));
  }
  if (rows <= max_index_keys) return {};
  return Status::invalid(std::to_string(rows) + " rows to sort: at most " +
                         std::to_string(max_index_keys));
}

Status sort_host(TaskPool& pool, std::span<const KeyColumn> chunks, Sorted* sorted) {
  sorted->order.clear();
  sorted->keys8.clear();
  STRIDE_TRY(check_chunks(chunks));
  SortInput input(chunks);
  BatchSort(pool, input, sorted).run();
  return {};
}

}  // namespace stride
