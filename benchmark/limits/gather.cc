#include "benchmark/limits/gather.h"

#include <algorithm>
#include <cstring>

#include "benchmark/harness/engine_run.h"
#include "storage/prefetch.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace stride::benchmark {
namespace {

constexpr uint64_t line_bytes = 64;
constexpr uint64_t min_values = 512;      // fewer are not worth another core
constexpr uint64_t timed_group = 1000;    // values between two looks at the clock
constexpr uint64_t window_bytes = 4096;   // collected in the first cache, then stored at once
constexpr uint64_t widest_staged = 1024;  // wider values are stored directly

void prefetch_value(Bytes value) {
  for (uint64_t at = 0; at < value.size(); at += line_bytes) prefetch(value.data() + at);
  prefetch(value.data() + value.size() - 1);
}

// A call to memcpy costs more than short values do.
void copy_value(std::byte* to, const std::byte* from, uint64_t bytes) {
  auto copy_ends = [&]<uint64_t part> {
    std::memcpy(to, from, part);
    std::memcpy(to + bytes - part, from + bytes - part, part);
  };
  if (bytes > 256) {
    std::memcpy(to, from, bytes);
  } else if (bytes >= 16) {
    for (uint64_t at = 0; at + 16 <= bytes; at += 16) std::memcpy(to + at, from + at, 16);
    std::memcpy(to + bytes - 16, from + bytes - 16, 16);
  } else if (bytes >= 8) {
    copy_ends.operator()<8>();
  } else if (bytes >= 4) {
    copy_ends.operator()<4>();
  } else {
    for (uint64_t i = 0; i < bytes; ++i) to[i] = from[i];
  }
}

// Calls use(value) for each place, with the values ahead on their way.
template <class Use>
void each_value(const ValueColumn& values, std::span<const uint32_t> places, uint64_t ahead,
                const Use& use) {
  uint64_t n = places.size();
  for (uint64_t i = 0; i < std::min(ahead, n); ++i) prefetch_value(values[places[i]]);
  for (uint64_t i = 0; i < n; ++i) {
    if (i + ahead < n) prefetch_value(values[places[i + ahead]]);
    use(values[places[i]].data());
  }
}

#if defined(__SSE2__)
// Collects values and stores them in whole lines, which are not read from memory first.
class LineWriter {
 public:
  LineWriter(std::byte* out, uint64_t width) : out_(out), width_(width) {}
  ~LineWriter() {
    std::memcpy(out_, window_, filled_);
    _mm_sfence();
  }
  void add(const std::byte* value) {
    copy_value(window_ + filled_, value, width_);
    filled_ += width_;
    if (filled_ < window_bytes) return;
    for (uint64_t at = 0; at < window_bytes; at += 16) {
      __m128i part = _mm_load_si128(reinterpret_cast<const __m128i*>(window_ + at));
      _mm_stream_si128(reinterpret_cast<__m128i*>(out_ + at), part);
    }
    out_ += window_bytes;
    filled_ -= window_bytes;
    std::memcpy(window_, window_ + window_bytes, filled_);
  }

 private:
  alignas(64) std::byte window_[window_bytes + widest_staged];
  std::byte* out_;
  uint64_t width_, filled_ = 0;
};
#endif

}  // namespace

void gather_rows(const ValueColumn& values, std::span<const uint32_t> places, uint64_t ahead,
                 [[maybe_unused]] bool past_caches, std::byte* out) {
  uint64_t width = values.width;
#if defined(__SSE2__)
  if (past_caches && width <= widest_staged) {
    LineWriter writer(out, width);
    return each_value(values, places, ahead, [&](const std::byte* value) { writer.add(value); });
  }
#endif
  each_value(values, places, ahead, [&](const std::byte* value) {
    copy_value(out, value, width);
    out += width;
  });
}

void GatherLimit::copy(const Loop& loop, std::span<const uint32_t> places) {
  auto part = [&](unsigned, uint64_t begin, uint64_t end) {
    gather_rows(values_, places.subspan(begin, end - begin), loop.ahead, loop.past_caches,
                out_.data() + begin * values_.width);
  };
  if (!loop.all_threads) return part(0, 0, places.size());
  parallel_->for_parts(places.size(), min_values, part);
}

double GatherLimit::measure(const Loop& loop, uint64_t batch, double min_seconds) {
  uint64_t copied = 0;
  Stopwatch watch;
  do {
    for (uint64_t group = 0; group < std::max(batch, timed_group); group += batch) {
      if (at_ + batch > places_.size()) at_ = 0;
      copy(loop, places_.subspan(at_, batch));
      at_ += batch;
      copied += batch;
      // As if the caller had to see one batch before it asks for the next.
      seen_.fetch_add(1, std::memory_order_seq_cst);
    }
  } while (watch.seconds() < min_seconds);
  return static_cast<double>(copied) / watch.seconds();
}

double GatherLimit::values_per_second(uint64_t batch) {
  out_.resize(batch * values_.width);
  Loop best{};
  double fastest = 0;
  for (bool all_threads : {false, true}) {
    if (all_threads && (batch < 2 * min_values || parallel_->threads() == 1)) continue;
    for (bool past_caches : {false, true}) {
      for (uint64_t ahead : {8, 16, 32, 64}) {
        Loop loop{all_threads, past_caches, ahead};
        double rate = measure(loop, batch, seconds_ / 8);
        if (rate <= fastest) continue;
        fastest = rate;
        best = loop;
      }
    }
  }
  return std::max(fastest, measure(best, batch, seconds_));
}

}  // namespace stride::benchmark
