// Random edits of random files of a database.
#pragma once

#include <chrono>
#include <random>

#include "tests/support/catch.h"
#include "tests/support/forged_database.h"

namespace stride::test {

// Makes edits; they describe themselves in log(), so that a failure can be told.
class Forger {
 public:
  Forger(const Files& files, std::mt19937_64& random) : files_(files), random_(random) {}

  Files operator()() {
    Files files = files_;
    log_.clear();
    std::string name = any_name();
    std::string& bytes = files.at(name);
    for (uint64_t n = 1 + below(3); n > 0; --n) edit(name, &bytes);
    if (below(10) > 0) seal(name, &bytes);
    return files;
  }
  const std::string& log() const { return log_; }

 private:
  uint64_t below(uint64_t n) { return random_() % n; }
  std::string any_name() {
    auto it = files_.begin();
    std::advance(it, static_cast<std::ptrdiff_t>(below(files_.size())));
    return below(8) == 0 ? "MANIFEST-000001" : it->first;
  }
  uint64_t odd_number(const std::string& bytes, uint64_t before) {
    switch (below(8)) {
      case 0:
        return ~uint64_t{0} - below(4);
      case 1:
        return uint64_t{1} << below(64);
      case 2:
        return bytes.size() + below(200) - 100;
      case 3:
        return random_();
      case 4:
        return below(5);
      case 5:
        return (uint64_t{1} << below(64)) - 1;
      default:
        return before + below(9) - 4;
    }
  }
  // Small sections are as likely as large ones.
  uint64_t any_offset(const std::string& name, const std::string& bytes) {
    if (!name.ends_with(".seg") || below(8) == 0) return below(bytes.size());
    SegmentFooter footer = footer_of(bytes);
    uint64_t place = below(14);
    if (place == 0) return below(sizeof(SegmentHeader));
    if (place == 1) return bytes.size() - 1 - below(sizeof(SegmentFooter));
    if (place == 2) {
      uint64_t at = footer.tables_offset + below(footer.sections % 16 * sizeof(SectionEntry) + 1);
      return at < bytes.size() ? at : below(bytes.size());
    }
    uint64_t start = footer.tables_offset % bytes.size();
    for (int tries = 0; tries < 20 && footer.sections < 16; ++tries) {
      auto type = static_cast<SectionType>(1 + below(section_types));
      uint64_t at = start;
      for (uint32_t i = 0; i < footer.sections && at + sizeof(SectionEntry) <= bytes.size();
           ++i, at += sizeof(SectionEntry)) {
        auto entry = get<SectionEntry>(bytes, at);
        bool inside = entry.offset < bytes.size() && entry.bytes <= bytes.size() - entry.offset;
        if (entry.type == static_cast<uint32_t>(type) && inside && entry.bytes > 0)
          return entry.offset + below(entry.bytes);
      }
    }
    return below(bytes.size());
  }
  void edit(const std::string& name, std::string* bytes) {
    if (bytes->empty()) return;
    uint64_t at = any_offset(name, *bytes), kind = below(name.ends_with(".seg") ? 12 : 14);
    uint64_t width = uint64_t{1} << below(4);
    log_ += name + " at " + std::to_string(at) + " kind " + std::to_string(kind) + "; ";
    if (kind == 12) return bytes->resize(at);
    if (kind == 13) return void(bytes->append(bytes->substr(at / 8 * 8, 1 + below(500))));
    if (kind == 11) {  // bytes from elsewhere
      uint64_t from = any_offset(name, *bytes), n = 1 + below(64);
      n = std::min({n, bytes->size() - at, bytes->size() - from});
      return void(std::memmove(bytes->data() + at, bytes->data() + from, n));
    }
    if (kind < 3) {
      (*bytes)[at] = static_cast<char>((*bytes)[at] ^ (1 + below(255)));
      return;
    }
    at = at / width * width;
    if (at + width > bytes->size()) return;
    uint64_t value = 0;
    std::memcpy(&value, bytes->data() + at, width);
    value = odd_number(*bytes, value);
    std::memcpy(bytes->data() + at, &value, width);
  }

  const Files& files_;
  std::mt19937_64& random_;
  std::string log_;
};

// Forges for so long, and asks each database everything.
inline void forge_at_random(const ForgedDatabase& database, std::mt19937_64& random,
                            double seconds) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  Forger forger(database.files(), random);
  int rounds = 0;
  for (; Clock::now() < end && !has_failed(); ++rounds) {
    Files files = forger();
    INFO(forger.log());
    auto fs = file_system_of(files);
    const auto begin = Clock::now();
    Asked asked(*fs, database.rows(), /*change=*/random() % 2);
    asked.expect_sound();
    // It takes milliseconds of an untouched one.
    CHECK(Clock::now() - begin < std::chrono::seconds(60));
  }
  std::printf("%d databases\n", rounds);
}

}  // namespace stride::test
