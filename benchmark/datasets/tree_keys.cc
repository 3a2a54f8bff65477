#include "benchmark/datasets/tree_keys.h"

#include <algorithm>
#include <deque>
#include <filesystem>
#include <random>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "benchmark/datasets/text_source.h"
#include "benchmark/harness/arguments.h"

namespace stride::benchmark {
namespace {

constexpr uint64_t default_keys = 1'000'000;
constexpr const char* word_list = "benchmark/data/words_en_scowl_insane.txt.zst";

// A random number for each i (SplitMix64; Steele, Lea, Flood, OOPSLA 2014).
uint64_t random_at(uint64_t seed, uint64_t i) {
  uint64_t x = seed * 0xD1342543DE82EF95ull + (i + 1) * 0x9E3779B97F4A7C15ull;
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ x >> 27) * 0x94D049BB133111EBull;
  return x ^ x >> 31;
}

bool is_hit(const QueryOptions& options, uint64_t query) {
  return static_cast<double>(random_at(~options.seed, query) >> 11) * 0x1p-53 < options.hit_rate;
}

Result<OwnedColumn> read_lines(const std::string& path, uint64_t max_lines, uint64_t seed,
                               Parallel* parallel) {
  Result<std::string> text = read_text_file(path);
  if (!text.ok()) return text.status();
  std::vector<std::string_view> lines;
  std::unordered_set<std::string_view> seen;
  for (std::string_view line : split_lines(*text)) {
    if (line.empty() || !seen.insert(line).second) continue;
    if (line.size() > max_key_bytes) {
      return Status::invalid("a line of " + std::to_string(line.size()) + " bytes: a key has " +
                             std::to_string(max_key_bytes) + " at most")
          .with_file(path);
    }
    lines.push_back(line);
    if (lines.size() == max_lines) break;
  }
  if (lines.empty()) return Status::invalid("no keys in it").with_file(path);
  std::shuffle(lines.begin(), lines.end(), std::mt19937_64(seed));
  bool one_width = std::all_of(lines.begin(), lines.end(),
                               [&](auto line) { return line.size() == lines[0].size(); });
  uint32_t width = one_width ? static_cast<uint32_t>(lines[0].size()) : 0;
  return make_column(width, lines.size(), parallel, [&](uint64_t i) { return as_bytes(lines[i]); });
}

OwnedColumn make_random(const RandomKeys& random, uint32_t width, uint64_t keys,
                        Parallel* parallel) {
  OwnedColumn column;
  column.rows = keys;
  column.width = width;
  column.data.resize(keys * width);
  parallel->for_parts(keys, min_rows_per_part, [&](unsigned, uint64_t begin, uint64_t end) {
    for (; begin < end; ++begin) random.write(begin, &column.data[begin * width]);
  });
  return column;
}

std::string how_many(uint64_t keys, uint32_t width) {
  return with_commas(keys) + " keys of " + std::to_string(width) +
         (width == 1 ? " byte" : " bytes");
}

}  // namespace

Result<KeyKind> parse_key_kind(const std::string& text) {
  if (text == "u32") return KeyKind{text, 4, ""};
  if (text == "u64") return KeyKind{text, 8, ""};
  if (text == "words") return KeyKind{text, 0, word_list};
  if (text.starts_with("fixed:")) {
    Result<uint64_t> width = parse_count("BYTES of fixed:BYTES", text.substr(6), max_key_bytes);
    if (!width.ok()) return width.status();
    return KeyKind{text, static_cast<uint32_t>(*width), ""};
  }
  std::error_code error;
  if (std::filesystem::is_regular_file(text, error)) return KeyKind{text_name(text), 0, text};
  return Status::invalid(
      "--keys must be u32, u64, fixed:BYTES, words or a file, and there is no "
      "file '" +
      text + "'");
}

Scramble::Scramble(unsigned bits, uint64_t seed)
    : mask_(~uint64_t{0} >> (64 - bits)), shift_(bits / 2) {
  uint64_t i = 0;
  for (uint64_t& key : keys_) key = random_at(seed, i++);
}

RandomKeys::RandomKeys(uint32_t width, uint64_t seed)
    : width_(width),
      head_(std::min(width, 8u)),
      count_(head_ == 8 ? 0 : uint64_t{1} << (8 * head_)),
      scramble_(8 * head_, seed) {}

void RandomKeys::write(uint64_t i, std::byte* to) const {
  uint64_t number = scramble_(i);
  std::byte head[8];
  store_big_endian(number << (64 - 8 * head_), head);
  std::memcpy(to, head, head_);
  for (uint32_t at = head_; at < width_; at += 8) {
    uint64_t more = random_at(number, at);
    std::memcpy(to + at, &more, std::min(8u, width_ - at));
  }
}

TreeKeys::TreeKeys(OwnedColumn shuffled, std::optional<RandomKeys> random, Parallel* parallel)
    : shuffled_(std::move(shuffled)), random_(std::move(random)) {
  sorted_.emplace(shuffled_.view(), parallel);
}

Result<TreeKeys> TreeKeys::make(const KeyKind& kind, uint64_t keys, uint64_t seed,
                                Parallel* parallel) {
  if (kind.width == 0) {
    Result<OwnedColumn> lines = read_lines(kind.path, keys, seed, parallel);
    if (!lines.ok()) return lines.status();
    return TreeKeys(std::move(*lines), std::nullopt, parallel);
  }
  RandomKeys random(kind.width, seed);
  if (keys == 0) keys = default_keys;
  if (random.count() != 0 && keys > random.count()) {
    return Status::invalid("there are only " + how_many(random.count(), kind.width) + ", and " +
                           with_commas(keys) + " are asked for");
  }
  return TreeKeys(make_random(random, kind.width, keys, parallel), random, parallel);
}

Result<OwnedColumn> TreeKeys::draw_queries(const QueryOptions& options, Parallel* parallel) const {
  Result<OwnedColumn> drawn =
      random_ ? draw_random(options, parallel) : Result<OwnedColumn>(draw_lines(options, parallel));
  if (!drawn.ok() || !options.sorted) return drawn;
  return sorted_copy(drawn->view(), parallel);
}

Result<OwnedColumn> TreeKeys::draw_random(const QueryOptions& options, Parallel* parallel) const {
  uint64_t absent = random_->count() - size();  // modulo 2^64
  if (absent == 0 && options.hit_rate < 1) {
    return Status::invalid("all " + how_many(size(), shuffled_.width) +
                           " are there, and none is left for a miss");
  }
  OwnedColumn column;
  column.rows = options.queries;
  column.width = shuffled_.width;
  column.data.resize(column.rows * column.width);
  auto draw = [&](unsigned, uint64_t begin, uint64_t end) {
    for (; begin < end; ++begin) {
      uint64_t random = random_at(options.seed, begin);
      uint64_t key = is_hit(options, begin) ? random % size() : size() + random % absent;
      random_->write(key, &column.data[begin * column.width]);
    }
  };
  parallel->for_parts(options.queries, min_rows_per_part, draw);
  return column;
}

OwnedColumn TreeKeys::draw_lines(const QueryOptions& options, Parallel* parallel) const {
  BulkVector<Bytes> drawn(options.queries);
  std::vector<std::deque<std::string>> misses(parallel->max_parts());  // of each part
  KeyColumn keys = shuffled();
  auto draw = [&](unsigned part, uint64_t begin, uint64_t end) {
    for (; begin < end; ++begin) {
      uint64_t random = random_at(options.seed, begin);
      drawn[begin] = keys[random % keys.size];
      if (is_hit(options, begin)) continue;
      drawn[begin] = as_bytes(misses[part].emplace_back(change(drawn[begin], random)));
    }
  };
  parallel->for_parts(options.queries, min_rows_per_part, draw);
  return make_column(shuffled_.width, options.queries, parallel,
                     [&](uint64_t i) { return drawn[i]; });
}

// More and more of the last bytes are changed until the key is absent. That ends: no line has an LF
// in it.
std::string TreeKeys::change(Bytes key, uint64_t random) const {
  std::string changed(as_text(key));
  for (uint64_t attempt = 0;; ++attempt) {
    uint64_t bytes = std::min<uint64_t>(changed.size(), 1 + attempt / 32);
    for (uint64_t b = 0; b < bytes; ++b) {
      changed[changed.size() - 1 - b] = static_cast<char>(random_at(random + attempt, b));
    }
    if (!sorted_->contains(as_bytes(changed))) return changed;
  }
}

OwnedColumn halves(const KeyColumn& queries, bool sorted, Parallel* parallel) {
  uint32_t width = queries.is_fixed() ? (queries.width + 1) / 2 : 0;
  OwnedColumn column = make_column(width, queries.size, parallel, [&](uint64_t i) {
    Bytes query = queries[i];
    return query.first((query.size() + 1) / 2);
  });
  if (!sorted) return column;
  return sorted_copy(column.view(), parallel);
}

}  // namespace stride::benchmark
