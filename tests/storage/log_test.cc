// The write-ahead log: what is written is read again, and of damaged bytes nothing is.

#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "storage/log_reader.h"
#include "storage/log_rows.h"
#include "storage/log_writer.h"
#include "storage/memory_file_system.h"
#include "tests/support/catch.h"
#include "tests/support/printed_seed.h"

namespace stride::log_tests {
namespace {

using Reach = LogWriter::Reach;

std::string text_of(std::mt19937_64& random, size_t max_bytes) {
  std::string text(random() % (max_bytes + 1), 'x');
  for (char& c : text) c = static_cast<char>(random());
  return text;
}

struct Row {
  uint32_t table;
  EntryKind kind;
  std::string key, value;
  bool operator==(const Row&) const = default;
};
using Rows = std::vector<Row>;

void encode(const Rows& rows, std::vector<std::byte>* payload) {
  LogRowsEncoder out(payload);
  for (size_t i = 0; i < rows.size(); ++i) {
    if (i == 0 || rows[i].table != rows[i - 1].table) out.begin(rows[i].table);
    out.add(rows[i].kind, as_bytes(rows[i].key), as_bytes(rows[i].value));
    if (i + 1 == rows.size() || rows[i + 1].table != rows[i].table) out.end();
  }
}

Rows decode(Bytes payload) {
  Rows result;
  LogRowsDecoder in(payload);
  LogRows rows;
  while (in.next(&rows))
    for (uint32_t i = 0; i < rows.count; ++i)
      result.push_back({rows.table, rows.kind(i), std::string(as_text(rows.key(i))),
                        std::string(as_text(rows.value(i)))});
  CHECK_FALSE(in.damaged());
  return result;
}

Rows random_rows(std::mt19937_64& random) {
  Rows rows;
  const bool fixed = random() % 2, tombstones = random() % 2;
  const size_t tables = 1 + random() % 3;
  for (size_t t = 1; t <= tables; ++t) {
    for (size_t n = 1 + random() % 20; n > 0; --n) {
      Row row{static_cast<uint32_t>(t), EntryKind::put, text_of(random, fixed ? 0 : 30),
              text_of(random, fixed ? 0 : 300)};
      if (fixed) row.key = "12345678", row.value = "0123456789";
      if (tombstones && random() % 3 == 0) row.kind = EntryKind::tombstone, row.value.clear();
      rows.push_back(row);
    }
  }
  return rows;
}

constexpr uint64_t first_position = 4096;

std::unique_ptr<LogWriter> make_log(FileSystem& fs) {
  REQUIRE_OK(fs.create_directory("db").status());
  auto log = LogWriter::create(fs, "db/000007.wal", 7, first_position);
  REQUIRE_OK(log.status());
  return std::move(*log);
}

Status append_frame(LogWriter& log, const Rows& rows, Reach reach) {
  encode(rows, &log.begin_frame());
  return log.end_frame(reach, 1);
}

struct Read {
  std::vector<Rows> frames;
  uint64_t position = 0;
  bool damaged = false;
};

// The log's id as its header has it.
uint64_t log_id_of(FileSystem& fs, const std::string& path) {
  LogHeader header{};
  auto file = fs.open(path, OpenMode::read);
  if (!file.ok() || *(*file)->size() < sizeof header) return 0;
  REQUIRE_OK((*file)->read_at(0, {reinterpret_cast<std::byte*>(&header), sizeof header}));
  return header.id[0];
}

Result<Read> read_frames(FileSystem& fs) {
  auto log = LogReader::open(fs, "db/000007.wal", {7, log_id_of(fs, "db/000007.wal")});
  if (!log.ok()) return log.status();
  Read result;
  while (auto frame = log->next()) result.frames.push_back(decode(frame->payload));
  result.position = log->position();
  result.damaged = log->knows_synced_beyond(log->position());
  return result;
}

TEST_CASE("LogTest.ReadsWhatWasWritten", "[LogTest]") {
  std::mt19937_64 random(stride::test::seed());
  MemoryFileSystem fs;
  std::vector<Rows> written;
  auto log = make_log(fs);
  CHECK(log->position() == first_position);
  for (int i = 0; i < 300; ++i) {
    Rows rows = random_rows(random);
    REQUIRE_OK(append_frame(*log, rows, static_cast<Reach>(random() % 3)));
    written.push_back(std::move(rows));
  }
  REQUIRE_OK(log->reach(Reach::system));
  auto found = read_frames(fs);
  REQUIRE_OK(found.status());
  CHECK(found->frames == written);
  CHECK(found->position == log->position());
  CHECK_FALSE(found->damaged);
}

TEST_CASE("LogTest.KeepsUnsyncedFramesInMemoryAndSyncedOnesForGood", "[LogTest]") {
  MemoryFileSystem fs;
  auto log = make_log(fs);
  REQUIRE_OK(fs.sync_directory("db"));
  REQUIRE_OK(append_frame(*log, {{1, EntryKind::put, "a", "1"}}, Reach::disk));
  REQUIRE_OK(append_frame(*log, {{1, EntryKind::put, "b", "2"}}, Reach::system));
  REQUIRE_OK(append_frame(*log, {{1, EntryKind::put, "c", "3"}}, Reach::memory));
  CHECK(read_frames(fs)->frames.size() == 2);
  CHECK(log->has_unsynced());
  CHECK(read_frames(*fs.crash(1, CrashPolicy::lose_unsynced))->frames.size() == 1);
  REQUIRE_OK(log->reach(Reach::disk));
  CHECK_FALSE(log->has_unsynced());
  CHECK(read_frames(*fs.crash(1, CrashPolicy::lose_unsynced))->frames.size() == 3);
}

TEST_CASE("LogTest.AnyPowerLossLeavesAPrefixWithAllThatWasSynced", "[LogTest]") {
  std::mt19937_64 random(stride::test::seed());
  for (int run = 0; run < 40; ++run) {
    MemoryFileSystem fs;
    auto log = make_log(fs);
    REQUIRE_OK(log->reach(Reach::disk));
    REQUIRE_OK(fs.sync_directory("db"));
    std::vector<Rows> written;
    size_t synced = 0;
    for (int i = 0; i < 20; ++i) {
      written.push_back(random_rows(random));
      const auto reach = static_cast<Reach>(random() % 3);
      REQUIRE_OK(append_frame(*log, written.back(), reach));
      if (reach == Reach::disk) synced = written.size();
      for (CrashPolicy policy : {CrashPolicy::lose_unsynced, CrashPolicy::keep_unsynced,
                                 CrashPolicy::random, CrashPolicy::random}) {
        auto found = read_frames(*fs.crash(random(), policy));
        REQUIRE_OK(found.status());
        REQUIRE_FALSE(found->damaged);
        REQUIRE(found->frames.size() >= synced);
        REQUIRE(found->frames.size() <= written.size());
        for (size_t k = 0; k < found->frames.size(); ++k) REQUIRE(found->frames[k] == written[k]);
      }
    }
  }
}

TEST_CASE("LogTest.AFailedFrameIsNotThereAndTheNextOneIs", "[LogTest]") {
  std::mt19937_64 random(stride::test::seed());
  for (uint64_t n = 1; n < 40; ++n) {
    MemoryFileSystem fs;
    auto log = make_log(fs);
    std::vector<Rows> written;
    fs.fail_call(n, StatusCode::no_space);
    for (int i = 0; i < 20; ++i) {
      Rows rows = random_rows(random);
      // Zeros that don't fit are done without, and a failed sync ends it.
      Status s = append_frame(*log, rows, random() % 2 ? Reach::system : Reach::memory);
      if (s.ok()) written.push_back(std::move(rows));
      if (!s.ok()) CHECK(s.code() == StatusCode::no_space);
      REQUIRE_FALSE(log->poisoned());
    }
    if (!log->reach(Reach::disk).ok()) continue;  // it was the sync that failed
    auto found = read_frames(fs);
    REQUIRE_OK(found.status());
    CHECK(found->frames == written);
  }
}

// The disk is full where the zeros ahead end, within the head of a frame or near it.
TEST_CASE("LogTest.AFrameThatDoesNotFitBehindTheZerosDoesNoHarm", "[LogTest]") {
  for (uint64_t before_end = 0; before_end <= 64; before_end += 8) {
    INFO(before_end);
    MemoryFileSystem fs;
    auto log = make_log(fs);
    std::vector<Rows> written;
    auto append = [&](uint64_t frame_bytes, Reach reach) {
      const uint64_t head = sizeof(LogFrameHeader) + sizeof(LogRowsHeader) + 4;
      Rows rows{{1, EntryKind::put, "key4", std::string(frame_bytes - head, 'v')}};
      const Status s = append_frame(*log, rows, reach);
      if (s.ok()) written.push_back(std::move(rows));
      return s;
    };
    REQUIRE_OK(append(80, Reach::disk));
    const uint64_t filled = *(*fs.open("db/000007.wal", OpenMode::read))->size();
    const uint64_t wanted = filled - before_end;  // there the frame begins that fails
    while (wanted - log->bytes() > 1000) REQUIRE_OK(append(400, Reach::system));
    REQUIRE_OK(append(wanted - log->bytes(), Reach::system));
    REQUIRE(log->bytes() == wanted);
    for (uint64_t room : {0, 8, 40, 100}) {
      fs.set_capacity(fs.used_bytes() + room);
      CHECK(append(400, Reach::system).code() == StatusCode::no_space);
      REQUIRE_FALSE(log->poisoned());
      CHECK(read_frames(fs)->frames == written);
    }
    fs.set_capacity(~uint64_t{0});
    REQUIRE_OK(append(160, Reach::disk));
    CHECK(read_frames(fs)->frames == written);
  }
}

TEST_CASE("LogTest.AFailedSyncPoisons", "[LogTest]") {
  MemoryFileSystem fs;
  auto log = make_log(fs);
  fs.fail_sync(1, StatusCode::io_error);
  Status s = append_frame(*log, {{1, EntryKind::put, "a", "1"}}, Reach::disk);
  CHECK(s.code() == StatusCode::io_error);
  CHECK(log->poisoned());
  CHECK(append_frame(*log, {{1, EntryKind::put, "a", "1"}}, Reach::disk).code() ==
        StatusCode::poisoned);
}

std::string log_bytes_of(FileSystem& fs) {
  auto file = fs.open("db/000007.wal", OpenMode::read);
  REQUIRE_OK(file.status());
  std::string bytes(*(*file)->size(), '\0');
  REQUIRE_OK((*file)->read_at(0, {reinterpret_cast<std::byte*>(bytes.data()), bytes.size()}));
  return bytes;
}

Result<Read> read_frames_of(const std::string& bytes) {
  MemoryFileSystem fs;
  REQUIRE_OK(fs.create_directory("db").status());
  auto file = fs.open("db/000007.wal", OpenMode::create);
  REQUIRE_OK((*file)->write_at(0, as_bytes(bytes)));
  return read_frames(fs);
}

// A log of synced frames whose last one is at `last`.
std::string synced_log(std::vector<Rows>* written, uint64_t* last) {
  std::mt19937_64 random(7);
  MemoryFileSystem fs;
  auto log = make_log(fs);
  for (int i = 0; i < 6; ++i) {
    written->push_back(random_rows(random));
    *last = log->bytes();
    REQUIRE_OK(append_frame(*log, written->back(), Reach::disk));
  }
  return log_bytes_of(fs).substr(0, log->bytes());
}

TEST_CASE("LogTest.CutAtAnyByteItIsShorter", "[LogTest]") {
  std::vector<Rows> written;
  uint64_t last = 0;
  const std::string whole = synced_log(&written, &last);
  for (size_t bytes = 0; bytes < whole.size(); ++bytes) {
    auto found = read_frames_of(whole.substr(0, bytes));
    if (bytes < sizeof(LogHeader)) {
      CHECK(found.status().code() == StatusCode::corruption);
      continue;
    }
    REQUIRE_OK(found.status());
    REQUIRE(found->frames.size() < written.size());
    for (size_t k = 0; k < found->frames.size(); ++k) REQUIRE(found->frames[k] == written[k]);
  }
}

TEST_CASE("LogTest.AFlippedByteEndsItThereAndIsDamageWhereItWasSynced", "[LogTest]") {
  std::vector<Rows> written;
  uint64_t last = 0;
  const std::string whole = synced_log(&written, &last);
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string flipped = whole;
    flipped[at] = static_cast<char>(flipped[at] ^ (1 << at % 8));
    auto found = read_frames_of(flipped);
    if (at < sizeof(LogHeader)) {
      CHECK_FALSE(found.ok());
      continue;
    }
    REQUIRE_OK(found.status());
    for (size_t k = 0; k < found->frames.size(); ++k) REQUIRE(found->frames[k] == written[k]);
    const bool padding = found->frames.size() == written.size();
    // Nothing behind the last frame can tell that it was synced.
    if (!padding) CHECK(found->damaged == (at < last));
  }
}

TEST_CASE("LogTest.FramesOfAnotherLogInTheSameFileAreNotRead", "[LogTest]") {
  std::vector<Rows> written;
  uint64_t last = 0;
  const std::string before = synced_log(&written, &last);
  MemoryFileSystem fs;
  auto log = make_log(fs);
  REQUIRE_OK(append_frame(*log, {{1, EntryKind::put, "a", "1"}}, Reach::system));
  std::string bytes = log_bytes_of(fs);
  bytes += before.substr(bytes.size());
  auto found = read_frames_of(bytes);
  REQUIRE_OK(found.status());
  CHECK(found->frames.size() == 1);
  CHECK_FALSE(found->damaged);
}

// Its place and its bytes are those of a next frame; only the log is another one.
TEST_CASE("LogTest.AFrameOfAnotherLogRightBehindTheEndIsNotRead", "[LogTest]") {
  auto log_of = [](const std::vector<std::string>& keys) {
    MemoryFileSystem fs;
    auto log = make_log(fs);
    for (const std::string& key : keys)
      REQUIRE_OK(append_frame(*log, {{1, EntryKind::put, key, "1"}}, Reach::system));
    return log_bytes_of(fs);
  };
  const std::string before = log_of({"a", "b", "c"}), log = log_of({"d"});
  auto stale = read_frames_of(before);
  REQUIRE_OK(stale.status());
  CHECK(stale->frames.size() == 3);
  auto found = read_frames_of(log + before.substr(log.size()));
  REQUIRE_OK(found.status());
  CHECK(found->frames.size() == 1);
  CHECK_FALSE(found->damaged);
}

TEST_CASE("LogTest.RefusesOtherFiles", "[LogTest]") {
  std::vector<Rows> written;
  uint64_t last = 0;
  std::string bytes = synced_log(&written, &last);
  MemoryFileSystem fs;
  REQUIRE_OK(fs.create_directory("db").status());
  auto file = fs.open("db/000008.wal", OpenMode::create);
  REQUIRE_OK((*file)->write_at(0, as_bytes(bytes)));
  const uint64_t id = log_id_of(fs, "db/000008.wal");
  auto code = [&](const std::string& path, const LogRecord& record) {
    return LogReader::open(fs, path, record).status().code();
  };
  CHECK(code("db/000008.wal", {8, id}) == StatusCode::corruption);
  CHECK(code("db/000008.wal", {7, id + 1}) == StatusCode::corruption);
  CHECK(code("db/000008.wal", {7, id}) == StatusCode::ok);
  CHECK(code("db/000009.wal", {9, id}) == StatusCode::not_found);
}

TEST_CASE("LogTest.RowsOfAnyBytesStayWithinThem", "[LogTest]") {
  std::mt19937_64 random(stride::test::seed());
  for (int run = 0; run < 20000; ++run) {
    std::vector<std::byte> payload;
    encode(random_rows(random), &payload);
    for (int edits = 1 + static_cast<int>(random() % 4); edits > 0; --edits)
      payload[random() % std::min<size_t>(payload.size(), 100)] = static_cast<std::byte>(random());
    if (random() % 4 == 0) payload.resize(random() % payload.size());
    LogRowsDecoder in(payload);
    LogRows rows;
    uint64_t sum = 0;
    while (in.next(&rows))
      for (uint32_t i = 0; i < rows.count; ++i) {
        for (std::byte b : rows.key(i)) sum += static_cast<uint64_t>(b);
        for (std::byte b : rows.value(i)) sum += static_cast<uint64_t>(b);
        REQUIRE(rows.key(i).size() <= max_key_bytes);
      }
    CHECK(sum < UINT64_MAX);
  }
}

TEST_CASE("LogTest.NamesAreThoseOfTheirNumbers", "[LogTest]") {
  CHECK(log_name(12) == "000012.wal");
  CHECK(log_number("000012.wal") == 12);
  CHECK_FALSE(log_number("12.wal"));
  CHECK_FALSE(log_number("000012.seg"));
}

}  // namespace
}  // namespace stride::log_tests
