#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "engine/read/cursor_impl.h"
#include "engine/read_write_state.h"

namespace stride {
namespace {

// Keeps what a transaction's cursor passes over as an interval, which grows with each step as long
// as nothing else of the table is read meanwhile.
class TransactionCursorRecord final : public CursorRecord {
 public:
  TransactionCursorRecord(std::shared_ptr<Transaction::State> state, const Table& table,
                          const CursorOptions& options)
      : state_(std::move(state)), table_(table), bounds_(options) {}

  Status move(Cursor::Impl& cursor, CursorMove how, Bytes key) override {
    TransactionCall call(state_.get());
    STRIDE_TRY(call.check());
    const bool is_step = how == CursorMove::next || how == CursorMove::previous;
    if (is_step && !cursor.valid()) return {};
    const Bytes before = cursor.key();
    STRIDE_TRY(cursor.move_rows(how, key));
    const std::optional<Bytes> found = cursor.valid() ? std::optional(cursor.key()) : std::nullopt;
    state_->note(table_, [&](TableReads* reads) {
      if (how == CursorMove::next)
        note_next(before, found, reads);
      else if (how == CursorMove::previous)
        note_previous(before, found, reads);
      else
        note_seek(how, key, found, reads);
    });
    return {};
  }

 private:
  // An end of an interval. key: none where there is no end.
  struct End {
    std::optional<Bytes> key;
    bool is_past = false;  // it lies behind the key

    bool reaches(const End& other) const {
      if (!key) return true;
      if (!other.key) return false;
      const int order = compare(*key, *other.key);
      return order > 0 || (order == 0 && (is_past || !other.is_past));
    }
  };

  End end_of_bounds() const {
    return {bounds_.to ? std::optional(as_bytes(*bounds_.to)) : std::nullopt, false};
  }
  bool is_last(const TableReads& reads) const { return reads.intervals() == intervals_; }

  void add(Bytes from, End to, TableReads* reads) {
    const uint64_t before = reads->intervals();
    intervals_ = none;
    reads->add_interval(from, to.key, to.is_past);
    if (reads->intervals() == before) return;  // there is no key in it
    from_ = from;
    to_ = to;
    intervals_ = reads->intervals();
  }

  void note_seek(CursorMove how, Bytes key, std::optional<Bytes> found, TableReads* reads) {
    sought_.assign(as_text(key));
    const bool forwards = how == CursorMove::seek || how == CursorMove::seek_to_first;
    Bytes from = as_bytes(bounds_.from);
    End to = end_of_bounds();
    if (how == CursorMove::seek && sought_ > bounds_.from) from = as_bytes(sought_);
    if (how == CursorMove::seek_for_previous && to.reaches({as_bytes(sought_), true}))
      to = {as_bytes(sought_), true};
    if (found && forwards) to = {found, true};
    if (found && !forwards) from = *found;
    add(from, to, reads);
  }

  void note_next(Bytes before, std::optional<Bytes> found, TableReads* reads) {
    const End to = found ? End{found, true} : end_of_bounds();
    if (!is_last(*reads)) return add(before, to, reads);
    if (to_.reaches(to)) return;  // it has turned round
    intervals_ = none;
    reads->extend_last_to(to.key, to.is_past);
    to_ = to;
    intervals_ = reads->intervals();
  }

  void note_previous(Bytes before, std::optional<Bytes> found, TableReads* reads) {
    const Bytes from = found.value_or(as_bytes(bounds_.from));
    if (!is_last(*reads)) return add(from, {before, true}, reads);
    if (compare(from_, from) <= 0) return;
    intervals_ = none;
    reads->extend_last_from(from);
    from_ = from;
    intervals_ = reads->intervals();
  }

  static constexpr uint64_t none = UINT64_MAX;

  const std::shared_ptr<Transaction::State> state_;
  const Table table_;
  const CursorBounds bounds_;
  std::string sought_;
  // The interval that grows: the table's last one as long as there are so many. Keys stay where the
  // cursor has found them.
  uint64_t intervals_ = none;
  Bytes from_;
  End to_;
};

}  // namespace

Cursor recorded_cursor(Cursor rows, std::shared_ptr<Transaction::State> state, const Table& table,
                       const CursorOptions& options) {
  Cursor::Impl::of(rows).record_with(
      std::make_unique<TransactionCursorRecord>(std::move(state), table, options));
  return rows;
}

}  // namespace stride
