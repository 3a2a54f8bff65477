#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "engine/read/scan_impl.h"
#include "engine/read/scan_interval.h"
#include "engine/read_write_state.h"

namespace stride {
namespace {

// The bounds as an interval: keys from `from` on and below `to`.
struct Bounds {
  std::string from;
  std::optional<std::string> to;

  explicit Bounds(const ScanOptions& options) {
    // Of all keys the next one has a zero at the end.
    if (options.from) from = *options.from + (options.from_inclusive ? "" : std::string(1, '\0'));
    if (options.to) to = *options.to + (options.to_inclusive ? std::string(1, '\0') : "");
    if (!options.prefix) return;
    from = std::max(from, *options.prefix);
    auto end = prefix_end(*options.prefix);
    if (end && (!to || *end < *to)) to = std::move(end);
  }
};

// Hands out the batches of a scan in pieces, so that a reader who stops early has not read much.
class RecordedScan final : public Scan::Impl {
 public:
  RecordedScan(Scan rows, std::shared_ptr<Transaction::State> state, const Table& table,
               const ScanOptions& options, uint64_t min_rows)
      : rows_(std::move(rows)),
        state_(std::move(state)),
        table_(table),
        reverse_(options.reverse),
        grows_(options.batch_rows == 0),
        piece_rows_(grows_ ? min_rows : options.batch_rows),
        left_(options) {}

  bool next(ScanBatch* batch) override {
    TransactionCall call(state_.get());
    status_ = call.check();
    if (!status_.ok() || !fill()) return false;
    const uint64_t n = std::min(batch_.keys.size - at_, piece_rows_);
    *batch = {batch_.keys.slice(at_, n), batch_.values.slice(at_, n)};
    at_ += n;
    if (grows_) piece_rows_ *= 2;
    note(batch->keys[n - 1]);
    return true;
  }

 private:
  bool fill() {
    if (at_ < batch_.keys.size) return true;
    if (ended_) return false;
    at_ = 0;
    if (rows_.next(&batch_)) return true;
    ended_ = true;
    status_ = rows_.status();
    if (status_.ok()) note_left();
    return false;
  }
  // All up to this key, which comes last, was read.
  void note(Bytes key) {
    const std::optional<Bytes> to =
        left_.to ? std::optional(as_bytes(*left_.to)) : std::nullopt;
    state_->note(table_, [&](TableReads* reads) {
      if (reverse_)
        reads->add_interval(key, to);
      else
        reads->add_interval(as_bytes(left_.from), key, /*past_to=*/true);
    });
    if (reverse_) {
      left_.to = std::string(as_text(key));
    } else {
      left_.from = std::string(as_text(key)) + '\0';
    }
  }
  void note_left() {
    state_->note(table_, [&](TableReads* reads) {
      reads->add_interval(as_bytes(left_.from),
                          left_.to ? std::optional(as_bytes(*left_.to)) : std::nullopt);
    });
  }

  Scan rows_;
  const std::shared_ptr<Transaction::State> state_;
  const Table table_;
  const bool reverse_, grows_;
  uint64_t piece_rows_;
  Bounds left_;      // of what is still to be read
  ScanBatch batch_;  // of rows_: from at_ on they are still to be handed out
  uint64_t at_ = 0;
  bool ended_ = false;
};

}  // namespace

Scan recorded_scan(Scan rows, std::shared_ptr<Transaction::State> state, const Table& table,
                   const ScanOptions& options, uint64_t min_rows) {
  return Scan(std::make_unique<RecordedScan>(std::move(rows), std::move(state), table, options,
                                             min_rows));
}

}  // namespace stride
