// Damages a small database in every way of one kind, and looks at what reads, verify() and
// salvage() make of it. The test does some of it, the soak all.
#pragma once

#include <algorithm>
#include <functional>
#include <random>

#include "engine/prefixes.h"
#include "storage/log_format.h"
#include "storage/segment_format.h"
#include "tests/engine/salvage/small_database.h"
#include "tests/support/printed_seed.h"

namespace stride::test {

class EveryByte {
 public:
  EveryByte() {
    Options options = small_.options(/*read_only=*/false);
    options.memtable_bytes = 0;
    make_segments(options);
    options.memtable_bytes = 1 << 20;
    make_log(options);
    for (const std::string& name : small_.files()) pristine_[name] = small_.read(name);
    find_sections();
  }

  const std::map<std::string, std::string>& files() const { return pristine_; }

  void flip(const std::string& name, uint64_t at, uint8_t change) {
    std::string bytes = pristine_.at(name);
    bytes[at] = static_cast<char>(bytes[at] ^ change);
    INFO(name << ": byte " << at << " of " << bytes.size() << ", changed by " << int{change});
    try_with(name, bytes, !segment_number(name) || is_in_section(name, at));
  }
  void cut(const std::string& name, uint64_t length) {
    INFO(name << ": cut to " << length << " of " << pristine_.at(name).size());
    is_cut_ = true;
    try_with(name, pristine_.at(name).substr(0, length), true);
    is_cut_ = false;
  }
  void remove(const std::string& name) {
    INFO(name << ": removed");
    small_.remove(name);
    look_at(name, true);
    small_.write(name, pristine_.at(name));
  }
  uint64_t tried() const { return tried_; }

 private:
  using Rows = std::vector<std::pair<std::string, std::optional<std::string>>>;

  void make_segments(const Options& options) {
    auto db = Database::open("db", options);
    REQUIRE_OK(db);
    REQUIRE_OK((*db)->create_table("words"));
    REQUIRE_OK((*db)->create_table("ticks", {.key_width = 8}));
    REQUIRE_OK((*db)->create_table("routes", {.address_bits = 32}));
    Rows old_words, new_words, ticks, routes;
    for (int i = 0; i < 60; ++i)
      old_words.emplace_back(numbered("word", i), "old" + std::to_string(i));
    for (int i = 0; i < 60; i += 3)
      new_words.emplace_back(numbered("word", i),
                             i % 2 ? std::optional("newer" + std::to_string(i)) : std::nullopt);
    for (int i = 0; i < 40; ++i) ticks.emplace_back(numbered("tick", i), "1234");
    for (int i = 0; i < 10; ++i)
      routes.emplace_back(*parse_prefix("10." + std::to_string(i) + ".0.0/16", 32), "hop");
    small_.commit(db->get(), "words", old_words);
    small_.commit(db->get(), "ticks", ticks);
    small_.commit(db->get(), "words", new_words);
    small_.commit(db->get(), "routes", routes);
    REQUIRE_OK((*db)->close());
  }

  void make_log(const Options& options) {
    auto db = Database::open("db", options);
    REQUIRE_OK(db);
    small_.commit(db->get(), "words", {{"word1001", "logged"}, {"word1002", std::nullopt}});
    small_.commit(db->get(), "ticks", {{"tick1001", "5678"}, {"tick2000", "9"}});
    small_.commit(db->get(), "words", {{"word1001", "logged again"}});
    REQUIRE_OK((*db)->close());
  }

  // Where sections are by the files' own tables: bytes elsewhere cost nothing.
  void find_sections() {
    for (const auto& [name, bytes] : pristine_) {
      if (!segment_number(name)) continue;
      SegmentFooter footer;
      std::memcpy(&footer, bytes.data() + bytes.size() - sizeof footer, sizeof footer);
      for (uint32_t i = 0; i < footer.sections; ++i) {
        SectionEntry entry;
        std::memcpy(&entry, bytes.data() + footer.tables_offset + i * sizeof entry, sizeof entry);
        sections_[name].push_back({entry.offset, entry.bytes});
      }
    }
  }
  bool is_in_section(const std::string& name, uint64_t at) const {
    for (const FileRange& s : sections_.at(name))
      if (at >= s.offset && at - s.offset < s.bytes) return true;
    return false;
  }

  void try_with(const std::string& name, const std::string& bytes, bool loses) {
    small_.write(name, bytes);
    look_at(name, loses);
    small_.write(name, pristine_.at(name));
  }

  void look_at(const std::string& name, bool loses) {
    ++tried_;
    const bool reads_well = look_at_reads(name);
    SalvageReport report;
    Status s = salvage("db", "new", {}, &report, &small_.fs());
    REQUIRE_OK(s);
    {
      auto db = Database::open("new", small_.options_for_new());
      REQUIRE_OK(db);
      REQUIRE_OK((*db)->verify());
      if (segment_number(name))
        expect_segment_lost(db->get(), name, loses, report);
      else if (log_number(name))
        expect_log_damage(db->get(), report);
      else if (name.starts_with("MANIFEST"))
        expect_all_rows_somewhere(db->get(), report);
      else
        expect_tables(db->get(), small_.now());
      if (report.is_complete() && reads_well && !name.starts_with("MANIFEST") &&
          !(is_cut_ && log_number(name)))
        expect_tables(db->get(), small_.now());
    }
    small_.drop_directory("new");
  }

  // True: verify() says ok.
  bool look_at_reads(const std::string& name) {
    VerifyReport all;
    Status files = verify_files("db", &all, &small_.fs());
    auto db = Database::open("db", small_.options(/*read_only=*/true));
    if (!db.ok()) {
      CHECK_MESSAGE(!db.status().file().empty(), db.status().to_string());
      CHECK_MESSAGE(!files.ok(), db.status().to_string());
      return false;
    }
    VerifyReport report;
    Status verified = (*db)->verify(&report);
    CHECK(verified.ok() == report.damage.empty());
    CHECK((*db)->verify().ok() == verified.ok());
    Tables read;
    for (const auto& [table, rows] : small_.now()) {
      auto got = read_table(db->get(), table);
      if (got.ok()) {
        read[table] = *got;
        continue;
      }
      if (got.status().code() == StatusCode::not_found) continue;
      CHECK_MESSAGE(got.status().code() == StatusCode::corruption, got.status().to_string());
      CHECK_MESSAGE(!got.status().file().empty(), got.status().to_string());
      CHECK_MESSAGE(!verified.ok(), "reads fail where verify() does not");
    }
    expect_a_state(read, segment_number(name).has_value());
    return verified.ok();
  }

  // Nothing tells damage of the last record of a manifest or a log from a commit that was cut off,
  // so that what was before it is right, too.
  void expect_a_state(const Tables& read, bool newest) {
    const std::vector<Tables>& states = small_.states();
    auto fits = [&](const Tables& state) {
      return std::all_of(read.begin(), read.end(), [&](const auto& table) {
        auto there = state.find(table.first);
        return there == state.end() ? table.second.empty() : there->second == table.second;
      });
    };
    const bool is_right =
        newest ? fits(states.back()) : std::any_of(states.begin(), states.end(), fits);
    CHECK(is_right);
  }

  void expect_tables(Database* db, const Tables& expected) {
    for (const auto& [name, rows] : expected) {
      auto got = read_table(db, name);
      REQUIRE_OK(got);
      CHECK_MESSAGE(*got == rows, name << ": " << got->size() << " rows, not " << rows.size());
    }
  }

  void expect_segment_lost(Database* db, const std::string& file, bool loses,
                           const SalvageReport& report) {
    expect_tables(db, small_.without([&](auto& c) { return loses && c.file == file; }));
    CHECK(report.is_complete() == !loses);
    if (loses) CHECK_FALSE(report.damage.empty());
    for (const LostRows& lost : report.lost) CHECK_MESSAGE(lost.file == "db/" + file, lost.file);
  }

  void expect_log_damage(Database* db, const SalvageReport& report) {
    Tables got;
    for (const auto& [name, rows] : small_.now()) {
      auto read = read_table(db, name);
      REQUIRE_OK(read);
      got[name] = *read;
    }
    const std::vector<Tables>& states = small_.states();
    bool is_known = std::find(states.begin(), states.end(), got) != states.end();
    for (const auto& commit : small_.commits())
      is_known |= got == small_.without([&](auto& c) { return &c == &commit; });
    CHECK(is_known);
    // A log that was cut between two frames is one that never had more.
    const bool is_told = is_cut_ || !report.is_complete() || got == small_.now();
    CHECK(is_told);
  }

  void expect_all_rows_somewhere(Database* db, const SalvageReport& report) {
    std::set<std::pair<std::string, std::string>> rows;
    for (const SalvagedTable& table : report.tables) {
      auto got = read_table(db, table.name);
      REQUIRE_OK(got);
      for (const auto& [key, value] : *got) {
        rows.insert({key, value});
        bool was_there = false;
        for (const auto& [name, ignored] : small_.now())
          was_there |= small_.was_ever(name, key, value);
        CHECK_MESSAGE(was_there, table.name << " has a row that was never there");
      }
    }
    for (const auto& [name, model] : small_.now())
      for (const auto& row : model)
        CHECK_MESSAGE(rows.contains(row), name << " has lost a row, of key " << row.first);
    if (report.is_complete()) expect_tables(db, small_.now());
  }

  SmallDatabase small_;
  std::map<std::string, std::string> pristine_;
  std::map<std::string, std::vector<FileRange>> sections_;
  uint64_t tried_ = 0;
  bool is_cut_ = false;
};

}  // namespace stride::test
