// What a WriteTransaction holds.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/database_impl.h"
#include "engine/named_notes.h"
#include "engine/write/commit_queue.h"
#include "engine/write/read_check.h"
#include "engine/write/staging.h"
#include "engine/write_transaction.h"

namespace stride {

struct STRIDE_INTERNAL WriteTransaction::State {
  std::shared_ptr<DatabaseImpl> database;
  Staging staging;
  std::map<uint32_t, std::shared_ptr<const Schema>> schemas;  // of tables that it creates, by id
  std::atomic<bool> changed{false};
  OpenTransaction open{.staging = &staging};
  std::atomic<bool> entered{false};  // the commit queue knows of it
  std::atomic<bool> ended{false};
  ReadCheck* reads = nullptr;  // null: it has read nothing

  // closed: it has ended, or this process is a forked child.
  Status check_open() const;
  // Whether rows of the table can be staged.
  Status begin_change(const Table& table);
  // A table that is there once what was staged so far is committed. not_found.
  Result<Table> open_table(const std::string& name);
  // The table's record with the new name, and what `.stride` keeps of both names. not_found,
  // already_exists.
  Result<TableRenaming> rename(const Table& table, const std::string& new_name,
                               std::vector<NamedNote>* notes, std::vector<NamedNote>* stale) const;
  // is_known: the commit queue knows of it as `open`. *stale: CommitRequest::stale; then it may be
  // called again.
  Status commit_once(const CommitOptions& options, Durability wanted, bool is_known,
                     CommitReport* report, bool* stale);
  // Tells the commit queue once they are many.
  void end_change() noexcept;
};

}  // namespace stride
