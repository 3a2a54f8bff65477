#include "engine/salvage/recovered_rows.h"

#include <optional>
#include <utility>

#include "storage/number.h"
#include "storage/prefix_key.h"
#include "storage/work_watch.h"

namespace stride {
namespace {

constexpr uint64_t rows_between_checks = 1 << 16;

class RowRecovery {
 public:
  RowRecovery(const SegmentSurvey& survey, const SegmentRecord& record, const TableRecord& table,
              std::vector<LostRows>* lost)
      : survey_(survey), record_(record), table_(table), lost_(*lost) {}

  RecoveredRows run() {
    found_.keys = survey_.layout().keys;
    found_.values = survey_.layout().values;
    if (found_.values.column.fixed) found_.nothing.resize(found_.values.column.width);
    found_.ranks.reserve(survey_.rows());
    found_.tombstones.reserve(survey_.rows());
    for (uint64_t row = 0; row < survey_.rows(); ++row) {
      if (row % rows_between_checks == 0 && !WorkWatch::check().ok()) throw StopRequested();
      if (!record_.erased.empty() && record_.erased.contains(row)) continue;
      if (!take(row)) lose(row);
    }
    tell_lost();
    return std::move(found_);
  }

 private:
  // False: it is lost, at least in part.
  bool take(uint64_t row) {
    Bytes key, value;
    EntryKind kind = EntryKind::tombstone;
    if (!survey_.find_key(row, &key) || !fits(key)) return false;
    const bool has_kind = survey_.find_kind(row, &kind);
    const bool is_put =
        has_kind && kind == EntryKind::put && survey_.find_value(row, &value) && fits_value(value);
    found_.ranks.push_back(static_cast<uint32_t>(row));
    found_.tombstones.push_back(!is_put);
    return is_put || (has_kind && kind == EntryKind::tombstone);
  }
  // Else somebody has made the file so, and the table would not take the row.
  bool fits(Bytes key) const {
    if (table_.key_width != 0 && key.size() != table_.key_width) return false;
    if (table_.address_bits != 0 && !is_prefix_key(key, table_.address_bits)) return false;
    return found_.ranks.empty() || compare(found_.key(found_.ranks.size() - 1), key) < 0;
  }
  bool fits_value(Bytes value) const {
    return table_.numbers == NumberType::none || value.size() == width_of(table_.numbers);
  }

  void lose(uint64_t row) {
    if (!open_.empty() && row == open_.end) {
      ++open_.end;
      return;
    }
    tell_lost();
    open_ = {row, row + 1};
  }
  void tell_lost() {
    if (open_.empty()) return;
    LostRows lost{.table = table_.name, .file = survey_.path(), .rows = open_.end - open_.first};
    std::optional<Bytes> from, to;
    survey_.find_bounds(open_, &from, &to);
    if (from) lost.first_key = std::string(as_text(*from));
    if (to) lost.last_key = std::string(as_text(*to));
    lost.why = "blocks are damaged";
    lost_.push_back(std::move(lost));
    open_ = {};
  }

  const SegmentSurvey& survey_;
  const SegmentRecord& record_;
  const TableRecord& table_;
  std::vector<LostRows>& lost_;
  RecoveredRows found_;
  RowInterval open_;  // rows that are lost, up to the last one seen
};

}  // namespace

RecoveredRows recover_rows(const SegmentSurvey& survey, const SegmentRecord& record,
                           const TableRecord& table, std::vector<LostRows>* lost) {
  return RowRecovery(survey, record, table, lost).run();
}

}  // namespace stride
