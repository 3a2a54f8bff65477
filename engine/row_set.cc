#include "engine/row_set.h"

#include <string>

#include "gpu/backend.h"
#include "storage/no_throw.h"

namespace stride {

struct RowSet::State {
  std::unique_ptr<Backend> backend;  // outlives the set
  std::unique_ptr<ByteSet> rows;
};

RowSet::RowSet(std::unique_ptr<State> state) : state_(std::move(state)) {}
RowSet::RowSet(RowSet&&) noexcept = default;
RowSet& RowSet::operator=(RowSet&&) noexcept = default;
RowSet::~RowSet() = default;

Result<RowSet> RowSet::make(unsigned threads) {
  std::unique_ptr<State> state;
  STRIDE_TRY(no_throw([&] {
    state = std::make_unique<State>();
    state->backend = Backend::host(threads);
    auto rows = state->backend->sets().make_byte_set();
    if (rows.ok()) state->rows = std::move(*rows);
    return rows.status();
  }));
  return RowSet(std::move(state));
}

Status RowSet::put(const KeyColumn& rows, std::span<uint64_t> was_new) {
  for (uint64_t i = 0; !rows.is_fixed() && i < rows.size; ++i)
    if (rows.offsets[i + 1] < rows.offsets[i])
      return Status::invalid("row " + std::to_string(i) + ": the offsets descend");
  return no_throw([&] { return state_->rows->find_or_put(rows, {}, was_new); });
}

uint64_t RowSet::size() const { return state_->rows->size(); }
uint64_t RowSet::memory_bytes() const { return state_->rows->memory_bytes(); }

}  // namespace stride
