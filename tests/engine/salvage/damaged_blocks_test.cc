// Segments of many blocks: what damage of some of them costs, and what verify() lists of it.
#include <algorithm>
#include <random>

#include "engine/salvage.h"
#include "storage/segment.h"
#include "tests/engine/salvage/small_database.h"
#include "tests/support/catch.h"
#include "tests/support/printed_seed.h"

namespace stride::test {
namespace {

using BlockRows = std::vector<std::pair<std::string, std::optional<std::string>>>;

// Which blocks of a segment the rows of a table need, by what an intact segment says.
class BlocksOfRows {
 public:
  BlocksOfRows(FileSystem& fs, const std::string& path, uint64_t id) {
    auto opened = Segment::open(fs, path, id);
    REQUIRE_OK(opened);
    segment_ = *opened;
    base_ = segment_->mapping()->bytes().data();
  }
  const Segment& segment() const { return *segment_; }
  uint64_t rows() const { return segment_->rows(); }
  std::string key(uint64_t row) const { return text(segment_->keys()[row]); }
  std::string value(uint64_t row) const { return text(segment_->values()[row]); }
  bool is_tombstone(uint64_t row) const { return segment_->kinds() && segment_->kinds()[row] == 1; }
  bool key_needs(uint64_t row, const std::set<uint64_t>& blocks) const {
    return column_needs(segment_->keys(), row, blocks);
  }
  bool value_needs(uint64_t row, const std::set<uint64_t>& blocks) const {
    const ValueRows values = segment_->values();
    if (values.shared()) {
      const auto* numbers = static_cast<const std::byte*>(values.numbers);
      if (needs(numbers + row * values.number_width, values.number_width, blocks)) return true;
    }
    return column_needs(values.column, values.position(row), blocks);
  }
  bool kind_needs(uint64_t row, const std::set<uint64_t>& blocks) const {
    return segment_->kinds() && needs(segment_->kinds() + row, 1, blocks);
  }
  uint64_t blocks() const {
    SegmentFooter footer;
    const Bytes file = segment_->mapping()->bytes();
    std::memcpy(&footer, file.data() + file.size() - sizeof footer, sizeof footer);
    return footer.blocks;
  }

 private:
  bool needs(const void* p, uint64_t bytes, const std::set<uint64_t>& blocks) const {
    if (bytes == 0) return false;
    const auto offset = static_cast<uint64_t>(static_cast<const std::byte*>(p) - base_);
    for (uint64_t b = offset >> 16; b <= (offset + bytes - 1) >> 16; ++b)
      if (blocks.contains(b)) return true;
    return false;
  }
  bool column_needs(const PackedColumn& column, uint64_t row,
                    const std::set<uint64_t>& blocks) const {
    if (!column.fixed) {
      const PackedOffsets& o = column.offsets;
      const auto* deltas = static_cast<const std::byte*>(o.deltas);
      if (needs(o.bases + (row >> 7), 8, blocks) || needs(o.bases + ((row + 1) >> 7), 8, blocks) ||
          needs(deltas + row * o.delta_width, 2 * o.delta_width, blocks))
        return true;
    }
    const Bytes bytes = column[row];
    return needs(bytes.data(), bytes.size(), blocks);
  }

  std::shared_ptr<Segment> segment_;
  const std::byte* base_;
};

class DamagedBlocksTest {
 protected:
  // Two runs of a table; the newer one has tombstones, too.
  void fill(const TableOptions& table, uint32_t key_bytes, uint32_t value_bytes, bool vary) {
    Options options = small_.options(/*read_only=*/false);
    options.memtable_bytes = 0;
    auto db = Database::open("db", options);
    REQUIRE_OK(db);
    REQUIRE_OK((*db)->create_table("t", table));
    std::mt19937_64 random(seed());
    auto value = [&](int i, int run) {
      std::string v =
          std::to_string(run) + "/" + std::to_string(table.share_equal_values ? i % 700 : i);
      v.resize(vary ? value_bytes + static_cast<uint32_t>(i % 13) : value_bytes, '.');
      return v;
    };
    auto key = [&](int i) {
      std::string k = std::to_string(1'000'000 + i);
      k.resize(key_bytes + (vary ? static_cast<uint32_t>(i % 5) : 0), 'k');
      return k;
    };
    BlockRows older, newer;
    for (int i = 0; i < 12'000; ++i) older.emplace_back(key(i), value(i, 1));
    for (int i = 0; i < 12'000; i += 2)
      newer.emplace_back(key(i), i % 10 ? std::optional(value(i, 2)) : std::nullopt);
    small_.commit(db->get(), "t", older);
    small_.commit(db->get(), "t", newer);
    REQUIRE_OK((*db)->close());
  }
  std::string file(size_t commit) const { return small_.commits().at(commit).file; }

  void damage(const std::string& name, const std::set<uint64_t>& blocks, std::mt19937_64* random) {
    std::string bytes = small_.read(name);
    for (uint64_t block : blocks) {
      uint64_t at = (block << 16) + 8192 + (*random)() % 32768;
      while (!is_in_section(bytes, at)) at -= 8;
      bytes[at] = static_cast<char>(bytes[at] ^ (1 + (*random)() % 255));
    }
    small_.write(name, bytes);
  }
  static bool is_in_section(const std::string& file, uint64_t at) {
    SegmentFooter footer;
    std::memcpy(&footer, file.data() + file.size() - sizeof footer, sizeof footer);
    if (at >= footer.tables_offset) return false;
    for (uint32_t i = 0; i < footer.sections; ++i) {
      SectionEntry entry;
      std::memcpy(&entry, file.data() + footer.tables_offset + i * sizeof entry, sizeof entry);
      if (at >= entry.offset && at - entry.offset < entry.bytes) return true;
    }
    return false;
  }

  // What there is of the table without these blocks of one of its runs.
  Model expected(const std::vector<BlocksOfRows>& runs, size_t damaged,
                 const std::set<uint64_t>& blocks) const {
    Model model;
    for (size_t run = 0; run < runs.size(); ++run) {
      const std::set<uint64_t> none;
      const auto& lost = run == damaged ? blocks : none;
      for (uint64_t row = 0; row < runs[run].rows(); ++row) {
        if (runs[run].key_needs(row, lost)) continue;
        const bool is_lost = runs[run].kind_needs(row, lost) ||
                             (!runs[run].is_tombstone(row) && runs[run].value_needs(row, lost));
        if (is_lost || runs[run].is_tombstone(row))
          model.erase(runs[run].key(row));
        else
          model[runs[run].key(row)] = runs[run].value(row);
      }
    }
    return model;
  }

  void try_blocks(size_t damaged, const std::set<uint64_t>& blocks, std::mt19937_64* random) {
    std::vector<BlocksOfRows> runs;
    for (size_t run = 0; run < 2; ++run)
      runs.emplace_back(small_.fs(), "db/" + file(run), *segment_number(file(run)));
    const Model model = expected(runs, damaged, blocks);
    const std::string name = file(damaged), good = small_.read(name);
    damage(name, blocks, random);
    expect_list(name, blocks, runs[damaged]);
    SalvageReport report;
    REQUIRE_OK(salvage("db", "new", {}, &report, &small_.fs()));
    expect_report(report, runs[damaged], blocks);
    {
      auto db = Database::open("new", small_.options_for_new());
      REQUIRE_OK(db);
      REQUIRE_OK((*db)->verify());
      auto got = read_table(db->get(), "t");
      REQUIRE_OK(got);
      CHECK_MESSAGE(*got == model, got->size() << " rows, not " << model.size());
    }
    small_.drop_directory("new");
    small_.write(name, good);
  }

  // verify() lists these blocks and no other, and all rows that need one are in its bounds.
  void expect_list(const std::string& name, const std::set<uint64_t>& blocks,
                   const BlocksOfRows& rows) {
    auto db = Database::open("db", small_.options(/*read_only=*/true));
    REQUIRE_OK(db);
    VerifyReport report;
    CHECK((*db)->verify(&report).code() == StatusCode::corruption);
    VerifyReport files;
    CHECK(verify_files("db", &files, &small_.fs()).code() == StatusCode::corruption);
    REQUIRE(files.damage.size() == report.damage.size());
    std::set<uint64_t> listed;
    for (const Damage& d : report.damage) {
      CHECK(d.file == "db/" + name);
      CHECK(d.table == "t");
      CHECK(d.offset % 65536 == 0);
      std::set<uint64_t> its;
      for (uint64_t b = d.offset >> 16; b <= (d.offset + d.bytes - 1) >> 16; ++b) its.insert(b);
      listed.insert(its.begin(), its.end());
      for (uint64_t row = 0; row < rows.rows(); ++row) {
        if (!rows.key_needs(row, its) && !rows.value_needs(row, its) && !rows.kind_needs(row, its))
          continue;
        const bool is_bounded = (!d.first_key || *d.first_key <= rows.key(row)) &&
                                (!d.last_key || *d.last_key >= rows.key(row));
        CHECK_MESSAGE(is_bounded, d.to_string() << ": not row " << row);
      }
    }
    CHECK(listed == blocks);
  }

  void expect_report(const SalvageReport& report, const BlocksOfRows& rows,
                     const std::set<uint64_t>& blocks) {
    uint64_t lost = 0, told = 0;
    for (uint64_t row = 0; row < rows.rows(); ++row)
      lost += rows.key_needs(row, blocks) || rows.kind_needs(row, blocks) ||
              (!rows.is_tombstone(row) && rows.value_needs(row, blocks));
    for (const LostRows& l : report.lost) told += l.rows;
    CHECK(told == lost);
    CHECK(report.is_complete() == (lost == 0));
    CHECK_FALSE(report.damage.empty());
  }

  void try_random(int times) {
    std::mt19937_64 random(seed());
    for (int i = 0; i < times; ++i) {
      const size_t run = random() % 2;
      const uint64_t count =
          BlocksOfRows(small_.fs(), "db/" + file(run), *segment_number(file(run))).blocks();
      std::set<uint64_t> blocks;
      for (uint64_t n = 1 + random() % 3; n > 0; --n) blocks.insert(random() % (count - 1));
      INFO("run " << run << ", " << blocks.size() << " blocks from " << *blocks.begin());
      try_blocks(run, blocks, &random);
    }
  }

  SmallDatabase small_;
};

TEST_CASE_METHOD(DamagedBlocksTest, "DamagedBlocksTest.OfOneWidth", "[DamagedBlocksTest]") {
  fill({.key_width = 16}, 16, 20, /*vary=*/false);
  try_random(12);
}

TEST_CASE_METHOD(DamagedBlocksTest, "DamagedBlocksTest.OfManyWidths", "[DamagedBlocksTest]") {
  fill({}, 12, 25, /*vary=*/true);
  try_random(12);
}

TEST_CASE_METHOD(DamagedBlocksTest, "DamagedBlocksTest.SharedValues", "[DamagedBlocksTest]") {
  fill({.share_equal_values = true}, 20, 300, /*vary=*/true);
  try_random(12);
}

// The header's page, as a disk loses it.
TEST_CASE_METHOD(DamagedBlocksTest, "DamagedBlocksTest.ALostHeaderCostsItsBlock",
                 "[DamagedBlocksTest]") {
  for (const bool vary : {false, true}) {
    small_.drop_directory("db");
    small_.forget();
    fill({.key_width = vary ? 0u : 16u}, 16, 20, vary);
    std::vector<BlocksOfRows> runs;
    for (size_t run = 0; run < 2; ++run)
      runs.emplace_back(small_.fs(), "db/" + file(run), *segment_number(file(run)));
    const Model model = expected(runs, 0, {0});
    std::string bytes = small_.read(file(0));
    std::fill(bytes.begin(), bytes.begin() + 4096 + 64, '\0');
    small_.write(file(0), bytes);
    SalvageReport report;
    REQUIRE_OK(salvage("db", "new", {}, &report, &small_.fs()));
    {
      auto db = Database::open("new", small_.options_for_new());
      REQUIRE_OK(db);
      auto got = read_table(db->get(), "t");
      REQUIRE_OK(got);
      CHECK_MESSAGE(*got == model, got->size() << " rows, not " << model.size());
    }
    small_.drop_directory("new");
  }
}

// Reads beside the damage go on; merging fails, and leaves everything as it is.
TEST_CASE_METHOD(DamagedBlocksTest, "DamagedBlocksTest.TheDatabaseGoesOn", "[DamagedBlocksTest]") {
  fill({.key_width = 16}, 16, 200, /*vary=*/false);
  std::mt19937_64 random(seed());
  BlocksOfRows rows(small_.fs(), "db/" + file(0), *segment_number(file(0)));
  const std::set<uint64_t> blocks = {rows.blocks() / 2};
  damage(file(0), blocks, &random);
  Options options = small_.options(/*read_only=*/false);
  options.background_work = true;
  auto db = Database::open("db", options);
  REQUIRE_OK(db);
  auto table = (*db)->open_table("t");
  REQUIRE_OK(table);
  uint64_t refused = 0;
  for (uint64_t row = 1; row < rows.rows(); row += 6) {  // odd rows are in this run alone
    auto got = (*db)->snapshot().get(*table, std::string_view(rows.key(row)));
    const bool is_damaged = rows.key_needs(row, blocks) || rows.value_needs(row, blocks);
    if (got.ok()) {
      REQUIRE(got->has_value());
      CHECK(text(**got) == rows.value(row));
    } else {
      ++refused;
      CHECK(got.status().code() == StatusCode::corruption);
      CHECK(got.status().file() == "db/" + file(0));
      CHECK(got.status().offset() == std::optional<uint64_t>(*blocks.begin() << 16));
      CHECK(is_damaged);
    }
  }
  CHECK(refused > 0);
  const auto files = small_.files();
  for (int round = 0; round < 3; ++round) {
    WriteTransaction t = (*db)->begin();
    REQUIRE_OK(t.put(*table, "a new key of 16b", std::to_string(round)));
    REQUIRE_OK(t.commit());
    CHECK(text(**(*db)->snapshot().get(*table, "a new key of 16b")) == std::to_string(round));
    CHECK((*db)->compact().code() == StatusCode::corruption);
  }
  for (const std::string& name : files)
    if (segment_number(name)) CHECK(*small_.fs().exists("db/" + name));
  REQUIRE_OK((*db)->close());
}

}  // namespace
}  // namespace stride::test
