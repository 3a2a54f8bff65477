// A set of changes that becomes visible and durable as a whole or not at all.
//
//   WriteTransaction t = database->begin();
//   Status s = t.put(ticks, keys, values);        // columns, copied
//   if (s.ok()) s = t.put(ticks, "key", "value");
//   if (s.ok()) s = t.erase(ticks, "old key");
//   if (s.ok()) s = t.commit();                   // durable when it returns
//
// Any number of transactions may be open at once, each staging in memory without waiting for
// another; commits that arrive together become one run. There are no reads inside a transaction
// and no conflicts: of two commits that change a key the later one wins. Within a transaction the
// last change of a key wins; of changes that several threads make, any may.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "engine/options.h"
#include "engine/row_columns.h"
#include "engine/table.h"
#include "storage/column.h"
#include "storage/export.h"
#include "storage/number.h"
#include "storage/status.h"

namespace stride {

// How far a commit is.
struct CommitProgress {
  double share = 0;  // of the time that it takes, about, from 0 to 1; never less than before
  // Rows that are in files, of those that were staged, and bytes of files that are written, of
  // about as many. Where rows replace each other, neither comes to all.
  uint64_t rows = 0, total_rows = 0;
  uint64_t bytes = 0, total_bytes = 0;
};

struct CommitOptions {
  std::optional<Durability> durability;  // none: the database's
  // commit() is already_exists, and names a key, where two rows of a table that are put have the
  // same one. Nothing is committed then.
  bool refuse_equal_keys = false;
  // Watches a commit that is too large for the log, and ends it where it returns false: commit() is
  // `cancelled` then, some tenths of a second later, and nothing of it is there. From the moment on
  // at which it is committed it ends with `ok`, whatever is returned.
  //
  // Called by the thread that calls commit(), at once and then at least every 50 ms until it has
  // returned false or the commit ends; never for a small one. Another thread does the work, which
  // goes on however long the callback takes, so that it may use the database. An exception counts
  // as false, and becomes a part of the status. The commit makes runs of its own.
  std::function<bool(const CommitProgress&)> progress{};
};

// What a commit has written.
struct CommitReport {
  // How many distinct keys were put, sums included, by the table's name. Tables without have none.
  std::map<std::string, uint64_t> keys;
};

// put, put_view, put_if_absent, accumulate, accumulate_view, erase, erase_range and erase_ranges
// may be called from several threads at once; the others from one, when none of them is under way.
class STRIDE_API WriteTransaction {
 public:
  struct STRIDE_INTERNAL State;
  explicit WriteTransaction(std::shared_ptr<State> state) noexcept;
  explicit WriteTransaction(Status why_not) noexcept;  // there is none: what its calls return
  WriteTransaction(WriteTransaction&&) noexcept;
  WriteTransaction& operator=(WriteTransaction&&) noexcept;
  ~WriteTransaction();  // aborts what was not committed

  // A table that is there once this is committed, and only then: with its first rows, or not at
  // all. Until then the handle serves this transaction alone; if that fails or is aborted, it is as
  // that of a dropped table. already_exists, also at the commit, where another one was faster;
  // invalid_argument: a bad name or options.
  Result<Table> create_table(const std::string& name, const TableOptions& options = {});
  // The table that is there, or that this transaction has created, or a new one as above.
  // invalid_argument where it is there with other options.
  Result<Table> open_or_create_table(const std::string& name, const TableOptions& options = {});

  // Gives a table another name once this is committed, and nothing else: its rows, its id, its
  // schema and what `stride` remembers of it stay, handles go on naming it, and older snapshots
  // read it. Names that tables give up are free for those that are renamed or created afterwards,
  // so that a table can take the place of another one in one step. already_exists: another table
  // has the name, or the transaction has renamed this one before; not_found: the table is not
  // there, also at the commit, where another one has renamed it meanwhile; invalid_argument: a bad
  // name, or `.stride`. Until the manifest is written anew, older versions refuse the database
  // (unsupported_version).
  Status rename_table(const Table& table, const std::string& new_name);

  // Row i of keys gets row i of values; both are copied. invalid_argument (nothing is staged then):
  // key too long or of the wrong width, value too long, columns of different sizes.
  Status put(const Table& table, const KeyColumn& keys, const ValueColumn& values);
  // For a table with a schema: the cells of its columns, in their order (engine/row_columns.h). As
  // encode_rows(), too.
  Status put(const Table& table, const KeyColumn& keys, std::span<const CellColumn> columns);
  // The same without a copy, for bulk loads: the columns' memory must stay as it is until commit()
  // has returned or the transaction is gone.
  Status put_view(const Table& table, const KeyColumn& keys, const ValueColumn& values);
  Status put(const Table& table, Bytes key, Bytes value);
  Status put(const Table& table, std::string_view key, std::string_view value) {
    return put(table, as_bytes(key), as_bytes(value));
  }
  // Puts those rows whose key is not there, for loads that keep what is: row i counts where neither
  // the table as it is when this is committed nor a row before it has its key. Keys and values are
  // copied. These rows come after all other changes of the transaction, whichever was called first:
  // a key that it also puts is not new, one that it erases is. Of several calls, the rows of an
  // earlier one (of the same thread) come first.
  //
  // was_new: empty, or (keys.size + 63) / 64 words, of this call alone: all 0 until commit() has
  // returned, which sets bit i if row i was put, and no bit if it fails. They must stay until then,
  // or until the transaction is gone. invalid_argument: as put(), or another number of words.
  Status put_if_absent(const Table& table, const KeyColumn& keys, const ValueColumn& values,
                       std::span<uint64_t> was_new = {});

  // Adds to numbers, of a table of numbers (TableOptions::numbers): row i adds deltas[i] to what
  // keys[i] has. A key that is not there, or was erased, has 0. Keys and deltas are copied. The
  // order of calls counts as it does for put and erase: after a put the sum is of what was put;
  // deltas that a later put or erasure of their key follows are of no account. Rows of equal keys
  // add up, in whatever order and by whichever thread.
  //
  // The commit decides: it groups the rows by key, looks each key up once, and puts the sums. So it
  // takes part in all that a commit is (whole or not at all, durable, and one after the other), and
  // what it wrote is numbers like any other. Integers are exact: what has to fit is the sum as it
  // is in the end; where it does not, commit() is invalid_argument and names the key
  // (Overflow::error), or the sum wraps.
  //
  // Floats are added as ScatterMode::reproducible does (gpu/scatter_add.h): all that a transaction
  // adds to a table at once, with the same bits for any order of its rows, any number of threads
  // and any machine. Each delta is cut to a multiple of a quantum, 2^-64 or less (with up to a
  // billion rows) of the largest finite one of the transaction and table: give numbers that are
  // farther apart than that in transactions of their own.
  //
  // invalid_argument (nothing is staged then): as put(), values that are no numbers of the table's
  // type or width, or a table of bytes.
  Status accumulate(const Table& table, const KeyColumn& keys, const ValueColumn& deltas);
  Status accumulate(const Table& table, const KeyColumn& keys, std::span<const int32_t> deltas) {
    return accumulate_numbers(table, keys, NumberType::i32, column_of(deltas));
  }
  Status accumulate(const Table& table, const KeyColumn& keys, std::span<const int64_t> deltas) {
    return accumulate_numbers(table, keys, NumberType::i64, column_of(deltas));
  }
  Status accumulate(const Table& table, const KeyColumn& keys, std::span<const float> deltas) {
    return accumulate_numbers(table, keys, NumberType::f32, column_of(deltas));
  }
  Status accumulate(const Table& table, const KeyColumn& keys, std::span<const double> deltas) {
    return accumulate_numbers(table, keys, NumberType::f64, column_of(deltas));
  }
  // The same without a copy, as put_view().
  Status accumulate_view(const Table& table, const KeyColumn& keys, const ValueColumn& deltas);
  // For a table of i32 or i64.
  Status accumulate(const Table& table, std::string_view key, int64_t delta);

  // Erasing a key that is not there is fine.
  Status erase(const Table& table, const KeyColumn& keys);
  Status erase(const Table& table, Bytes key);
  Status erase(const Table& table, std::string_view key) { return erase(table, as_bytes(key)); }

  // Erases the keys of [from, to): those that are there when this is committed, and those that the
  // transaction has put before. Bounds may be of any length; null: no bound. Of many keys the
  // commit notes where they lie in each segment, which costs the same whatever their number, and
  // merges drop them behind; each of few (Options::max_range_tombstones), and of those that are in
  // memory only, is erased as erase() does, as all are in a table of prefixes. Older versions
  // refuse a database with such notes (unsupported_version).
  Status erase_range(const Table& table, std::optional<Bytes> from, std::optional<Bytes> to);
  // The same for the ranges of all rows: from[i] to to[i]. invalid_argument: columns of different
  // sizes, or offsets that descend.
  Status erase_ranges(const Table& table, const KeyColumn& from, const KeyColumn& to);

  // Makes the rows that other databases have in their table of this name a part of this one once
  // this is committed, newer than all that is there: their segments are copied, several at once and
  // every block checked, and neither sorted nor built again. So a load that several processes or
  // machines have carried out, each into a database of its own and each with a range of keys, ends
  // as one database. The databases are read, and stay as they are; rows that are committed there
  // after this call are not seen. They have to be there until commit() has returned.
  //
  // Each of them has the table with the same options and the same schema, and its rows in segments
  // alone, none of them erased: that is so after one bulk load, and after compact() and close(). A
  // table without rows adds nothing. The ranges of keys of all segments are disjoint.
  //
  // This opens them and looks at what they say of themselves; commit() copies, and is corruption,
  // with the file, where a segment is damaged. invalid_argument, which names the database: a table
  // of other options, rows that are not in segments or that are erased, ranges of keys that
  // overlap, this database itself, `.stride`, or a table whose rows the transaction changes
  // otherwise, too. not_found: there is no such database or table. As opening them, too. Nothing of
  // the call is staged then.
  Status adopt(const Table& table, std::span<const std::string> databases);

  // Changes that are made from now on come after all so far, whichever thread makes them: for a
  // thread that goes on with what another has begun. Call it when no change is under way.
  void hand_over();

  // Ends the transaction. With Durability::sync all that was committed before survives a power loss
  // too once this returns, also where the transaction changed nothing.
  //
  // When it fails nothing of it is visible, now or after reopening: no_space
  // and resource_exhausted may be tried again with a new transaction; poisoned asks for reopening.
  // cancelled: CommitOptions::progress has returned false.
  // corruption: keys that were to be put if absent, added to, or erased, met damaged bytes.
  Status commit(std::optional<Durability> durability = std::nullopt);
  // For bulk loads: the same, with options, and says what was written once it has succeeded. Where
  // equal keys are refused, or a report is wanted, it makes runs of its own, however few its rows
  // are.
  Status commit(const CommitOptions& options, CommitReport* report = nullptr);
  void abort();

  uint64_t staged_rows() const;

 private:
  template <class T>
  static ValueColumn column_of(std::span<const T> numbers) {
    return Column::fixed(numbers.data(), sizeof(T), numbers.size());
  }
  Status accumulate_numbers(const Table& table, const KeyColumn& keys, NumberType type,
                            const ValueColumn& deltas);

  template <class Stage>
  Status change(const Table& table, const Stage& stage);
  Status absent() const;
  // Keeps the schema of a table that this creates.
  Status keep_schema(const Table& table, const std::shared_ptr<const Schema>& schema);

  std::shared_ptr<State> state_;  // null: moved away, ended, or why_not_
  Status why_not_;
};

}  // namespace stride
