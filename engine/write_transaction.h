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
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "engine/options.h"
#include "engine/table.h"
#include "storage/column.h"
#include "storage/export.h"
#include "storage/status.h"

namespace stride {

// put, put_view, put_if_absent, erase, erase_range and erase_ranges may be called from several
// threads at once; commit and abort from one, when none of them is under way.
class STRIDE_API WriteTransaction {
 public:
  struct STRIDE_INTERNAL State;
  explicit WriteTransaction(std::shared_ptr<State> state);
  WriteTransaction(WriteTransaction&&) noexcept;
  WriteTransaction& operator=(WriteTransaction&&) noexcept;
  ~WriteTransaction();  // aborts what was not committed

  // Row i of keys gets row i of values; both are copied. invalid_argument (nothing is staged then):
  // key too long or of the wrong width, value too long, columns of different sizes.
  Status put(const Table& table, const KeyColumn& keys, const ValueColumn& values);
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

  // Erasing a key that is not there is fine.
  Status erase(const Table& table, const KeyColumn& keys);
  Status erase(const Table& table, Bytes key);
  Status erase(const Table& table, std::string_view key) { return erase(table, as_bytes(key)); }

  // Erases the keys of [from, to): those that are there when this is committed, and those that the
  // transaction has put before. Bounds may be of any length; null: no bound. The commit reads the
  // table's keys there and stages each, so it costs as much as erasing them one by one.
  Status erase_range(const Table& table, std::optional<Bytes> from, std::optional<Bytes> to);
  // The same for the ranges of all rows: from[i] to to[i]. invalid_argument: columns of different
  // sizes, or offsets that descend.
  Status erase_ranges(const Table& table, const KeyColumn& from, const KeyColumn& to);

  // Changes that are made from now on come after all so far, whichever thread makes them: for a
  // thread that goes on with what another has begun. Call it when no change is under way.
  void hand_over();

  // Ends the transaction. When it fails nothing of it is visible, now or after reopening: no_space
  // and resource_exhausted may be tried again with a new transaction; poisoned asks for reopening.
  // corruption: keys that were to be put if absent, or to be erased, met damaged bytes.
  Status commit(std::optional<Durability> durability = std::nullopt);
  void abort();

  uint64_t staged_rows() const;

 private:
  std::shared_ptr<State> state_;
};

}  // namespace stride
