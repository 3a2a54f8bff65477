// Keys as Python gives them, and as it gets them back.
#pragma once

#include <nanobind/nanobind.h>

#include <string>
#include <vector>

#include "adapters/python/cells.h"
#include "adapters/python/fields.h"
#include "adapters/python/handles.h"

namespace stride::python {

namespace nb = nanobind;

// Whether it is one key of the table, and no column of keys.
bool is_one_key(const TableForm& form, nb::handle given);
// Appends the bytes of one key. partial: a tuple may have the first columns alone, for bounds.
void append_key(const TableForm& form, nb::handle given, bool partial, std::string* bytes);

// Keys with what they point to.
struct GivenKeys {
  std::vector<Cells> cells;
  KeyColumn keys;  // points into the cells or into `encoded`
  EncodedKeys* encoded = nullptr;
};
// A column of keys: for a key of several columns a frame or a dict that has them, a list or a tuple
// with a column for each, or a list of tuples. encoded: where they are made.
GivenKeys keys_of(const TableForm& form, nb::handle given, EncodedKeys* encoded);
// Makes keys of columns that are read, which come in the order of the schema's key.
void encode(const TableForm& form, std::vector<Cells> cells, EncodedKeys* encoded, GivenKeys* keys);

// Prefixes of a prefix table, and addresses, which are texts, integers, objects of `ipaddress`, or
// bytes.
void append_prefix(const TableForm& form, nb::handle given, std::string* bytes);
void append_address(const TableForm& form, nb::handle given, std::string* bytes);
bool is_one_address(nb::handle given);
// Whether it is a number of NumPy, or an array without dimensions.
bool is_numpy_scalar(nb::handle given);
GivenKeys prefixes_of(const TableForm& form, nb::handle given, EncodedKeys* encoded);
GivenKeys addresses_of(const TableForm& form, nb::handle given, EncodedKeys* encoded);

// The key columns of keys, for rows that are handed out. The keys must stay as long as `owner`.
std::vector<Cells> key_cells(const TableForm& form, const KeyColumn& keys,
                             std::shared_ptr<const void> owner);
// One key: its cell, or a tuple.
nb::object key_object(const TableForm& form, Bytes key);
// As check(), of a call that may tell of a key of the table, which is shown as Python has it then.
void check(const TableForm& form, const Status& status);

}  // namespace stride::python
