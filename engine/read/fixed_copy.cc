#include "engine/read/fixed_copy.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <new>
#include <span>
#include <vector>

#include "engine/read/fixed_rows.h"
#include "engine/read/result_writer.h"
#include "engine/read/row_tasks.h"
#include "storage/work_watch.h"

namespace stride {
namespace {

// Small batches make small tasks, and so do wide values: all threads end at about the same time.
uint64_t rows_of_task(uint64_t queries, uint64_t width) {
  constexpr uint64_t many_tasks = 128, word = 64, task_bytes = 1 << 20;
  const uint64_t rows = queries < many_tasks * rows_per_task ? rows_per_task / 4 : rows_per_task;
  return std::clamp(task_bytes / width / word * word, word, rows);
}

// Where a value goes depends on nothing but how many before it were found. Queries make tasks, and
// a task is copied once all before it have been located: after the search or, where that hands over
// pieces, while it goes on, by threads that hold no piece. A thread that loses its processor while
// it copies keeps nobody waiting: beside the writing of a load, where 8M rows were copied by
// threads that held pieces, they took four times as long.
class FixedCopy {
 public:
  FixedCopy(BatchSearch& search, uint64_t queries, uint64_t width, GetResult* result)
      : search_(search),
        n_(queries),
        width_(width),
        task_rows_(rows_of_task(queries, width)),
        tasks_((queries + task_rows_ - 1) / task_rows_),
        are_padded_(width == result->row_width),
        watch_(WorkWatch::current()),
        other_copies_(search.executor().copies()),
        result_(*result) {
    result_.scratch.reset(n_);
    locations_ = reinterpret_cast<Location*>(result_.scratch.data());
    found_ = result_.found.words();
  }

  Status run(HostQueries* queries) {
    is_early_ = other_copies_.before() < few_copies && search_.finds_in_pieces(queries->column()) &&
                make_early_room();
    if (is_early_) located_ = std::vector<std::atomic<uint32_t>>(tasks_);
    if (are_padded_) reset_rows(n_, &result_);
    result_.offsets[0] = 0;
    auto take = [&](uint64_t first, std::span<const Location> block) {
      put_block(first, block, locations_, /*total_bytes=*/0, found_);  // they are read at once
      if (is_early_) note_located(first, first + block.size());
      return Status();
    };
    TakeLocations::Meanwhile meanwhile;
    if (is_early_) meanwhile = [&] { copy_located(); };
    auto begin_again = [&] {
      is_early_ = false;
      progress_ = Progress{0, 0};
    };
    STRIDE_TRY(search_.locate(queries, {take, meanwhile}, begin_again));
    return copy_rest();
  }

 private:
  // Tasks that somebody copies or has copied, and how many values they have.
  struct Progress {
    uint32_t tasks, found;
  };
  static_assert(rows_per_task / 4 % 64 == 0);

  // Where more batches are copied at once, no thread has time to spare.
  static constexpr uint32_t few_copies = 2;

  // Makes room for all that might be found, of which only what is found is touched. False: there is
  // none, or too much might be found.
  bool make_early_room() {
    constexpr uint64_t most_bytes = 1 << 30;
    if (are_padded_) return n_ <= UINT32_MAX;  // they need no more than their own room
    if (n_ > most_bytes / width_ || !result_.data.keeps_memory(n_ * width_)) return false;
    try {
      result_.data.reset(n_ * width_);
      return true;
    } catch (const std::bad_alloc&) {
      return false;
    }
  }

  uint64_t task_end(uint64_t task) const { return std::min(n_, (task + 1) * task_rows_); }

  uint64_t count_found(uint64_t task) const {
    const uint64_t words = task_rows_ / 64;
    uint64_t count = 0;
    for (uint64_t w = task * words; w < std::min<uint64_t>(found_.size(), (task + 1) * words); ++w)
      count += static_cast<uint64_t>(std::popcount(found_[w]));
    return count;
  }

  // Tasks of which a block has only a part wait for the end.
  void note_located(uint64_t first, uint64_t end) {
    for (uint64_t task = (first + task_rows_ - 1) / task_rows_;
         task < tasks_ && task_end(task) <= end; ++task)
      located_[task] = static_cast<uint32_t>(count_found(task)) + 1;
  }

  // Copies tasks as long as the next one has been located. Nobody waits for a lock here: to be
  // woken takes longer than a task.
  void copy_located() {
    for (Progress now = progress_.load();
         now.tasks < tasks_ && !(watch_ && watch_->is_stopped());) {
      const uint32_t located = located_[now.tasks];
      if (located == 0) return;
      if (!progress_.compare_exchange_weak(now, {now.tasks + 1, now.found + located - 1})) continue;
      copy(now.tasks, now.found);
      now = progress_.load();
    }
  }

  // Copies what has not been, and says where all values are.
  Status copy_rest() {
    const Progress before = progress_.load();
    const uint64_t first = before.tasks;
    uint64_t found = before.found;
    std::vector<uint64_t> starts;
    for (uint64_t task = first; task < tasks_; ++task) {
      starts.push_back(found);
      found += count_found(task);
    }
    if (!are_padded_) {
      is_early_ ? result_.data.shrink(found * width_) : result_.data.reset(found * width_);
      result_.values = Column::variable(result_.data.data(), result_.offsets.data(), n_);
    }
    search_.host().parallel_for(tasks_ - first, 1, [&](uint64_t i, uint64_t end) {
      for (; i < end; ++i) copy(first + i, starts[i]);
    });
    return {};
  }

  // start: how many values go before those of the task.
  void copy(uint64_t task, uint64_t start) {
    const uint64_t begin = task * task_rows_, end = task_end(task);
    const Location* const locations = locations_;
    const std::span<const Source> sources = search_.sources();
    const uint64_t width = width_;
    auto value = [&](Location location) {
      return sources[location.index].values.column.data + location.rank * width;
    };
    if (are_padded_)
      return copy_rows(begin, end, &result_, [&](uint64_t i) -> const std::byte* {
        return locations[i].found() ? value(locations[i]) : nullptr;
      });
    uint64_t* const offsets = result_.offsets.data();
    uint64_t at = start * width;
    ResultWriter out(result_.data.data() + at, result_.data.size() > cached_bytes);
    auto look_ahead = [&](uint64_t i) {
      if (i < end && locations[i].found()) prefetch_row(value(locations[i]), width);
    };
    for (uint64_t i = begin; i < begin + copies_ahead; ++i) look_ahead(i);
    for (uint64_t i = begin; i < end; ++i) {
      look_ahead(i + copies_ahead);
      if (locations[i].found()) {
        out.add(value(locations[i]), width);
        at += width;
      }
      offsets[i + 1] = at;
    }
  }

  BatchSearch& search_;
  const uint64_t n_, width_, task_rows_, tasks_;
  const bool are_padded_;         // to the width that is wanted
  const WorkWatch* const watch_;  // null: nobody can stop it
  const CountedUse other_copies_;
  GetResult& result_;
  Location* locations_;
  std::span<uint64_t> found_;
  std::vector<std::atomic<uint32_t>> located_;  // how many each task has found, and 1; 0: not known
  bool is_early_ = false;
  // A line of its own, for others of these are read all the time.
  alignas(64) std::atomic<Progress> progress_{Progress{0, 0}};
};

}  // namespace

Status copy_fixed(BatchSearch& search, HostQueries* queries, uint64_t width, GetResult* result) {
  return FixedCopy(search, queries->column().size, width, result).run(queries);
}

}  // namespace stride
