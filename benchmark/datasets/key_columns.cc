#include "benchmark/datasets/key_columns.h"

#include <tbb/parallel_sort.h>

#include <algorithm>

#include "benchmark/harness/sorted_rows.h"

namespace stride::benchmark {

template <class Number>
BulkVector<Number> sorted_numbers(const KeyColumn& keys, Parallel* parallel) {
  BulkVector<Number> numbers(keys.size);
  parallel->for_parts(keys.size, min_rows_per_part, [&](unsigned, uint64_t begin, uint64_t end) {
    for (uint64_t i = begin; i < end; ++i) {
      numbers[i] = load_big_endian<Number>(keys.data + i * sizeof(Number));
    }
  });
#if defined(__SANITIZE_THREAD__)
  // As Parallel::for_parts().
  (void)parallel;
  std::sort(numbers.begin(), numbers.end());
#else
  parallel->run([&] { tbb::parallel_sort(numbers.begin(), numbers.end()); });
#endif
  return numbers;
}

template <class Number>
OwnedColumn column_of(const BulkVector<Number>& numbers, Parallel* parallel) {
  OwnedColumn column;
  column.rows = numbers.size();
  column.width = sizeof(Number);
  column.data.resize(numbers.size() * sizeof(Number));
  parallel->for_parts(column.rows, min_rows_per_part, [&](unsigned, uint64_t begin, uint64_t end) {
    for (uint64_t i = begin; i < end; ++i) {
      store_big_endian(numbers[i], column.data.data() + i * sizeof(Number));
    }
  });
  return column;
}

template BulkVector<uint32_t> sorted_numbers(const KeyColumn&, Parallel*);
template BulkVector<uint64_t> sorted_numbers(const KeyColumn&, Parallel*);
template OwnedColumn column_of(const BulkVector<uint32_t>&, Parallel*);
template OwnedColumn column_of(const BulkVector<uint64_t>&, Parallel*);

OwnedColumn sorted_copy(const KeyColumn& keys, Parallel* parallel) {
  if (keys.is_fixed() && keys.width == 4) {
    return column_of(sorted_numbers<uint32_t>(keys, parallel), parallel);
  }
  if (keys.is_fixed() && keys.width == 8) {
    return column_of(sorted_numbers<uint64_t>(keys, parallel), parallel);
  }
  ResultBuffer<SortedRow> rows;
  sort_rows(keys, parallel, &rows);
  return make_column(keys.is_fixed() ? keys.width : 0, keys.size, parallel,
                     [&](uint64_t i) { return keys[rows[i].row]; });
}

}  // namespace stride::benchmark
