// Key sets of many kinds, and columns that own their memory.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "gpu/backend.h"
#include "storage/column.h"

namespace stride::test {

using Random = std::mt19937_64;
using Keys = std::vector<std::string>;

inline std::string big_endian(uint64_t x, unsigned bytes = 8) {
  std::string s(bytes, '\0');
  for (unsigned i = 0; i < bytes && i < 8; ++i) s[bytes - 1 - i] = static_cast<char>(x >> 8 * i);
  return s;
}

inline std::string random_bytes(Random& random, size_t bytes, unsigned alphabet = 256) {
  std::string s(bytes, '\0');
  for (char& c : s) c = static_cast<char>(random() % alphabet);
  return s;
}

inline uint32_t rank_below(const Keys& keys, const std::string& query) {
  return static_cast<uint32_t>(std::lower_bound(keys.begin(), keys.end(), query) - keys.begin());
}

// Query or staged keys, as a caller lays them out.
class OwnedColumn {
 public:
  // Fixed where all keys have one width and `fixed` is asked for.
  OwnedColumn(const Keys& keys, bool fixed) : rows_(keys.size()) {
    width_ = keys.empty() ? 8 : static_cast<uint32_t>(keys[0].size());
    fixed_ = fixed && std::all_of(keys.begin(), keys.end(),
                                  [&](const std::string& key) { return key.size() == width_; });
    offsets_.push_back(0);
    for (const std::string& key : keys) {
      bytes_ += key;
      offsets_.push_back(bytes_.size());
    }
    // Exactly as long as need be, so that a sanitizer sees reads past the end.
    data_.assign(bytes_.begin(), bytes_.end());
    data_.shrink_to_fit();
  }
  KeyColumn column() const {
    return fixed_ ? KeyColumn::fixed(data_.data(), width_, rows_)
                  : KeyColumn::variable(data_.data(), offsets_.data(), rows_);
  }

 private:
  std::string bytes_;
  std::vector<char> data_;
  std::vector<uint64_t> offsets_;
  uint64_t rows_;
  uint32_t width_;
  bool fixed_;
};

// A sorted, duplicate-free column, as a segment lays it out.
class OwnedIndex {
 public:
  OwnedIndex(Keys keys, bool fixed) : keys_(std::move(keys)), owned_(keys_, fixed) {
    KeyColumn source = owned_.column();
    column_.data = source.data;
    column_.data_bytes = source.bytes();
    column_.size = source.size;
    column_.width = source.width;
    column_.fixed = source.is_fixed();
    if (!column_.fixed) pack_offsets(source);
  }
  OwnedIndex(const OwnedIndex&) = delete;

  const Keys& keys() const { return keys_; }
  const PackedColumn& column() const { return column_; }
  std::vector<std::byte>& image() { return image_; }
  IndexView view(BlockGuard* guard = nullptr) const {
    return {column_, {image_.empty() ? nullptr : image_.data(), image_.size()}, guard};
  }

 private:
  void pack_offsets(const KeyColumn& source) {
    uint64_t most = 0;
    for (uint64_t row = 0; row <= source.size; ++row) {
      uint64_t base = source.begin(row >> 7 << 7);
      if (row % 128 == 0) bases_.push_back(base);
      most = std::max(most, source.begin(row) - base);
    }
    uint32_t width = most < 65536 ? 2 : most >> 32 ? 8 : 4;
    deltas_.resize((source.size + 1) * width);
    for (uint64_t row = 0; row <= source.size; ++row) {
      uint64_t delta = source.begin(row) - bases_[row >> 7];
      std::memcpy(deltas_.data() + row * width, &delta, width);
    }
    column_.offsets = {bases_.data(), deltas_.data(), width};
  }

  Keys keys_;
  OwnedColumn owned_;
  PackedColumn column_;
  std::vector<uint64_t> bases_;
  std::vector<std::byte> deltas_;
  std::vector<std::byte> image_;
};

inline Keys sorted_unique(Keys keys) {
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  return keys;
}

// A kind of key set: unsorted, with duplicates.
struct KeySet {
  const char* name;
  Keys (*make)(Random&, size_t n);
};

inline Keys random_numbers(Random& random, size_t n) {
  Keys keys;
  for (size_t i = 0; i < n; ++i) keys.push_back(big_endian(random()));
  return keys;
}

// Runs of consecutive numbers that begin anywhere.
inline Keys clusters(Random& random, size_t n) {
  Keys keys;
  uint64_t next[4];
  for (uint64_t& start : next) start = random();
  for (size_t i = 0; i < n; ++i) keys.push_back(big_endian(next[random() % 4]++));
  return keys;
}

inline Keys words(Random& random, size_t n) {
  Keys keys;
  for (size_t i = 0; i < n; ++i) {
    std::string word;
    size_t length = 1 + random() % 12;
    // Letters that are unevenly likely.
    for (size_t k = 0; k < length; ++k)
      word += static_cast<char>('a' + (random() % 26 * (random() % 26)) / 26);
    keys.push_back(word);
  }
  return keys;
}

inline Keys urls(Random& random, size_t n) {
  Keys hosts = words(random, 20), keys;
  for (size_t i = 0; i < n; ++i) {
    std::string url = "https://www." + hosts[random() % hosts.size()] + ".example.com/";
    for (size_t k = random() % 4; k > 0; --k) url += words(random, 1)[0] + "/";
    keys.push_back(url + std::to_string(random() % 100));
  }
  return keys;
}

// Prefixes of each other, ends of zeros and ones, all lengths from 0.
inline Keys zeros_and_ones(Random& random, size_t n) {
  Keys keys;
  for (size_t i = 0; i < n; ++i) {
    std::string key(random() % 20, '\0');
    for (char& c : key) c = random() % 4 ? '\0' : random() % 2 ? '\xFF' : '\x01';
    keys.push_back(key);
  }
  return keys;
}

inline Keys only_zeros(Random& random, size_t n) {
  Keys keys;
  for (size_t i = 0; i < n; ++i)
    keys.push_back(std::string(random() % std::max<size_t>(n, 1), '\0'));
  return keys;
}

// A long prefix that all share, then a few bits that differ at any place.
inline Keys long_prefixes(Random& random, size_t n) {
  std::string prefix = random_bytes(random, 300);
  Keys keys;
  for (size_t i = 0; i < n; ++i) {
    std::string key = prefix + random_bytes(random, random() % 3);
    key[random() % key.size()] ^= static_cast<char>(1 << random() % 8);
    keys.push_back(key);
  }
  return keys;
}

inline Keys long_among_short(Random& random, size_t n) {
  Keys keys = words(random, n);
  for (size_t i = 0; i < n; i += 100) keys[i] = std::string(65535, 'q');
  for (size_t i = 50; i < n; i += 500) keys[i] = std::string(60000 + random() % 5535, 'q');
  return keys;
}

inline Keys all_equal(Random& random, size_t n) { return Keys(n, random_bytes(random, 11)); }
inline Keys all_equal8(Random& random, size_t n) { return Keys(n, random_bytes(random, 8)); }

template <unsigned width>
Keys fixed_width(Random& random, size_t n) {
  Keys keys;
  for (size_t i = 0; i < n; ++i) {
    keys.push_back(random_bytes(random, width, random() % 2 ? 256 : 2));
  }
  return keys;
}

// Numbers whose gaps grow exponentially: interpolation and even bits are of no use.
inline Keys exponential(Random& random, size_t n) {
  Keys keys;
  for (size_t i = 0; i < n; ++i) keys.push_back(big_endian(random() >> random() % 64));
  return keys;
}

inline const std::vector<KeySet>& key_sets() {
  static const std::vector<KeySet> sets = {
      {"random_numbers", random_numbers},
      {"clusters", clusters},
      {"words", words},
      {"urls", urls},
      {"zeros_and_ones", zeros_and_ones},
      {"only_zeros", only_zeros},
      {"long_prefixes", long_prefixes},
      {"long_among_short", long_among_short},
      {"all_equal", all_equal},
      {"all_equal8", all_equal8},
      {"fixed1", fixed_width<1>},
      {"fixed3", fixed_width<3>},
      {"fixed4", fixed_width<4>},
      {"fixed16", fixed_width<16>},
      {"fixed33", fixed_width<33>},
      {"exponential", exponential},
  };
  return sets;
}

// Queries that hit, miss narrowly and miss by far, of other lengths too.
inline Keys queries_for(Random& random, const Keys& keys, size_t n, bool same_width) {
  Keys queries;
  for (size_t i = 0; i < n; ++i) {
    std::string key = keys.empty() ? random_bytes(random, 8) : keys[random() % keys.size()];
    switch (random() % (same_width ? 4 : 7)) {
      case 0:
      case 1:
        break;
      case 2:
        key = random_bytes(random, key.size());
        break;
      case 3:
        if (!key.empty()) key[random() % key.size()] ^= static_cast<char>(1 << random() % 8);
        break;
      case 4:
        key.resize(random() % (key.size() + 1));
        break;
      case 5:
        key += random_bytes(random, random() % 4, random() % 2 ? 256 : 1);
        break;
      default:
        key = random_bytes(random, random() % 20, random() % 2 ? 256 : 2);
        break;
    }
    queries.push_back(std::move(key));
  }
  return queries;
}

}  // namespace stride::test
