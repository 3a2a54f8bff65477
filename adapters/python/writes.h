// Changes of tables, within a transaction.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "adapters/python/handles.h"
#include "engine/write_transaction.h"

namespace stride::python {

namespace nb = nanobind;

// Throws ReadOnly for a table of a snapshot.
void check_writable(const PyTable& table);

// Memory of rows that are staged without a copy.
using KeptRows = std::vector<std::shared_ptr<const void>>;

// data: a frame with the table's columns; or keys, with values beside. kept: stays until the
// commit; null: rows are copied.
void stage_put(WriteTransaction* transaction, const TableForm& form, nb::handle data,
               nb::handle values, KeptRows* kept = nullptr);
// As stage_put(), of one key also with None for a value that is null.
void stage_set(WriteTransaction* transaction, const TableForm& form, nb::handle key,
               nb::handle value);
// Returns how many rows they are. was_new: bits that are set by the commit.
uint64_t stage_put_if_absent(WriteTransaction* transaction, const TableForm& form, nb::handle data,
                             nb::handle values, std::vector<std::vector<uint64_t>>* was_new,
                             std::vector<uint64_t>* sizes);
void stage_add(WriteTransaction* transaction, const TableForm& form, nb::handle keys,
               nb::handle deltas);
void stage_delete(WriteTransaction* transaction, const TableForm& form, nb::handle keys);
void stage_delete_range(WriteTransaction* transaction, const TableForm& form, nb::handle start,
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
void commit(WriteTransaction* transaction, const CommitArguments& arguments);

// The bits of several calls as one array of booleans.
nb::object joined_bits(const std::vector<std::vector<uint64_t>>& bits,
                       const std::vector<uint64_t>& sizes);

}  // namespace stride::python
