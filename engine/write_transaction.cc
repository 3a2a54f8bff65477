#include "engine/write_transaction.h"

#include "engine/database_impl.h"
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

Status WriteTransaction::commit(std::optional<Durability> durability) {
  if (!state_ || state_->ended.exchange(true))
    return Status(StatusCode::closed, "the transaction has been committed or aborted")
        .with_remedy("begin another one");
  DatabaseImpl& database = *state_->database;
  CommitRequest request{&state_->staging, durability.value_or(database.options.durability), {},
                        false};
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
