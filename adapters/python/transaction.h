// Transactions as Python has them.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "adapters/python/errors.h"
#include "adapters/python/writes.h"

namespace stride::python {

struct PyTransaction {
  std::shared_ptr<Handle> handle;
  std::atomic<bool> in_use = false;
  std::optional<StagedChanges> staged;      // none: it has ended
  std::vector<std::vector<uint64_t>> bits;  // of put_if_absent
  std::vector<uint64_t> sizes;
  std::vector<std::shared_ptr<const TableForm>> forms;  // of the tables that it has to do with
  bool committed = false;
  bool failed = false;         // it has ended with a change that failed
  bool failed_inside = false;  // within its `with` block

  // Throws InvalidArgument: the table is of another database. Closed.
  StagedChanges& use(const PyTable& table) {
    if (table.handle != handle)
      raise("InvalidArgument", "table '" + table.table().name() + "' is of another database");
    if (std::ranges::find(forms, table.form) == forms.end()) forms.push_back(table.form);
    return ongoing();
  }
  StagedChanges& ongoing() {
    if (!staged && failed)
      raise("Closed", "the transaction has ended with a change that failed: nothing of it is kept",
            "begin another one, and let what a change raises leave the `with` block");
    if (!staged) raise("Closed", "the transaction has ended", "begin another one");
    return *staged;
  }
  // What reads the table. Throws as use(), and InvalidArgument: it is none that reads.
  Transaction& reading(const PyTable& table) {
    if (table.at)
      raise("InvalidArgument", "table '" + table.table().name() + "' is that of a snapshot",
            "use the database's table");
    Transaction* reading = use(table).reading();
    if (!reading)
      raise("InvalidArgument", "the transaction does not read",
            "begin it with transaction(reads=True)");
    return *reading;
  }
};

// A call of a transaction, which is the only one as long as it goes on: not another thread's, and
// none that an object makes which this one reads.
class TransactionUse {
 public:
  explicit TransactionUse(PyTransaction& transaction) : in_use_(transaction.in_use) {
    if (in_use_.exchange(true))
      raise("InvalidArgument", "the transaction is in use by a call that goes on",
            "use it from one thread at a time, or begin one for each thread");
  }
  ~TransactionUse() { in_use_ = false; }
  TransactionUse(const TransactionUse&) = delete;
  TransactionUse& operator=(const TransactionUse&) = delete;

 private:
  std::atomic<bool>& in_use_;
};

void bind_ordered_reads(nb::class_<PyTransaction>& transaction);
void bind_cursor(nb::class_<PyTransaction>& transaction);

}  // namespace stride::python
