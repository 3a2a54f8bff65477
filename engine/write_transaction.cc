#include "engine/write_transaction.h"

#include "engine/database_impl.h"
#include "engine/no_throw.h"
#include "engine/transaction_state.h"

namespace stride {

WriteTransaction::WriteTransaction(std::shared_ptr<State> state) : state_(std::move(state)) {}
WriteTransaction::WriteTransaction(WriteTransaction&&) noexcept = default;

WriteTransaction& WriteTransaction::operator=(WriteTransaction&& other) noexcept {
  if (this != &other) {
    abort();
    state_ = std::move(other.state_);
  }
  return *this;
}

WriteTransaction::~WriteTransaction() { abort(); }

Status WriteTransaction::State::enter(const Table& table) {
  if (ended.load(std::memory_order_relaxed))
    return Status(StatusCode::closed, "the transaction has been committed or aborted")
        .with_remedy("begin another one");
  if (!DatabaseImpl::record(table)) return Status::invalid("the table handle is empty");
  if (!entered.exchange(true, std::memory_order_relaxed)) database->queue.enter(&staging);
  return {};
}

namespace {

Status moved_away() { return Status(StatusCode::closed, "the transaction was moved away"); }

Status check_offsets(const KeyColumn& bounds) {
  for (uint64_t i = 0; !bounds.is_fixed() && i < bounds.size; ++i)
    if (bounds.offsets[i + 1] < bounds.offsets[i])
      return Status::invalid("row " + std::to_string(i) + ": the offsets of a bound descend");
  return {};
}

}  // namespace

Status WriteTransaction::put(const Table& table, const KeyColumn& keys, const ValueColumn& values) {
  if (!state_) return moved_away();
  STRIDE_TRY(state_->enter(table));
  return state_->staging.stage(DatabaseImpl::record(table), keys, &values);
}

Status WriteTransaction::put_view(const Table& table, const KeyColumn& keys,
                                  const ValueColumn& values) {
  if (!state_) return moved_away();
  STRIDE_TRY(state_->enter(table));
  return state_->staging.stage_view(DatabaseImpl::record(table), keys, values);
}

Status WriteTransaction::put_if_absent(const Table& table, const KeyColumn& keys,
                                       const ValueColumn& values, std::span<uint64_t> was_new) {
  if (!state_) return moved_away();
  STRIDE_TRY(state_->enter(table));
  return state_->staging.stage_absent(DatabaseImpl::record(table), keys, values, was_new);
}

Status WriteTransaction::accumulate(const Table& table, const KeyColumn& keys,
                                    const ValueColumn& deltas) {
  if (!state_) return moved_away();
  STRIDE_TRY(state_->enter(table));
  return state_->staging.stage_deltas(DatabaseImpl::record(table), keys, deltas);
}

Status WriteTransaction::accumulate_numbers(const Table& table, const KeyColumn& keys,
                                            NumberType type, const ValueColumn& deltas) {
  if (table.numbers() != type && table.numbers() != NumberType::none)
    return Status::invalid("deltas of type " + std::string(to_string(type)) +
                           " are given for table '" + table.name() +
                           "', which has numbers of type " +
                           std::string(to_string(table.numbers())))
        .with_remedy("give " + std::string(to_string(table.numbers())) + " numbers");
  return accumulate(table, keys, deltas);
}

Status WriteTransaction::accumulate(const Table& table, std::string_view key, int64_t delta) {
  const NumberType type = table.numbers();
  const auto narrow = static_cast<int32_t>(delta);
  if (key.size() > max_key_bytes || is_float(type) || (type == NumberType::i32 && narrow != delta))
    return Status::invalid("table '" + table.name() + "' of " + std::string(to_string(type)) +
                           ": " + std::to_string(delta) + " cannot be added to a key of " +
                           std::to_string(key.size()) + " bytes")
        .with_remedy("a key has at most 65535 bytes; give numbers of the table's type in a column");
  return accumulate(table, Column::fixed(key.data(), static_cast<uint32_t>(key.size()), 1),
                    type == NumberType::i32 ? Column::fixed(&narrow, sizeof narrow, 1)
                                            : Column::fixed(&delta, sizeof delta, 1));
}

Status WriteTransaction::put(const Table& table, Bytes key, Bytes value) {
  if (key.size() > max_key_bytes || value.size() > max_value_bytes)
    return Status::invalid("a key has " + std::to_string(key.size()) + " and its value " +
                           std::to_string(value.size()) +
                           " bytes; at most 65535 and 4294967295 are possible");
  return put(table, Column::fixed(key.data(), static_cast<uint32_t>(key.size()), 1),
             Column::fixed(value.data(), static_cast<uint32_t>(value.size()), 1));
}

Status WriteTransaction::erase(const Table& table, const KeyColumn& keys) {
  if (!state_) return moved_away();
  STRIDE_TRY(state_->enter(table));
  return state_->staging.stage(DatabaseImpl::record(table), keys, nullptr);
}

Status WriteTransaction::erase(const Table& table, Bytes key) {
  if (key.size() > max_key_bytes)
    return Status::invalid("a key has " + std::to_string(key.size()) +
                           " bytes; at most 65535 are possible");
  return erase(table, Column::fixed(key.data(), static_cast<uint32_t>(key.size()), 1));
}

Status WriteTransaction::erase_range(const Table& table, std::optional<Bytes> from,
                                     std::optional<Bytes> to) {
  if (!state_) return moved_away();
  STRIDE_TRY(state_->enter(table));
  return no_throw([&] {
    KeyRange range;
    if (from) range.from = as_text(*from);
    if (to) range.to = as_text(*to);
    return state_->staging.stage_ranges(DatabaseImpl::record(table), {std::move(range)});
  });
}

Status WriteTransaction::erase_ranges(const Table& table, const KeyColumn& from,
                                      const KeyColumn& to) {
  if (!state_) return moved_away();
  STRIDE_TRY(state_->enter(table));
  if (from.size != to.size)
    return Status::invalid("the ranges have " + std::to_string(from.size) + " lower and " +
                           std::to_string(to.size) + " upper bounds: give one of each for a range");
  STRIDE_TRY(check_offsets(from));
  STRIDE_TRY(check_offsets(to));
  return no_throw([&] {
    std::vector<KeyRange> ranges;
    for (uint64_t i = 0; i < from.size; ++i)
      ranges.push_back({std::string(as_text(from[i])), std::string(as_text(to[i]))});
    return state_->staging.stage_ranges(DatabaseImpl::record(table), std::move(ranges));
  });
}

void WriteTransaction::hand_over() {
  if (state_) state_->staging.hand_over();
}

Status WriteTransaction::commit(std::optional<Durability> durability) {
  if (!state_ || state_->ended.exchange(true))
    return Status(StatusCode::closed, "the transaction has been committed or aborted")
        .with_remedy("begin another one");
  DatabaseImpl& database = *state_->database;
  CommitRequest request{
      &state_->staging, durability.value_or(database.options.durability), {}, false};
  if (!state_->entered) return database.writable();
  Status s = database.queue.commit(
      &request, [&](const std::vector<CommitRequest*>& group) { database.commit_group(group); });
  state_.reset();
  return s;
}

void WriteTransaction::abort() {
  if (!state_) return;
  if (!state_->ended.exchange(true) && state_->entered.load(std::memory_order_relaxed))
    state_->database->queue.leave(&state_->staging);
  state_.reset();
}

uint64_t WriteTransaction::staged_rows() const { return state_ ? state_->staging.rows() : 0; }

}  // namespace stride
