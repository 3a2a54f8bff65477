#include "tests/engine/readers/killed_writer.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <new>
#include <random>
#include <string>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/model.h"
#include "tests/support/printed_seed.h"
#include "tests/support/sanitizers.h"

namespace stride::test {
namespace {

constexpr int keys_of_commit = 8;  // in each table

// What the processes tell each other.
struct Board {
  std::atomic<uint64_t> returned{
      0};  // the number of the last commit that had survived this process
  std::atomic<uint64_t> refreshed{0};  // how often the readers have looked
  std::atomic<uint64_t> seen{0};       // how many numbers the reader that lives has seen
  std::atomic<bool> stop{false};
  char message[1000] = {};  // what went wrong
};

class SharedBoard {
 public:
  SharedBoard() {
    void* memory =
        ::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) std::abort();
    board_ = new (memory) Board;
  }
  ~SharedBoard() { ::munmap(board_, sizeof(Board)); }
  Board* operator->() const { return board_; }
  Board& operator*() const { return *board_; }

 private:
  Board* board_;
};

class Process {
 public:
  // body: runs in a child, and returns what went wrong.
  Process(Board& board, const std::function<std::string()>& body) : id_(::fork()) {
    if (id_ != 0) return;
    ::alarm(600);
    const std::string wrong = body();
    std::snprintf(board.message, sizeof board.message, "%s", wrong.c_str());
    ::_exit(wrong.empty() ? 0 : 1);
  }
  ~Process() {
    if (id_ > 0) kill();
  }
  void kill() {
    ::kill(id_, SIGKILL);
    wait();
  }
  bool wait() {
    int status = -1;
    ::waitpid(id_, &status, 0);
    id_ = 0;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }

 private:
  pid_t id_;
};

std::string key_text(int i) { return "key" + std::to_string(i); }

uint64_t number_of(std::string_view value) { return std::strtoull(value.data(), nullptr, 10); }

std::string value_of(uint64_t number, std::mt19937_64& random) {
  uint64_t padding = random() % 200;
  if (random() % 40 == 0) padding = random() % 30'000;
  if (random() % 150 == 0) padding = 200'000;  // too large for the log
  return std::to_string(number) + ";" + std::string(padding, 'x');
}

Options writer_options() {
  Options options{.threads = 1, .memory_limit_bytes = 64 << 20};
  options.memtable_bytes = 1 << 20;
  options.log_file = false;
  return options;
}

// The number that all keys have. Throws what is wrong.
uint64_t read_number(const Snapshot& snapshot, const Table (&tables)[2]) {
  uint64_t number = 0;
  for (int i = 0; i < 2 * keys_of_commit; ++i) {
    auto value = snapshot.get(tables[i % 2], key_text(i / 2));
    if (!value.ok()) throw "a read failed: " + value.status().to_string();
    if (!*value) throw "there is no " + key_text(i / 2);
    const uint64_t its = number_of(text(**value));
    if (i > 0 && its != number)
      throw "half a commit: " + std::to_string(number) + " and " + std::to_string(its);
    number = its;
  }
  return number;
}

void open_tables(Database& db, Table (&tables)[2]) {
  for (int i = 0; i < 2; ++i) {
    auto table = db.open_table(i == 0 ? "a" : "b");
    if (!table.ok()) throw "no table: " + table.status().to_string();
    tables[i] = *table;
  }
}

void commit_number(Database& db, const Table (&tables)[2], uint64_t number, std::mt19937_64& random,
                   Board& board) {
  const std::string value = value_of(number, random);
  WriteTransaction t = db.begin();
  for (const Table& table : tables) {
    Status s;
    if (random() % 20 == 0) s = t.erase_range(table, as_bytes("key"), as_bytes("l"));
    for (int i = 0; s.ok() && i < keys_of_commit; ++i) s = t.put(table, key_text(i), value);
    if (!s.ok()) throw "staging failed: " + s.to_string();
  }
  const auto durability = static_cast<Durability>(random() % 8 == 0 ? 2 : random() % 2);
  if (Status s = t.commit(durability); !s.ok()) throw "a commit failed: " + s.to_string();
  if (durability != Durability::none) board.returned = number;
}

void write_numbers(const std::string& path, uint64_t seed, Board& board) {
  std::mt19937_64 random(seed);
  auto db = Database::open(path, writer_options());
  if (!db.ok()) throw "the writer cannot open: " + db.status().to_string();
  Table tables[2];
  open_tables(**db, tables);
  uint64_t number = read_number((*db)->snapshot(), tables);
  if (number < board.returned) throw std::string("the writer has lost a commit");
  while (!board.stop) {
    commit_number(**db, tables, ++number, random, board);
    if (random() % 300 == 0)
      if (Status s = (*db)->compact(); !s.ok()) throw "compact(): " + s.to_string();
    if (random() % 50 == 0) ::usleep(2000);
  }
}

void read_numbers(const std::string& path, bool lives, Board& board) {
  auto db = Database::open(path, {.read_only = true, .threads = 1});
  if (!db.ok()) throw "a reader cannot open: " + db.status().to_string();
  Table tables[2];
  open_tables(**db, tables);
  uint64_t last = read_number((*db)->snapshot(), tables), old_number = last;
  Snapshot old = (*db)->snapshot();
  for (uint64_t i = 1; !board.stop; ++i) {
    const uint64_t returned = board.returned;
    if (Status s = (*db)->refresh(); !s.ok()) throw "refresh(): " + s.to_string();
    const uint64_t number = read_number((*db)->snapshot(), tables);
    if (number < last) throw std::string("a commit went back");
    if (number < returned) throw std::string("a commit that had returned was not seen");
    if (lives && number > last) ++board.seen;
    last = number;
    ++board.refreshed;
    if (i % 64 != 0) continue;
    if (read_number(old, tables) != old_number) throw std::string("an old snapshot has changed");
    old = (*db)->snapshot();
    old_number = number;
  }
}

std::function<std::string()> caught(const std::function<void()>& body) {
  return [body] {
    try {
      body();
      return std::string();
    } catch (const std::string& wrong) {
      return wrong;
    }
  };
}

void create_tables(const std::string& path, Board& board) {
  std::mt19937_64 random(1);
  auto db = Database::open(path, writer_options());
  if (!db.ok()) throw "creating: " + db.status().to_string();
  for (const char* name : {"a", "b"})
    if (auto table = (*db)->create_table(name); !table.ok())
      throw "creating: " + table.status().to_string();
  Table tables[2];
  open_tables(**db, tables);
  commit_number(**db, tables, 1, random, board);
}

// What is left when all processes have gone: one that writes removes what was kept for readers.
void check_leftovers(const std::string& path) {
  auto db = Database::open(path, writer_options());
  REQUIRE_OK(db);
  REQUIRE_OK((*db)->compact());
  REQUIRE_OK((*db)->verify());
  uint64_t segments = 0, leases = 0, files = 0;
  for (const auto& table : (*db)->tables()) segments += table.segments;
  for (const auto& file : std::filesystem::directory_iterator(path)) {
    files += file.path().extension() == ".seg";
    leases += file.path().filename().string().starts_with("READER-");
  }
  CHECK(files == segments);
  CHECK(leases == 0u);
}

}  // namespace

void run_beside_killed_writer(uint64_t kills) {
  std::mt19937_64 random(seed());
  TemporaryDirectory directory;
  const std::string path = directory.file("db");
  SharedBoard board;
  CHECK_MESSAGE(Process(*board, caught([&] { create_tables(path, *board); })).wait(),
                board->message);
  Process reader(*board, caught([&] { read_numbers(path, /*lives=*/true, *board); }));
  std::unique_ptr<Process> mortal;
  for (uint64_t i = 0; i < kills && board->message[0] == '\0'; ++i) {
    const uint64_t writer_seed = random();
    Process writer(*board, caught([&] { write_numbers(path, writer_seed, *board); }));
    if (random() % 4 == 0) mortal.reset();
    if (!mortal)
      mortal = std::make_unique<Process>(
          *board, caught([&] { read_numbers(path, /*lives=*/false, *board); }));
    ::usleep(static_cast<useconds_t>((under_sanitizer ? 3 : 1) * (5000 + random() % 100'000)));
    writer.kill();
  }
  mortal.reset();
  board->stop = true;
  CHECK_MESSAGE(reader.wait(), board->message);
  REQUIRE_MESSAGE(board->message[0] == '\0', board->message);
  CHECK(board->refreshed > kills);
  CHECK(board->seen > kills / 2);
  INFO("the last number is " << board->returned << ", seen were " << board->seen);
  check_leftovers(path);
}

}  // namespace stride::test
