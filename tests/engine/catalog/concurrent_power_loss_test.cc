// Power losses while several threads commit: what is found afterwards is what was there after some
// commit, with all before it and nothing after it, and with every commit that was told to survive.

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <map>
#include <mutex>
#include <random>
#include <thread>

#include "engine/database.h"
#include "storage/memory_file_system.h"
#include "tests/support/background_work.h"
#include "tests/support/catch.h"
#include "tests/support/model.h"
#include "tests/support/printed_seed.h"
#include "tests/support/sanitizers.h"
#include "tests/support/test_threads.h"

namespace stride::test::power_loss_tests {
namespace {

constexpr int committers = 5, shared_keys = 4;

// How many commits of each committer: those of one committer follow one another.
using Cut = std::array<int, committers>;

bool within(const Cut& a, const Cut& b) {
  for (size_t i = 0; i < a.size(); ++i)
    if (a[i] > b[i]) return false;
  return true;
}

std::string describe(const Cut& cut) {
  std::string said;
  for (int n : cut) said += " " + std::to_string(n);
  return said;
}

uint64_t now() {
  return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}

struct CommitRecord {
  uint64_t invoked = 0, returned = ~uint64_t{0};
  int last = -1;   // the shared key that it put
  int first = -1;  // the one that it put if it was absent
  bool was_new = false;
  bool counts = false;  // it added 1 to the count
};

// The tables of the test, by a handle of one opening.
struct CrashTables {
  Table marks, counts, last, first;

  static Result<CrashTables> open(Database& db) {
    CrashTables opened;
    for (auto [name, table] : {std::pair{"marks", &opened.marks},
                               {"counts", &opened.counts},
                               {"last", &opened.last},
                               {"first", &opened.first}}) {
      TableOptions options;
      if (table == &opened.counts) options.numbers = NumberType::i64;
      auto found = db.open_or_create_table(name, options);
      if (!found.ok()) return found.status();
      *table = *found;
    }
    return opened;
  }
};

std::string shared_key(int k) { return "k" + std::to_string(k); }
std::string mark(int committer, int commit) {
  const std::string n = std::to_string(commit);
  return "c" + std::to_string(committer) + "/" + std::string(6 - n.size(), '0') + n;
}

// What is read of a database, by one snapshot.
struct Found {
  Cut cut{};
  int64_t count = 0;
  std::map<int, std::pair<int, int>> last, first;  // by shared key: committer and commit
  size_t tables = 0;                               // that were created meanwhile
  std::string fault;                               // what can't be, whatever was committed
};

std::pair<int, int> parse_mark(const std::string& mark) {
  return {mark[1] - '0', std::stoi(mark.substr(3))};
}

Found read_found(const Snapshot& snapshot, const CrashTables& tables) {
  Found found;
  auto marks = snapshot.iterate(tables.marks);
  if (!marks.ok()) found.fault = marks.status().to_string();
  for (; marks.ok() && marks->valid(); marks->next()) {
    const auto [committer, commit] = parse_mark(text(marks->key()));
    if (++found.cut[static_cast<size_t>(committer)] != commit)
      found.fault = "a commit is missing before " + text(marks->key());
  }
  auto count = snapshot.get(tables.counts, "all");
  if (!count.ok()) found.fault = count.status().to_string();
  if (count.ok() && *count) std::memcpy(&found.count, (*count)->data(), sizeof found.count);
  for (int k = 0; k < shared_keys; ++k) {
    for (auto [table, into] :
         {std::pair{&tables.last, &found.last}, {&tables.first, &found.first}}) {
      auto one = snapshot.get(*table, std::string_view(shared_key(k)));
      if (!one.ok()) found.fault = one.status().to_string();
      if (one.ok() && *one) (*into)[k] = parse_mark(text(**one));
    }
  }
  return found;
}

// Commits until it is told to stop, or one fails.
class Committer {
 public:
  Committer(Database& db, const CrashTables& tables, int number, uint64_t seed)
      : db_(db), tables_(tables), number_(number), random_(seed) {}

  void run(const std::atomic<bool>& stop, int most) {
    while (!stop && begun_ < most && commit_one()) {
    }
  }

  // Read while it runs: the commits that have begun, and those that have returned and were told to
  // survive a power loss, or the process at least, or nothing.
  int begun() const { return begun_; }
  int returned(Durability durability) const { return returned_[static_cast<size_t>(durability)]; }
  // Once it has ended.
  const std::vector<CommitRecord>& commits() const { return commits_; }

 private:
  bool commit_one() {
    CommitRecord& record = commits_.emplace_back();
    const auto durability = static_cast<Durability>(random_() % 3);
    const int commit = begun_ + 1;
    const std::string name = mark(number_, commit);
    WriteTransaction t = db_.begin();
    // Some make a segment at once, whatever the memtable.
    const size_t bytes = random_() % 12 == 0 ? 20'000 : random_() % 200;
    uint64_t was_new = 0;
    bool staged = t.put(tables_.marks, name, std::string(bytes, 'x')).ok();
    if (random_() % 2) {
      record.last = static_cast<int>(random_() % shared_keys);
      staged = staged && t.put(tables_.last, shared_key(record.last), name).ok();
    }
    if (random_() % 4 == 0) {
      record.first = static_cast<int>(random_() % shared_keys);
      Rows keys({shared_key(record.first)}), values({name});
      staged = staged &&
               t.put_if_absent(tables_.first, keys.column(), values.column(), {&was_new, 1}).ok();
    }
    record.counts = random_() % 3 == 0;
    if (record.counts) staged = staged && t.accumulate(tables_.counts, "all", 1).ok();
    begun_ = commit;
    record.invoked = now();
    if (!staged || !t.commit(durability).ok()) return false;
    record.returned = now();
    record.was_new = was_new;
    for (size_t level = static_cast<size_t>(durability); level < returned_.size(); ++level)
      returned_[level] = commit;
    return true;
  }

  Database& db_;
  const CrashTables& tables_;
  const int number_;
  std::mt19937_64 random_;
  std::vector<CommitRecord> commits_;
  std::atomic<int> begun_{0};
  std::array<std::atomic<int>, 3> returned_{};
};

// What a power loss left, and what must be there.
struct Image {
  std::unique_ptr<MemoryFileSystem> fs;
  Cut required{}, possible{};
  CrashPolicy policy;
};

class ConcurrentPowerLossTest {
 protected:
  using Commits = std::array<const std::vector<CommitRecord>*, committers>;

  Options options(FileSystem& fs) {
    Options o;
    o.file_system = &fs;
    o.threads = 2;
    o.backend = BackendKind::host;
    const uint64_t sizes[] = {0, 1 << 12, 1 << 15, 1 << 26};
    o.memtable_bytes = sizes[random_() % 4];
    o.durability = static_cast<Durability>(random_() % 3);  // of the creation of tables
    set_background_work(&o, random_() % 2);
    return o;
  }

  // The power is lost at random moments, and the machine that goes on is not the one that is looked
  // at afterwards; or from some call on all fail, too.
  void commit_through_power_losses(bool fails) {
    images_.clear();
    cuts_.clear();
    created_.clear();
    for (auto& synced : synced_) synced = 0;
    MemoryFileSystem fs;
    auto db = Database::open("/db", options(fs));
    REQUIRE_OK(db);
    auto tables = CrashTables::open(**db);
    REQUIRE_OK(tables);
    REQUIRE_OK((*db)->sync());
    std::vector<std::unique_ptr<Committer>> all;
    for (int i = 0; i < committers; ++i)
      all.push_back(std::make_unique<Committer>(**db, *tables, i, random_()));
    if (fails) fs.fail_call(1 + random_() % 400, StatusCode::io_error, /*forever=*/true);
    std::atomic<bool> stop = false;
    std::atomic<int> running = committers;
    TestThreads threads;
    for (auto& committer : all)
      threads.start([&] {
        committer->run(stop, 120);
        --running;
      });
    threads.start([&] { observe(**db, *tables, running); });
    threads.start([&] { disturb(**db, all, running); });
    while (running > 0 && images_.size() < 12) {
      std::this_thread::sleep_for(std::chrono::microseconds(random_() % 3000));
      if (!fails) images_.push_back(lose_power(fs, all, fails));
    }
    stop = images_.size() >= 12;
    threads.join();
    images_.push_back(lose_power(fs, all, fails));
    fs.fail_call(0, StatusCode::ok);
    Commits commits;
    for (size_t i = 0; i < all.size(); ++i) commits[i] = &all[i]->commits();
    for (const Image& image : images_) look_at(image, commits);
  }

 private:
  // What must survive is asked before, and what can be there afterwards.
  Image lose_power(MemoryFileSystem& fs, const std::vector<std::unique_ptr<Committer>>& all,
                   bool fails) {
    Image image;
    image.policy = static_cast<CrashPolicy>(random_() % 3);
    // A sync that fails loses what others have written, so that no more than a power loss is
    // survived.
    const bool killed = image.policy == CrashPolicy::keep_unsynced && !fails;
    for (size_t i = 0; i < all.size(); ++i)
      image.required[i] = std::max(synced_[i].load(),
                                   all[i]->returned(killed ? Durability::flush : Durability::sync));
    image.fs = fs.crash(random_(), image.policy);
    for (size_t i = 0; i < all.size(); ++i) image.possible[i] = all[i]->begun();
    return image;
  }

  // Cuts of the order of the commits, as readers see them.
  void observe(Database& db, const CrashTables& tables, const std::atomic<int>& running) {
    while (running > 0) {
      Found found = read_found(db.snapshot(), tables);
      REQUIRE_MESSAGE(found.fault.empty(), found.fault);
      if (!cuts_.empty())
        REQUIRE_MESSAGE(within(cuts_.back(), found.cut), "a later snapshot sees less");
      if (cuts_.empty() || cuts_.back() != found.cut) cuts_.push_back(found.cut);
    }
  }

  void disturb(Database& db, const std::vector<std::unique_ptr<Committer>>& all,
               const std::atomic<int>& running) {
    for (int i = 0; running > 0; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(3));
      if (i % 3 == 0) Status ignored = db.compact();
      if (i % 3 == 2) create_table(db, all);
      if (i % 3 != 1) continue;
      Cut before;
      for (size_t c = 0; c < all.size(); ++c) before[c] = all[c]->returned(Durability::none);
      if (!db.sync().ok()) continue;
      for (size_t c = 0; c < all.size(); ++c) synced_[c] = before[c];
    }
  }

  // It comes after what has returned before.
  void create_table(Database& db, const std::vector<std::unique_ptr<Committer>>& all) {
    Cut before;
    for (size_t c = 0; c < all.size(); ++c) before[c] = all[c]->returned(Durability::none);
    created_.push_back(before);
    Status ignored = db.create_table(created_name(created_.size())).status();
  }
  static std::string created_name(size_t n) { return "created" + std::to_string(n); }

  void look_at(const Image& image, const Commits& commits) {
    Found found;
    {
      auto fs = image.fs->crash(0, CrashPolicy::keep_unsynced);
      found = recover(*fs);
      expect_prefix(found.cut, image, commits);
      expect_shared(found, commits);
      if (found.tables)
        REQUIRE_MESSAGE(within(created_[found.tables - 1], found.cut),
                        "a table is there, but commits that came before it are not");
    }
    for (int i = 0; i < 2; ++i) lose_power_again(image, found.cut);
  }

  Found recover(MemoryFileSystem& fs) {
    auto db = Database::open("/db", options(fs));
    REQUIRE_OK(db);
    auto tables = CrashTables::open(**db);
    REQUIRE_OK(tables);
    Found found = read_found((*db)->snapshot(), *tables);
    REQUIRE_MESSAGE(found.fault.empty(), found.fault);
    while ((*db)->open_table(created_name(found.tables + 1)).ok()) ++found.tables;
    REQUIRE_OK((*db)->verify());
    return found;
  }

  // While the database is opened, or by the first changes after that.
  void lose_power_again(const Image& image, const Cut& cut) {
    auto fs = image.fs->crash(0, CrashPolicy::keep_unsynced);
    fs->fail_call(1 + random_() % 12, StatusCode::io_error, /*forever=*/true);
    {
      auto db = Database::open("/db", options(*fs));
      if (db.ok()) {
        auto table = (*db)->open_or_create_table("other");
        if (table.ok()) {
          WriteTransaction t = (*db)->begin();
          REQUIRE_OK(t.put(*table, "key", "value"));
          Status ignored = t.commit(static_cast<Durability>(random_() % 3));
          ignored = (*db)->compact();
        }
      }
    }
    auto after = fs->crash(random_(), static_cast<CrashPolicy>(random_() % 3));
    const Found found = recover(*after);
    REQUIRE_MESSAGE(found.cut == cut, "a second power loss leaves" << describe(found.cut)
                                                                   << " in place of"
                                                                   << describe(cut));
  }

  void expect_prefix(const Cut& cut, const Image& image, const Commits& commits) {
    const auto policy = static_cast<int>(image.policy);
    REQUIRE_MESSAGE(within(image.required, cut), "policy " << policy << ": lost, of"
                                                           << describe(image.required)
                                                           << " there are" << describe(cut));
    REQUIRE_MESSAGE(within(cut, image.possible), "it has not been committed yet");
    for (const Cut& seen : cuts_)
      REQUIRE_MESSAGE((within(seen, cut) || within(cut, seen)),
                      "policy " << policy << ": readers have seen" << describe(seen)
                                << ", and found was" << describe(cut));
    for (size_t a = 0; a < cut.size(); ++a) {
      if (cut[a] == 0) continue;
      const uint64_t invoked = (*commits[a])[static_cast<size_t>(cut[a] - 1)].invoked;
      for (size_t b = 0; b < cut.size(); ++b) {
        const auto next = static_cast<size_t>(cut[b]);
        if (next >= commits[b]->size()) continue;
        REQUIRE_MESSAGE(
            (*commits[b])[next].returned >= invoked,
            "what had returned before is lost: " << mark(static_cast<int>(b), cut[b] + 1));
      }
    }
  }

  // What the commits that are there have done to keys that they share.
  void expect_shared(const Found& found, const Commits& commits) {
    int64_t count = 0;
    for (size_t a = 0; a < commits.size(); ++a)
      for (size_t i = 0; i < static_cast<size_t>(found.cut[a]); ++i) {
        const CommitRecord& commit = (*commits[a])[i];
        const std::pair<int, int> name(a, i + 1);
        count += commit.counts;
        if (commit.last >= 0) expect_last(found, commits, commit, name);
        if (commit.first < 0) continue;
        REQUIRE_MESSAGE(found.first.contains(commit.first), "nothing is there of the first");
        const bool is_first = found.first.at(commit.first) == name;
        if (commit.returned != ~uint64_t{0})
          REQUIRE_MESSAGE(commit.was_new == is_first, "who was new is not the first");
      }
    REQUIRE_MESSAGE(found.count == count, found.count << " were counted, not " << count);
  }

  void expect_last(const Found& found, const Commits& commits, const CommitRecord& commit,
                   const std::pair<int, int>& name) {
    REQUIRE_MESSAGE(found.last.contains(commit.last), "nothing is there of the last");
    const auto [committer, number] = found.last.at(commit.last);
    REQUIRE_MESSAGE(number <= found.cut[static_cast<size_t>(committer)],
                    "a commit is there in part");
    const CommitRecord& last =
        (*commits[static_cast<size_t>(committer)])[static_cast<size_t>(number - 1)];
    REQUIRE_MESSAGE(commit.invoked <= last.returned,
                    mark(name.first, name.second) << " came after " << mark(committer, number));
    if (name.first == committer) REQUIRE_MESSAGE(name.second <= number, "an older row has won");
  }

 protected:
  std::mt19937_64 random_{seed()};

 private:
  std::vector<Image> images_;
  std::vector<Cut> cuts_;
  std::vector<Cut> created_;  // what had returned before a table was created
  std::array<std::atomic<int>, committers> synced_{};
};

TEST_CASE_METHOD(ConcurrentPowerLossTest,
                 "ConcurrentPowerLossTest.PowerLossLeavesAPrefixOfTheCommits",
                 "[ConcurrentPowerLossTest]") {
  for (int round = 0; round < smaller_under_sanitizers(25, 4); ++round)
    commit_through_power_losses(/*fails=*/false);
}

TEST_CASE_METHOD(ConcurrentPowerLossTest, "ConcurrentPowerLossTest.SoItDoesWhereAllCallsFail",
                 "[ConcurrentPowerLossTest]") {
  for (int round = 0; round < smaller_under_sanitizers(80, 12); ++round)
    commit_through_power_losses(/*fails=*/true);
}

}  // namespace
}  // namespace stride::test::power_loss_tests
