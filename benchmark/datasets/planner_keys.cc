#include "benchmark/datasets/planner_keys.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <string_view>
#include <unordered_set>

#include "benchmark/datasets/planner_numbers.h"
#include "benchmark/datasets/route_tables.h"
#include "benchmark/datasets/text_source.h"
#include "benchmark/harness/random_bits.h"

namespace stride::benchmark {
namespace {

using Random = std::mt19937_64;
constexpr const char* data = "benchmark/data/";

std::string big_endian(uint64_t x) {
  std::string s(8, '\0');
  store_big_endian(x, reinterpret_cast<std::byte*>(s.data()));
  return s;
}

// Calls make() until there are so many different keys, or it has nothing new to say.
std::vector<std::string> distinct(uint64_t keys, const std::function<std::string()>& make) {
  std::unordered_set<std::string> seen;
  std::vector<std::string> made;
  for (uint64_t tries = 0; made.size() < keys && tries < 4 * keys + 1000; ++tries) {
    std::string key = make();
    if (seen.insert(key).second) made.push_back(std::move(key));
  }
  return made;
}

std::vector<std::string> sequential(uint64_t keys, Random& random) {
  uint64_t next = random() >> 8;
  return distinct(keys, [&] { return big_endian(next++); });
}

// "2019-04-17 08:55:12.123"
std::vector<std::string> dates(uint64_t keys, Random& random) {
  return distinct(keys, [&] {
    auto r = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
    char text[96];  // for any seven numbers
    std::snprintf(text, sizeof text, "%04d-%02d-%02d %02d:%02d:%02d.%03d", 2015 + r(10), 1 + r(12),
                  1 + r(28), r(24), r(60), r(60), r(1000));
    return std::string(text);
  });
}

std::vector<std::string> digits(uint64_t keys, Random& random) {
  return distinct(keys, [&] {
    return std::to_string(static_cast<uint64_t>(std::exp2(20 + 20 * share_of_one(random()))));
  });
}

std::vector<std::string> hex(uint64_t keys, Random& random) {
  return distinct(keys, [&] {
    char text[24];
    std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(random()));
    return std::string(text) + std::string(text).substr(0, 8);
  });
}

// A random walk down a trie: at every byte a few of 256 letters, some likelier than others, which
// depend on the letters before; the width may be fixed.
std::vector<std::string> trie(uint64_t keys, Random& random) {
  const bool one_width = random() % 2;
  const uint64_t least = 3 + random() % 12, more = one_width ? 0 : 1 + random() % 30;
  const uint64_t base = 1 + random() % 200;
  double skew = 3 * share_of_one(random());
  std::array<uint64_t, 64> letters;
  for (uint64_t& n : letters)
    n = 1 + static_cast<uint64_t>(std::exp2(7.9 * share_of_one(random())));
  const uint64_t salt = random();
  return distinct(keys, [&] {
    std::string key;
    uint64_t length = least + (more ? random() % (more + 1) : 0), context = salt;
    if (one_width && length % 8 == 0) ++length;
    for (uint64_t i = 0; i < length; ++i) {
      // Deeper letters may be fewer, and in places there is only one.
      uint64_t n = (context >> 40) % 4 == 0 ? 1 : letters[i];
      auto pick = static_cast<uint64_t>(std::pow(share_of_one(random()), 1 + skew) *
                                        static_cast<double>(n));
      uint64_t letter = (base + pick * (1 + context % 3)) % 256;
      key += static_cast<char>(letter);
      if (i < 6) context = (context + letter + 1) * 0x9E3779B97F4A7C15ull;
    }
    return key;
  });
}

// Integers that are sums of parts at several scales: dense here, sparse there.
std::vector<std::string> mixture(uint64_t keys, Random& random) {
  struct Part {
    uint64_t base;
    double bits;
    uint64_t step;
  };
  std::vector<Part> parts(1 + random() % 24);
  for (Part& part : parts) {
    part.bits = 10 + 50 * share_of_one(random());
    part.step = 1 + random() % 8;
    part.base = random() >> random() % 16;
  }
  const double skew = 2 * share_of_one(random());
  const double bend = 1 + (random() % 2 ? 3 * share_of_one(random()) : 0);
  return distinct(keys, [&] {
    auto which = static_cast<size_t>(std::pow(share_of_one(random()), 1 + skew) *
                                     static_cast<double>(parts.size()));
    const Part& part = parts[which];
    double within = std::exp2(part.bits) * std::pow(share_of_one(random()), bend);
    return big_endian(part.base + static_cast<uint64_t>(within) * part.step);
  });
}

// Paths of files in a made-up tree of folders: long keys of many lengths that share much.
std::vector<std::string> paths(uint64_t keys, Random& random) {
  static constexpr std::array<const char*, 16> syllables = {"al", "ber", "co",  "den", "el", "fra",
                                                            "go", "ha",  "in",  "ka",  "lo", "mu",
                                                            "ne", "or",  "pri", "ta"};
  const uint64_t salt = random(), widest = 4 + random() % 60;
  auto name_of = [&](uint64_t id) {
    std::string name;
    for (uint64_t i = 0; i < 2 + id % 3; ++i) name += syllables[id >> (4 + 4 * i) & 15];
    return id >> 60 ? name : name + "-" + std::to_string(id >> 20 & 0xFF);
  };
  return distinct(keys, [&] {
    uint64_t context = salt, depth = 2 + random() % 7;
    std::string path = "/";
    for (uint64_t level = 0; level < depth; ++level) {
      double pick = static_cast<double>(1 + context % widest) * std::pow(share_of_one(random()), 2);
      context = (context + static_cast<uint64_t>(pick) + 1) * 0x9E3779B97F4A7C15ull;
      context ^= context >> 29;
      path += name_of(context) + "/";
    }
    return path + name_of(random()) + "." + std::to_string(random() % 1000);
  });
}

// What is hard on a tree: keys that share all but the last bits, or 60,000 bytes, or are but two.
std::vector<std::string> last_bits(uint64_t keys, Random& random) {
  uint64_t next = 0, prefix = random();
  std::string shared = big_endian(prefix) + std::string(100, 'x');
  return distinct(std::min<uint64_t>(keys, 200'000), [&] { return shared + big_endian(next++); });
}
std::vector<std::string> long_prefix(uint64_t keys, Random& random) {
  std::string shared(60'000, 'x');
  return distinct(std::min<uint64_t>(keys, 2000), [&] { return shared + big_endian(random()); });
}
std::vector<std::string> two(uint64_t, Random& random) {
  std::string shared = big_endian(random());
  return {shared + 'a', shared + 'b'};
}

std::string read_or_empty(const std::string& path, Status* status) {
  Result<std::string> text = read_text_file(path);
  if (text.ok()) return std::move(*text);
  *status = text.status();
  return {};
}

std::vector<std::string> kmers(uint64_t keys, Random& random, Status* status) {
  constexpr size_t length = 31;
  std::string bases;
  std::string text = read_or_empty(std::string(data) + "genome_ecoli_536.fa.zst", status);
  for (std::string_view line : split_lines(text)) {
    if (!line.empty() && line[0] != '>') bases += line;
  }
  if (bases.size() < length) return {};
  return distinct(keys, [&] { return bases.substr(random() % (bases.size() - length), length); });
}

// Addresses in the prefixes of a table of routes.
std::vector<std::string> addresses(const char* file, uint64_t keys, uint64_t seed, Status* status) {
  Result<std::vector<RouteTable>> tables = read_routes({std::string(data) + file});
  if (!tables.ok()) {
    *status = tables.status();
    return {};
  }
  OwnedColumn drawn = table_addresses((*tables)[0], 2 * keys, seed);
  uint64_t next = 0;
  return distinct(keys, [&] {
    Bytes address = drawn.view()[next++ % drawn.rows];
    return std::string(reinterpret_cast<const char*>(address.data()), address.size());
  });
}

using Maker = std::function<std::vector<std::string>(uint64_t keys, uint64_t seed, Status*)>;

const std::map<std::string, Maker>& makers() {
  auto plain = [](auto make) {
    return [make](uint64_t keys, uint64_t seed, Status*) {
      Random random(seed);
      return make(keys, random);
    };
  };
  static const std::map<std::string, Maker> all = {
      {"sequential", plain(sequential)},
      {"dates", plain(dates)},
      {"digits", plain(digits)},
      {"hex", plain(hex)},
      {"trie", plain(trie)},
      {"mixture", plain(mixture)},
      {"paths", plain(paths)},
      {"last_bits", plain(last_bits)},
      {"long_prefix", plain(long_prefix)},
      {"two", plain(two)},
      {"kmers",
       [](uint64_t keys, uint64_t seed, Status* status) {
         Random random(seed);
         return kmers(keys, random, status);
       }},
      {"ipv6",
       [](uint64_t keys, uint64_t seed, Status* status) {
         return addresses("prefixes_ipv6_asn.tsv.zst", keys, seed, status);
       }},
      {"ipv4",
       [](uint64_t keys, uint64_t seed, Status* status) {
         return addresses("prefixes_ipv4_asn.tsv.zst", keys, seed, status);
       }},
  };
  return all;
}

}  // namespace

std::string planner_key_names() {
  return "u32, u64, fixed:BYTES, sequential, clustered, zipf_gaps, timestamps, dates, digits,\n"
         "hex, words, urls, verses, kmers, ipv4, ipv6, trie:SEED, mixture:SEED, paths:SEED,\n"
         "last_bits, long_prefix, two, or a file of lines";
}

Result<TreeKeys> make_planner_keys(const std::string& name, uint64_t keys, uint64_t seed,
                                   Parallel* parallel) {
  static const std::map<std::string, std::string> files = {{"urls", "urls_web_specs.txt.zst"},
                                                           {"verses", "text_kjv_bible.txt.zst"}};
  if (auto file = files.find(name); file != files.end())
    return TreeKeys::make({name, 0, data + file->second}, keys, seed, parallel);
  if (std::optional<OwnedColumn> numbers = make_planner_numbers(name, keys, seed, parallel))
    return TreeKeys::of(std::move(*numbers), parallel);
  size_t colon = name.find(':');
  std::string family = name.substr(0, colon);
  auto maker = makers().find(family);
  if (maker == makers().end()) {
    Result<KeyKind> kind = parse_key_kind(name);
    if (!kind.ok())
      return Status::invalid("'" + name + "' is no data set")
          .with_remedy("use " + planner_key_names());
    return TreeKeys::make(*kind, keys, seed, parallel);
  }
  if (colon != std::string::npos) {
    std::string number = name.substr(colon + 1);
    if (number.empty() || number.size() > 9 ||
        number.find_first_not_of("0123456789") != std::string::npos) {
      return Status::invalid("the seed of '" + name + "' is no number");
    }
    seed += 1000 * std::stoul(number);
  }
  Status status;
  std::vector<std::string> made = maker->second(keys, seed, &status);
  STRIDE_TRY(status);
  std::shuffle(made.begin(), made.end(), Random(seed));
  bool one_width = std::all_of(made.begin(), made.end(),
                               [&](const auto& key) { return key.size() == made[0].size(); });
  uint32_t width = one_width ? static_cast<uint32_t>(made[0].size()) : 0;
  return TreeKeys::of(
      make_column(width, made.size(), parallel, [&](uint64_t i) { return as_bytes(made[i]); }),
      parallel);
}

}  // namespace stride::benchmark
