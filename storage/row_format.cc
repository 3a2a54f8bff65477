#include "storage/row_format.h"

#include <algorithm>

namespace stride {

bool RowReader::read(Bytes row) {
  row_ = row;
  const uint32_t fixed = schema_->fixed_bytes();
  if (row.size() < fixed) return false;
  const std::vector<uint32_t>& variable = schema_->variable();
  if (variable.empty()) return row.size() == fixed;
  const std::byte* end = row.data() + row.size();
  const std::byte* at = row.data() + fixed;
  uint64_t sum = 0;
  for (size_t i = 0; i + 1 < variable.size(); ++i) {
    uint64_t length = 0;
    at = read_length(at, end, &length);
    if (!at) return false;
    begins_[variable[i]] = sum;
    sum += length;
  }
  begins_[variable.back()] = sum;
  const auto heap = static_cast<uint64_t>(at - row.data());
  if (heap + sum > row.size()) return false;
  for (size_t i = 0; i < variable.size(); ++i) {
    begins_[variable[i]] += heap;
    if (i != 0) ends_[variable[i - 1]] = begins_[variable[i]];
  }
  ends_[variable.back()] = row.size();
  return true;
}

void RowWriter::clear() {
  std::fill(fixed_.begin(), fixed_.end(), std::byte{0});
  std::fill(views_.begin(), views_.end(), Bytes());
}

void RowWriter::set_null(size_t column) {
  views_[column] = {};
  if (const uint32_t width = schema_->width(column))
    std::memset(fixed_.data() + schema_->offset(column), 0, width);
  const uint32_t bit = schema_->valid_bit(column);
  if (bit != Schema::no_bit) fixed_[bit / 8] &= ~(std::byte{1} << (bit % 8));
}

uint64_t RowWriter::size() const {
  const std::vector<uint32_t>& variable = schema_->variable();
  uint64_t bytes = fixed_.size();
  for (size_t i = 0; i < variable.size(); ++i) {
    const uint64_t length = views_[variable[i]].size();
    bytes += length + (i + 1 < variable.size() ? length_bytes(length) : 0);
  }
  return bytes;
}

std::byte* RowWriter::write(std::byte* to) const {
  const std::vector<uint32_t>& variable = schema_->variable();
  if (!fixed_.empty()) std::memcpy(to, fixed_.data(), fixed_.size());
  to += fixed_.size();
  for (size_t i = 0; i + 1 < variable.size(); ++i)
    to = write_length(views_[variable[i]].size(), to);
  for (uint32_t column : variable) {
    const Bytes cell = views_[column];
    if (!cell.empty()) std::memcpy(to, cell.data(), cell.size());
    to += cell.size();
  }
  return to;
}

Bytes RowWriter::bytes() {
  row_.resize(size());
  write(row_.data());
  return row_;
}

}  // namespace stride
