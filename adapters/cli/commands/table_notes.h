// What the commands remember about a table: how its keys are written as text, what its columns are
// called, and how far an interrupted load came. It is kept in the database itself, in the table
// `.stride`, and changes in the transaction that changes the rows.
//
//   key              value (JSON)
//   table:NAME       {"key_type":"u64","key":"id","values":["name","city"]}
//   load:NAME        {"table":7,"job":"...","file":0,"offset":4194304,"line":65537,"rows":65536,...}
//   restore:NAME     {"id":7}   that table, while a restore that commits from time to time has not
//   come to its end
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "adapters/cli/exit_status.h"
#include "adapters/cli/text/key_codec.h"
#include "engine/database.h"

namespace stride::cli {

inline constexpr std::string_view notes_table = ".stride";

struct TableNotes {
  std::string key_type = "bytes";   // as --key-type has it
  std::string key;                  // the column's name, where there was one
  std::vector<std::string> values;  // the columns' names, where they were named
  bool operator==(const TableNotes&) const = default;
};

struct LoadPosition {
  std::string job;       // files and options: another job does not go on here
  bool is_last = false;  // all is loaded
  uint32_t file = 0;
  uint64_t offset = 0;  // in the unpacked file
  uint64_t line = 0;    // 0: the first of the file
  uint64_t rows = 0, rejected = 0;
  uint64_t rejects_bytes = 0;  // of the file that these are written to
  bool refuses_duplicates = false;
};

// Nothing where there is no note, or none that can be read or that fits the table: another one of
// that name, made by a program, may have taken its place.
ExitStatus read_notes(const Database& database, const Table& table,
                      std::optional<TableNotes>* notes);
// As the table's schema has the keys, which a program may have made; nothing where it has none.
std::optional<KeyForm> form_of_schema(const Table& table);
// Nothing, too, where it is of another table of that name, which was there before.
ExitStatus read_position(const Database& database, const Table& table,
                         std::optional<LoadPosition>* position);

// Whether the table is what a restore has left that was killed.
ExitStatus read_restoring(const Database& database, const Table& table, bool* restoring);

// Into the transaction. Makes the table of notes where it is missing.
ExitStatus write_notes(WriteTransaction* transaction, const std::string& table,
                       const TableNotes& notes);
// Null: no load of the table goes on any more.
ExitStatus write_position(WriteTransaction* transaction, const Table& table,
                          const LoadPosition* position);
// What is put into a table that a killed restore has left makes it the user's.
ExitStatus end_restoring(const Database& database, const Table& table,
                         WriteTransaction* transaction);
ExitStatus write_restoring(WriteTransaction* transaction, const Table& table, bool restoring);
// Of a table that has been dropped.
ExitStatus forget_notes(Database* database, const std::string& table);

// not_found, with the tables that there are.
ExitStatus find_table(const Database& database, const std::string& name, Table* table);
// The table, and how its keys are written: as `asked` says (empty: as the notes say; without notes
// keys of a prefix table are prefixes, others of one width hex, and the rest bytes). usage where
// the two do not fit.
ExitStatus open_table(const Database& database, const std::string& name, const std::string& asked,
                      Table* table, KeyForm* key_form);

}  // namespace stride::cli
