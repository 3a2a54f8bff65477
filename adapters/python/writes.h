// Changes of tables, within a transaction.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "adapters/python/handles.h"
#include "engine/transaction.h"
#include "engine/write_transaction.h"

namespace stride::python {

namespace nb = nanobind;

// What one transaction stages, whether it reads too or only writes.
class StagedChanges {
 public:
  explicit StagedChanges(WriteTransaction t) : transaction_(std::move(t)) {}
  explicit StagedChanges(Transaction t) : transaction_(std::move(t)) {}

  // Null: it only writes.
  Transaction* reading() { return std::get_if<Transaction>(&transaction_); }
  Result<Table> create_table(const std::string& name, const TableOptions& options) {
    if (reading()) return refused("_create_table()");
    return writing().create_table(name, options);
  }
  Status rename_table(const Table& table, const std::string& new_name) {
    return reading() ? refused("_rename_table()") : writing().rename_table(table, new_name);
  }
  Status put(const Table& table, const KeyColumn& keys, const ValueColumn& values) {
    return std::visit([&](auto& t) { return t.put(table, keys, values); }, transaction_);
  }
  // Copies where the transaction reads.
  Status put_view(const Table& table, const KeyColumn& keys, const ValueColumn& values) {
    if (reading()) return put(table, keys, values);
    return writing().put_view(table, keys, values);
  }
  Status put_if_absent(const Table& table, const KeyColumn& keys, const ValueColumn& values,
                       std::span<uint64_t> was_new) {
    return reading() ? refused("put_if_absent()")
                     : writing().put_if_absent(table, keys, values, was_new);
  }
  Status accumulate(const Table& table, const KeyColumn& keys, const ValueColumn& deltas) {
    return reading() ? refused("add()") : writing().accumulate(table, keys, deltas);
  }
  Status erase(const Table& table, const KeyColumn& keys) {
    return std::visit([&](auto& t) { return t.erase(table, keys); }, transaction_);
  }
  Status erase(const Table& table, Bytes key) {
    return std::visit([&](auto& t) { return t.erase(table, key); }, transaction_);
  }
  Status erase_range(const Table& table, std::optional<Bytes> from, std::optional<Bytes> to) {
    return std::visit([&](auto& t) { return t.erase_range(table, from, to); }, transaction_);
  }
  uint64_t staged_rows() const {
    return std::visit([](const auto& t) { return t.staged_rows(); }, transaction_);
  }
  Status commit(const CommitOptions& options) {
    return std::visit([&](auto& t) { return t.commit(options); }, transaction_);
  }

 private:
  WriteTransaction& writing() { return std::get<WriteTransaction>(transaction_); }
  static Status refused(const char* call) {
    return Status::invalid(std::string("a transaction that reads has no ") + call)
        .with_remedy(
            "get() what is there and put() what it becomes, or use a transaction that "
            "does not read");
  }

  std::variant<WriteTransaction, Transaction> transaction_;
};

// Throws ReadOnly for a table of a snapshot.
void check_writable(const PyTable& table);

// Memory of rows that are staged without a copy.
using KeptRows = std::vector<std::shared_ptr<const void>>;

// data: a frame with the table's columns; or keys, with values beside. kept: stays until the
// commit; null: rows are copied.
void stage_put(StagedChanges* transaction, const TableForm& form, nb::handle data,
               nb::handle values, KeptRows* kept = nullptr);
// As stage_put(), of one key also with None for a value that is null.
void stage_set(StagedChanges* transaction, const TableForm& form, nb::handle key, nb::handle value);
// Returns how many rows they are. was_new: bits that are set by the commit.
uint64_t stage_put_if_absent(StagedChanges* transaction, const TableForm& form, nb::handle data,
                             nb::handle values, std::vector<std::vector<uint64_t>>* was_new,
                             std::vector<uint64_t>* sizes);
void stage_add(StagedChanges* transaction, const TableForm& form, nb::handle keys,
               nb::handle deltas);
void stage_delete(StagedChanges* transaction, const TableForm& form, nb::handle keys);
void stage_delete_range(StagedChanges* transaction, const TableForm& form, nb::handle start,
                        nb::handle stop);

struct CommitArguments {
  std::optional<std::string> durability;  // none: the database's
  bool refuse_equal_keys = false;
  nb::object progress = nb::none();  // called with a share from 0 to 1
  // Of the tables that are changed, for errors that tell of keys.
  std::vector<std::shared_ptr<const TableForm>> forms = {};
};
// Commits. A long one ends with KeyboardInterrupt where Ctrl-C is pressed, or with what `progress`
// raises, and nothing is changed, unless that comes when all of it is there already.
void commit(StagedChanges* transaction, const CommitArguments& arguments);

// The bits of several calls as one array of booleans.
nb::object joined_bits(const std::vector<std::vector<uint64_t>>& bits,
                       const std::vector<uint64_t>& sizes);

}  // namespace stride::python
