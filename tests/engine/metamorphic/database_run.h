// A database that operations are done on, under one set of options.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/database.h"
#include "storage/memory_file_system.h"
#include "tests/engine/metamorphic/operation.h"
#include "tests/engine/metamorphic/option_set.h"
#include "tests/support/model.h"

namespace stride::test::metamorphic {

// Asserts nothing: what goes wrong is part of the answers.
class DatabaseRun {
 public:
  explicit DatabaseRun(const OptionSet& set);
  ~DatabaseRun();

  // What the calls have answered: codes of statuses, and what was read.
  std::string apply(const Operation& operation);
  // All that is there, once it has been verified and opened again.
  std::string contents();

 private:
  struct Kept {
    std::optional<Snapshot> snapshot;
    std::map<int, Table> handles;
  };
  class Transaction;

  void open();
  std::string commit(const Operation& operation);
  std::string commit_at_once(const Operation& operation);
  std::string drop_before_commit(const Operation& operation);
  std::string read_beside() const;
  static void keep(const Database& db, Kept* kept);
  static std::string contents_of(const Database& db);
  std::string read(const Reading& reading);

  const OptionSet set_;
  Options options_;
  std::optional<TemporaryDirectory> directory_;
  MemoryFileSystem memory_;
  std::string path_ = "/db";
  std::unique_ptr<Database> db_;
  std::vector<Kept> kept_{kept_snapshots};
  int operations_ = 0;
  std::string failures_;  // of opening and closing
};

}  // namespace stride::test::metamorphic
