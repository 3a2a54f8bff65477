// A set of reads and changes that is carried out as if it were alone, or not at all.
//
//   Transaction t = database->transaction();
//   Result<std::optional<Bytes>> balance = t.get(accounts, "ann");
//   ...
//   Status s = t.put(accounts, "ann", changed);
//   if (s.ok()) s = t.commit();                   // conflict: what was read has changed
//
// or, which does it again where there was a conflict:
//
//   Status s = retry(*database, [&](Transaction& t) { ... return t.put(accounts, "ann", changed); });
//
// Transactions are optimistic: nothing is locked and nobody waits. A transaction reads a snapshot,
// and its own changes on top of it. The commit succeeds if all that it has read is still as it was:
// each key, there or not, and each interval of a scan or a lower bound. So committed transactions,
// and commits of WriteTransaction, are serializable in the order of their commits, across tables.
// A transaction that has only written never conflicts, and one that has only read has nothing to
// commit: it has seen one state, and is as good without.
//
// Rows that merely move (a flush, a merge) are no conflict, however old the transaction is; no rows
// are kept for it but those that its snapshot pins. docs/transactions.md says more.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "engine/cursor.h"
#include "engine/lookup_result.h"
#include "engine/scan.h"
#include "engine/table.h"
#include "engine/write_transaction.h"
#include "storage/column.h"
#include "storage/export.h"
#include "storage/status.h"

namespace stride {

class Database;

// For one thread at a time: of two calls at the same time one is invalid_argument and does nothing.
// A transaction may outlive its database: it reads on, and its commit is `closed`. After commit()
// or abort() all calls are `closed`, and so are scans.
//
// Views that reads return are valid until the transaction makes a change or ends. Reads return what
// those of Snapshot do (engine/snapshot.h): not_found for a table that is not in the snapshot.
class STRIDE_API Transaction {
 public:
  struct STRIDE_INTERNAL State;
  explicit Transaction(std::shared_ptr<State> state) noexcept;
  explicit Transaction(Status why_not) noexcept;  // there is none: what its calls return
  Transaction(Transaction&&) noexcept;
  Transaction& operator=(Transaction&&) noexcept;
  ~Transaction();  // aborts what was not committed

  Result<std::optional<Bytes>> get(const Table& table, Bytes key);
  Result<std::optional<Bytes>> get(const Table& table, std::string_view key) {
    return get(table, as_bytes(key));
  }
  Status get(const Table& table, const KeyColumn& queries, GetResult* result);
  Status find(const Table& table, const KeyColumn& queries, FindResult* result);
  // What lies from each query up to the entry that is found, and that entry, counts as read.
  Status lower_bound(const Table& table, const KeyColumn& queries, LowerBoundResult* result);
  // The same; of an upper bound without the query itself, of a previous entry from that to the
  // query.
  Status upper_bound(const Table& table, const KeyColumn& queries, LowerBoundResult* result);
  Status previous(const Table& table, const KeyColumn& queries, LowerBoundResult* result);
  // What a batch has brought counts as read, up to its last key; at the end, all of the bounds.
  // Where batch_rows is 0 the first batches are small. A scan has the transaction's changes of
  // before, and none that are made while it goes on.
  Result<Scan> scan(const Table& table, const ScanOptions& options = {});
  Result<Iterator> iterate(const Table& table, const ScanOptions& options = {});
  // What a cursor passes over counts as read, and the entry that it finds; from a key that it
  // seeks, from that on. It has the transaction's changes of before, as a scan.
  Result<Cursor> cursor(const Table& table, const CursorOptions& options = {});
  // The whole table counts as read.
  Result<uint64_t> count(const Table& table);
  // The ranges count as read.
  Result<uint64_t> count(const Table& table, std::optional<Bytes> from, std::optional<Bytes> to);
  Status count(const Table& table, const KeyColumn& from, const KeyColumn& to,
               std::span<uint64_t> counts);
  // For prefix tables, as those of Snapshot. Of an address counts as read which prefix is found,
  // and its value.
  Status match(const Table& table, const KeyColumn& addresses, MatchResult* result);
  Result<std::optional<PrefixEntry>> match(const Table& table, Bytes address);
  Result<Scan> inside(const Table& table, Bytes prefix_key);

  // As those of WriteTransaction. The last change of a key wins.
  Status put(const Table& table, const KeyColumn& keys, const ValueColumn& values);
  Status put(const Table& table, const KeyColumn& keys, std::span<const CellColumn> columns);
  Status put(const Table& table, Bytes key, Bytes value);
  Status put(const Table& table, std::string_view key, std::string_view value) {
    return put(table, as_bytes(key), as_bytes(value));
  }
  Status erase(const Table& table, const KeyColumn& keys);
  Status erase(const Table& table, Bytes key);
  Status erase(const Table& table, std::string_view key) { return erase(table, as_bytes(key)); }
  // The keys that are there at the commit, which are not read by that. The first read after it
  // looks through the range, to hide them.
  Status erase_range(const Table& table, std::optional<Bytes> from, std::optional<Bytes> to);

  // Ends the transaction. As WriteTransaction::commit(), and conflict, naming table and key:
  // another commit has changed what this one has read; nothing of it is there, and it can be done
  // again with another transaction. not_found, too, where a table that it has read was dropped.
  // Without changes it is ok, whatever was read, and makes nothing durable.
  Status commit(std::optional<Durability> durability = std::nullopt);
  Status commit(const CommitOptions& options, CommitReport* report = nullptr);
  void abort();
  // Whether it has neither ended nor been moved away.
  bool is_open() const;
  uint64_t staged_rows() const;

 private:
  template <class Call>
  auto use(const Call& call);

  std::shared_ptr<State> state_;  // null: moved away, or why_not_
  Status why_not_;
};

// Calls change() with a transaction and commits it; where either is a conflict, again with another
// one after a moment, `limit` times in all. change() returns ok for a commit; another status ends it
// and is returned, and so is the last conflict. Where it has ended the transaction itself nothing
// is committed. What change() throws is passed on.
STRIDE_API Status retry(Database& database, const std::function<Status(Transaction&)>& change,
                        uint32_t limit = 32, const CommitOptions& options = {});

}  // namespace stride
