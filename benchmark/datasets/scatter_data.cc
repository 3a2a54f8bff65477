#include "benchmark/datasets/scatter_data.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <numeric>
#include <vector>

#include "benchmark/datasets/key_columns.h"
#include "benchmark/datasets/typed_columns.h"
#include "benchmark/harness/random_bits.h"

namespace stride::benchmark {
namespace {

constexpr double max_exponent = 10;

// Ranks 0, 1, 2, ... of which k is as likely as 1 / (k + 1)^exponent.
class RanksByPower {
 public:
  RanksByPower(uint64_t ranks, double exponent)
      : ranks_(static_cast<double>(ranks)),
        exponent_(exponent),
        first_(area(1.5) - 1),
        last_(area(ranks_ + 0.5)),
        sure_(2 - place(area(2.5) - height(2))) {}

  uint64_t operator()(uint64_t seed, uint64_t i) const {
    for (uint64_t attempt = 0;; ++attempt) {
      double share = share_of_one(scramble(random_word(seed, i) + attempt));
      double at = last_ + share * (first_ - last_);
      double x = place(at);
      double rank = std::clamp(std::floor(x + 0.5), 1.0, ranks_);
      if (rank - x <= sure_ || at >= area(rank + 0.5) - height(rank))
        return static_cast<uint64_t>(rank) - 1;
    }
  }

 private:
  double height(double x) const { return std::exp(-exponent_ * std::log(x)); }
  // Below the curve of heights, from 1 to x, and where it is that large. Both are sound for an
  // exponent of 1 and near it, too.
  double area(double x) const {
    double log = std::log(x), e = (1 - exponent_) * log;
    return (std::abs(e) > 1e-8 ? std::expm1(e) / e : 1 + e / 2) * log;
  }
  double place(double area) const {
    double e = std::max(area * (1 - exponent_), -1.0);
    return std::exp((std::abs(e) > 1e-8 ? std::log1p(e) / e : 1 - e / 2) * area);
  }

  double ranks_, exponent_, first_, last_, sure_;
};

// Sums of exponentially distributed numbers, block after block: the same for any number of threads.
constexpr uint64_t block_sources = 1 << 16;

double waiting_time(uint64_t seed, uint64_t i) {
  return -std::log1p(-share_of_one(random_word(seed, i)));
}

template <class Index>
void make_sorted(const TargetOptions& options, uint64_t seed, Index* targets, Parallel* parallel) {
  const uint64_t n = options.sources, blocks = n / block_sources + 1;  // of n + 1 numbers
  std::vector<double> starts(blocks + 1);
  auto for_blocks = [&](const auto& body) {
    // Parts begin at multiples of 64.
    parallel->for_parts(blocks * 64, 64, [&](unsigned, uint64_t begin, uint64_t end) {
      for (uint64_t b = begin / 64; b < end / 64; ++b)
        body(b, b * block_sources, std::min((b + 1) * block_sources, n + 1));
    });
  };
  for_blocks([&](uint64_t block, uint64_t begin, uint64_t end) {
    double sum = 0;
    for (uint64_t i = begin; i < end; ++i) sum += waiting_time(seed, i);
    starts[block + 1] = sum;
  });
  std::partial_sum(starts.begin(), starts.end(), starts.begin());
  const double scale = static_cast<double>(options.targets) / starts.back();
  const uint64_t last = options.targets - 1;
  for_blocks([&](uint64_t block, uint64_t begin, uint64_t end) {
    double sum = 0;
    for (uint64_t i = begin; i < std::min(end, n); ++i) {
      sum += waiting_time(seed, i);
      auto target = static_cast<uint64_t>((starts[block] + sum) * scale);
      targets[i] = static_cast<Index>(std::min(target, last));
    }
  });
}

template <class Index>
void write_targets(const TargetOptions& options, Index* targets, Parallel* parallel) {
  const uint64_t seed = random_word(options.seed, 0), n = options.targets;
  auto for_all = [&](const auto& target) {
    parallel->for_parts(options.sources, min_rows_per_part,
                        [&](unsigned, uint64_t begin, uint64_t end) {
                          for (uint64_t i = begin; i < end; ++i)
                            targets[i] = static_cast<Index>(target(i));
                        });
  };
  switch (options.distribution.kind) {
    case TargetDistribution::Kind::uniform:
      return for_all([&](uint64_t i) { return below(random_word(seed, i), n); });
    case TargetDistribution::Kind::sorted:
      return make_sorted(options, seed, targets, parallel);
    case TargetDistribution::Kind::zipf:
      break;
  }
  RanksByPower ranks(n, options.distribution.exponent);
  RandomOrder order(n, options.seed);
  for_all([&](uint64_t i) { return order[ranks(seed, i)]; });
}

// A multiple of 2^-11 below 1, and any sign.
uint16_t half_of(uint64_t bits) {
  auto eleven = static_cast<uint32_t>(bits >> 53);
  auto sign = static_cast<uint32_t>(bits & 1) << 15;
  if (eleven == 0) return 0;
  auto top = static_cast<uint32_t>(std::bit_width(eleven)) - 1;
  // 2^(top - 11) has the exponent top + 4, of a bias of 15.
  return static_cast<uint16_t>(sign | (top + 4) << 10 | (eleven << (10 - top) & 0x3FF));
}

float float_of(uint64_t bits) {
  return static_cast<float>(static_cast<int64_t>(bits) >> 40) * 0x1p-23f;
}
uint16_t brain_half_of(uint64_t bits) {
  float x = float_of(bits);
  uint32_t stored;
  std::memcpy(&stored, &x, sizeof stored);
  return static_cast<uint16_t>(stored >> 16);
}

template <class T>
uint64_t bits_of(T x) {
  std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t> bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}

// Calls body(t): a pointer to numbers of T's type.
template <class Body>
auto with_sums(NumberType type, const void* t, const Body& body) {
  switch (type) {
    case NumberType::i32:
      return body(static_cast<const int32_t*>(t));
    case NumberType::i64:
      return body(static_cast<const int64_t*>(t));
    case NumberType::f64:
      return body(static_cast<const double*>(t));
    default:
      return body(static_cast<const float*>(t));
  }
}

Status wrong_sum(uint64_t target, const std::string& details) {
  return Status(StatusCode::corruption,
                "wrong answer: T[" + std::to_string(target) + "]" + details);
}

}  // namespace

Result<TargetDistribution> parse_distribution(const std::string& text) {
  using Kind = TargetDistribution::Kind;
  if (text == "uniform") return TargetDistribution{text, Kind::uniform, 0};
  if (text == "sorted") return TargetDistribution{text, Kind::sorted, 0};
  if (text.starts_with("zipf:")) {
    const char* number = text.c_str() + 5;
    char* end = nullptr;
    double exponent = std::strtod(number, &end);
    if (end != number && *end == '\0' && exponent >= 0 && exponent <= max_exponent)
      return TargetDistribution{text, Kind::zipf, exponent};
    return Status::invalid(
        "--distribution: the exponent of zipf must be from 0 to 10 (zipf:1.1), "
        "and not '" +
        text + "'");
  }
  return Status::invalid("--distribution: unknown distribution '" + text +
                         "': there are uniform, sorted and zipf:S");
}

OwnedIndexes make_targets(const TargetOptions& options, uint32_t width, Parallel* parallel) {
  OwnedIndexes made;
  made.size = options.sources;
  made.width = width;
  made.words.resize(std::max<uint64_t>((options.sources * width + 7) / 8, 1));
  if (width == 4) {
    write_targets(options, reinterpret_cast<uint32_t*>(made.words.data()), parallel);
  } else {
    write_targets(options, made.words.data(), parallel);
  }
  return made;
}

OwnedNumbers make_sources(NumberType type, uint64_t n, uint64_t seed, Parallel* parallel) {
  OwnedNumbers made;
  made.type = type;
  made.size = n;
  made.words.resize(std::max<uint64_t>((n * width_of(type) + 7) / 8, 1));
  // Not the words that the targets are made of.
  const uint64_t stream = random_word(seed, 1);
  auto fill = [&](auto* numbers, const auto& number_of) {
    parallel->for_parts(n, min_rows_per_part, [&](unsigned, uint64_t begin, uint64_t end) {
      for (uint64_t i = begin; i < end; ++i) numbers[i] = number_of(random_word(stream, i));
    });
  };
  void* data = made.words.data();
  switch (type) {
    case NumberType::i32:
      fill(static_cast<int32_t*>(data), [](uint64_t b) { return static_cast<int32_t>(b >> 32); });
      break;
    case NumberType::i64:
      fill(static_cast<int64_t*>(data), [](uint64_t b) { return static_cast<int64_t>(b); });
      break;
    case NumberType::f64:
      fill(static_cast<double*>(data),
           [](uint64_t b) { return static_cast<double>(static_cast<int64_t>(b) >> 11) * 0x1p-52; });
      break;
    case NumberType::f16:
      fill(static_cast<uint16_t*>(data), half_of);
      break;
    case NumberType::bf16:
      fill(static_cast<uint16_t*>(data), brain_half_of);
      break;
    default:
      fill(static_cast<float*>(data), float_of);
      break;
  }
  return made;
}

// What the sum loses is found exactly: D. E. Knuth, The Art of Computer Programming, 4.2.2.
void ScatterReference::FloatSum::add(double x) {
  double before = sum;
  sum = before + x;
  double added = sum - before;
  lost += (before - (sum - added)) + (x - added);
  magnitude += std::abs(x);
  ++count;
}

ScatterReference::ScatterReference(const Numbers& sources, const Indexes& targets,
                                   uint64_t target_count, ScatterOperation operation,
                                   Parallel* parallel)
    : type_(sum_type_of(sources.type)), sources_(sources.size) {
  exact_ = !is_float(type_) || operation != ScatterOperation::add;
  if (exact_) {
    results_.resize(target_count);
  } else {
    sums_.resize(target_count);
  }
  // A thread has a range of targets, and goes through all sources: no target is shared.
  const uint64_t threads = parallel->threads();
  std::vector<double> largest(threads);
  auto for_ranges = [&](const auto& body) {
    parallel->for_parts(threads * 64, 64, [&](unsigned, uint64_t begin, uint64_t end) {
      for (uint64_t part = begin / 64; part < end / 64; ++part)
        body(part, target_count * part / threads, target_count * (part + 1) / threads);
    });
  };
  with_sources(sources, [&](const auto& source) {
    using T = typename std::decay_t<decltype(source)>::Sum;
    with_targets(targets, [&](const auto* r) {
      for_ranges([&](uint64_t part, uint64_t first, uint64_t last) {
        const uint64_t here = last - first;
        if (!exact_) {
          FloatSum* sums = sums_.data() + first;
          std::fill(sums, sums + here, FloatSum{});
          for (uint64_t i = 0; i < sources_; ++i)
            if (r[i] - first < here) sums[r[i] - first].add(static_cast<double>(source(i)));
          for (uint64_t i = sources_ * part / threads; i < sources_ * (part + 1) / threads; ++i)
            largest[part] = std::max(largest[part], std::abs(static_cast<double>(source(i))));
          return;
        }
        std::vector<T> results(here, T{0});
        for (uint64_t i = 0; i < sources_; ++i) {
          if (r[i] - first >= here) continue;
          T& result = results[r[i] - first];
          result = operation == ScatterOperation::add   ? sum_of(result, source(i))
                   : operation == ScatterOperation::min ? std::min(result, source(i))
                                                        : std::max(result, source(i));
        }
        for (uint64_t t = 0; t < here; ++t) results_[first + t] = bits_of(results[t]);
      });
    });
  });
  largest_ = *std::max_element(largest.begin(), largest.end());
}

template <class T>
Status ScatterReference::check_exact(const T* t, Parallel* parallel) const {
  std::atomic<uint64_t> wrong{UINT64_MAX};
  parallel->for_parts(results_.size(), min_rows_per_part,
                      [&](unsigned, uint64_t begin, uint64_t end) {
                        for (uint64_t i = begin; i < end; ++i)
                          if (bits_of(t[i]) != results_[i]) wrong = i;
                      });
  if (wrong == UINT64_MAX) return {};
  return wrong_sum(wrong, " is " + std::to_string(t[wrong]) + ", with the bits of another number");
}

template <class T>
Status ScatterReference::check_sums(const T* t, ScatterMode mode, Parallel* parallel) const {
  constexpr double u = std::numeric_limits<T>::epsilon() / 2;
  const int bits = 2 * (62 - static_cast<int>(std::bit_width(sources_)));
  const double cut = std::ldexp(std::max(largest_, 0x1p-900), -bits);
  auto allowed = [&](const FloatSum& sum) {
    auto count = static_cast<double>(sum.count);
    if (mode == ScatterMode::fast) return (count + 1) * u * sum.magnitude;
    return count * cut + (u + 0x1p-50) * std::abs(sum.sum);
  };
  std::atomic<uint64_t> wrong{UINT64_MAX};
  parallel->for_parts(sums_.size(), min_rows_per_part, [&](unsigned, uint64_t begin, uint64_t end) {
    for (uint64_t i = begin; i < end; ++i) {
      double off = std::abs(static_cast<double>(t[i]) - sums_[i].sum - sums_[i].lost);
      if (!(off <= allowed(sums_[i]))) wrong = i;
    }
  });
  if (wrong == UINT64_MAX) return {};
  const FloatSum& sum = sums_[wrong];
  return wrong_sum(wrong, " is " + std::to_string(t[wrong]) + ", and not " +
                              std::to_string(sum.sum) + " of " + std::to_string(sum.count) +
                              " sources, give or take " + std::to_string(allowed(sum)));
}

Status ScatterReference::check(const void* t, ScatterMode mode, Parallel* parallel) const {
  return with_sums(type_, t, [&](const auto* numbers) -> Status {
    using T = std::decay_t<decltype(*numbers)>;
    if (exact_) return check_exact(numbers, parallel);
    if constexpr (std::is_floating_point_v<T>) return check_sums(numbers, mode, parallel);
    return {};
  });
}

uint64_t hash_numbers(NumberType type, const void* t, uint64_t n, Parallel* parallel) {
  return with_sums(type, t, [&](const auto* numbers) {
    std::atomic<uint64_t> hash{0};
    parallel->for_parts(n, min_rows_per_part, [&](unsigned, uint64_t begin, uint64_t end) {
      uint64_t sum = 0;
      for (uint64_t i = begin; i < end; ++i) sum += scramble(bits_of(numbers[i]) ^ scramble(i + 1));
      hash += sum;
    });
    return hash.load();
  });
}

}  // namespace stride::benchmark
