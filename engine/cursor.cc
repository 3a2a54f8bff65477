#include "engine/cursor.h"

#include <algorithm>
#include <utility>

#include "engine/read/cursor_impl.h"
#include "engine/read/scan_interval.h"
#include "storage/no_throw.h"

namespace stride {

CursorBounds::CursorBounds(const CursorOptions& options)
    : from(options.from.value_or(std::string())), to(options.to) {
  if (!options.prefix) return;
  from = std::max(from, *options.prefix);
  auto end = prefix_end(*options.prefix);
  if (end && (!to || *end < *to)) to = std::move(end);
}

Cursor::Impl::Impl(std::shared_ptr<const Version> version, std::vector<SortedRows> sources)
    : version_(std::move(version)),
      sources_(std::move(sources)),
      merger_(sources_),
      first_(sources_.size()),
      end_(sources_.size()) {}

Status Cursor::Impl::set_bounds(const CursorOptions& options) {
  const CursorBounds bounds(options);
  for (size_t s = 0; s < sources_.size(); ++s) {
    end_[s] = sources_[s].size();
    if (!bounds.from.empty())
      STRIDE_TRY(sources_[s].rank(as_bytes(bounds.from), /*past_equal=*/false, &first_[s]));
    if (bounds.to)
      STRIDE_TRY(sources_[s].rank(as_bytes(*bounds.to), /*past_equal=*/false, &end_[s]));
    end_[s] = std::max(first_[s], end_[s]);
    merger_.set_limits(s, first_[s], end_[s]);
  }
  return {};
}

void Cursor::Impl::move(CursorMove how, Bytes key) {
  if (!status_.ok()) return;
  Status s = record_ ? record_->move(*this, how, key) : move_rows(how, key);
  if (!s.ok()) end_with(std::move(s));
}

Status Cursor::Impl::move_rows(CursorMove how, Bytes key) {
  const bool forwards =
      how == CursorMove::seek || how == CursorMove::seek_to_first || how == CursorMove::next;
  if (how == CursorMove::next || how == CursorMove::previous) {
    if (!valid_) return {};
    if (is_gap_behind_ != forwards) STRIDE_TRY(step(forwards));  // past the entry itself
  } else {
    STRIDE_TRY(set_gaps(how, key));
  }
  return step(forwards);
}

Status Cursor::Impl::set_gaps(CursorMove how, Bytes key) {
  valid_ = false;
  for (size_t s = 0; s < sources_.size(); ++s) {
    uint64_t gap = how == CursorMove::seek_to_first ? first_[s] : end_[s];
    if (how == CursorMove::seek || how == CursorMove::seek_for_previous) {
      STRIDE_TRY(sources_[s].rank(key, /*past_equal=*/how == CursorMove::seek_for_previous, &gap));
      gap = std::clamp(gap, first_[s], end_[s]);
    }
    merger_.set_gap(s, gap);
  }
  return {};
}

Status Cursor::Impl::step(bool forwards) {
  valid_ = false;
  is_gap_behind_ = forwards;
  STRIDE_TRY(forwards ? merger_.next(&entry_) : merger_.previous(&entry_));
  if (!entry_.is_there()) return {};
  STRIDE_TRY(entry_.value(&value_));
  valid_ = true;
  return {};
}

Cursor::Cursor(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
Cursor::Cursor(Cursor&&) noexcept = default;
Cursor& Cursor::operator=(Cursor&&) noexcept = default;
Cursor::~Cursor() = default;

namespace {

void move_cursor(Cursor::Impl* cursor, CursorMove how, Bytes key = {}) noexcept {
  if (!cursor) return;
  Status s = no_throw([&] {
    cursor->move(how, key);
    return Status();
  });
  if (!s.ok()) cursor->end_with(std::move(s));
}

}  // namespace

void Cursor::seek(Bytes key) { move_cursor(impl_.get(), CursorMove::seek, key); }
void Cursor::seek_for_previous(Bytes key) {
  move_cursor(impl_.get(), CursorMove::seek_for_previous, key);
}
void Cursor::seek_to_first() { move_cursor(impl_.get(), CursorMove::seek_to_first); }
void Cursor::seek_to_last() { move_cursor(impl_.get(), CursorMove::seek_to_last); }
void Cursor::next() { move_cursor(impl_.get(), CursorMove::next); }
void Cursor::previous() { move_cursor(impl_.get(), CursorMove::previous); }

bool Cursor::valid() const { return impl_ && impl_->valid(); }
Bytes Cursor::key() const { return impl_->key(); }
Bytes Cursor::value() const { return impl_->value(); }
Status Cursor::status() const {
  if (impl_) return impl_->status();
  return Status(StatusCode::closed, "the cursor was moved away");
}

}  // namespace stride
