// Random operations of a database, each drawn from a number of its own. Each holds all that it
// needs: whatever is left out of a history, the others stay what they are.
//
//   Operation operation = make_operation(seed);
//   std::string expected = model.apply(operation), seen = subject.apply(operation);
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/options.h"
#include "engine/scan.h"

namespace stride::test::metamorphic {

// What the keys and values of a table are like.
enum class TableKind : uint8_t {
  any,    // keys of any length, the empty one too, of bytes that are often 0x00 or 0xFF
  words,  // longer keys with common beginnings, and values of up to some hundred bytes
  fixed8,
  fixed20,  // keys that differ late
  shared,   // equal values are kept once
  i64,
  wrapping,  // i32, whose sums wrap
  f64,
  prefixes,  // of addresses of 12 bits, so that most addresses have several
  strings,   // prefixes of byte strings
  many,      // now and then so many rows that what is in memory gets a tree
};

// Table i of a history is of kind i, whenever it is there.
constexpr int tables = 11;
std::string table_name(int table);
TableOptions table_options(int table);
constexpr TableKind kind_of(int table) { return static_cast<TableKind>(table); }
constexpr bool has_numbers(TableKind kind) {
  return kind == TableKind::i64 || kind == TableKind::wrapping || kind == TableKind::f64;
}
constexpr bool has_prefixes(TableKind kind) {
  return kind == TableKind::prefixes || kind == TableKind::strings;
}
constexpr uint32_t address_bits_of(TableKind kind) {
  return kind == TableKind::strings ? byte_strings : kind == TableKind::prefixes ? 12 : 0;
}

// A call of a transaction.
struct Step {
  enum class Kind : uint8_t {
    put,  // row by row
    put_column,
    put_view,
    erase,  // row by row
    erase_column,
    erase_range,   // of row 0, where an empty bound is none
    erase_ranges,  // from keys to values
    put_if_absent,
    accumulate,  // numbers, or bytes that are refused
    create,      // the table, with its first rows
  };
  Kind kind = Kind::put;
  int table = 0;
  std::vector<std::string> keys, values;
  std::vector<int64_t> deltas;
};

struct Changes {
  std::vector<Step> steps;
  Durability durability = Durability::sync;
  bool aborted = false;
};

// What is read of one table.
struct Reading {
  std::optional<int> kept;  // the snapshot; none: a new one
  int table = 0;
  std::vector<std::string> keys;       // that are looked up
  std::vector<std::string> addresses;  // of a prefix table
  ScanOptions scan;
};

struct Operation {
  enum class Kind : uint8_t {
    commit,      // one transaction, or two that have staged all before the first one commits
    concurrent,  // several transactions of disjoint keys, which commit at the same time
    create,
    drop,
    keep,  // a snapshot, in place of an earlier one
    read,
    compact,
    sync,
    read_only,           // a second handle reads all that is there
    drop_before_commit,  // the table of a transaction's rows goes before its commit
  };
  Kind kind = Kind::commit;
  std::vector<Changes> transactions;
  int table = 0;
  int kept = 0;
  Reading reading;
};

constexpr int kept_snapshots = 4;

Operation make_operation(uint64_t seed);
// A few words on each, for whoever looks for what has failed.
std::string describe(const Operation& operation);
std::string printable(const std::string& bytes);

// Numbers as tables keep them.
std::string encode_number(TableKind kind, int64_t number);
int64_t decode_number(TableKind kind, const std::string& value);

}  // namespace stride::test::metamorphic
