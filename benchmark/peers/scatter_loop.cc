#include "benchmark/peers/scatter_loop.h"

#include <algorithm>

#include "benchmark/datasets/typed_columns.h"

namespace stride::benchmark {

void scatter_loop(const Numbers& sources, const Indexes& targets, const MutableNumbers& into,
                  ScatterOperation operation) {
  with_sources(sources, [&](const auto& source) {
    using T = typename std::decay_t<decltype(source)>::Sum;
    with_targets(targets, [&](const auto* r) {
      T* t = static_cast<T*>(into.data);
      const uint64_t n = sources.size;
      switch (operation) {
        case ScatterOperation::add:
          for (uint64_t i = 0; i < n; ++i) t[r[i]] = sum_of(t[r[i]], source(i));
          break;
        case ScatterOperation::min:
          for (uint64_t i = 0; i < n; ++i) t[r[i]] = std::min(t[r[i]], source(i));
          break;
        case ScatterOperation::max:
          for (uint64_t i = 0; i < n; ++i) t[r[i]] = std::max(t[r[i]], source(i));
          break;
      }
    });
  });
}

}  // namespace stride::benchmark
