#include "engine/write_transaction.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "engine/catalog/table_options.h"
#include "engine/table_schema.h"
#include "engine/transaction_state.h"
#include "engine/write/collect_deltas.h"
#include "engine/write/values_with_ends.h"
#include "engine/write/watched_work.h"
#include "storage/no_throw.h"

namespace stride {

WriteTransaction::WriteTransaction(std::shared_ptr<State> state) noexcept
    : state_(std::move(state)) {}
WriteTransaction::WriteTransaction(Status why_not) noexcept : why_not_(std::move(why_not)) {}
WriteTransaction::WriteTransaction(WriteTransaction&&) noexcept = default;

WriteTransaction& WriteTransaction::operator=(WriteTransaction&& other) noexcept {
  if (this != &other) {
    abort();
    state_ = std::move(other.state_);
    why_not_ = std::move(other.why_not_);
  }
  return *this;
}

WriteTransaction::~WriteTransaction() { abort(); }

namespace {

Status has_ended() {
  return Status(StatusCode::closed, "the transaction has been committed or aborted")
      .with_remedy("begin another one");
}

Status check_offsets(const KeyColumn& bounds) {
  for (uint64_t i = 0; !bounds.is_fixed() && i < bounds.size; ++i)
    if (bounds.offsets[i + 1] < bounds.offsets[i])
      return Status::invalid("row " + std::to_string(i) + ": the offsets of a bound descend");
  return {};
}

}  // namespace

Status WriteTransaction::State::check_open() const {
  STRIDE_TRY(database->check_process());
  return ended.load(std::memory_order_relaxed) ? has_ended() : Status();
}

Status WriteTransaction::State::begin_change(const Table& table) {
  STRIDE_TRY(check_open());
  STRIDE_TRY(check_identity(table, database->context().identity));
  changed.store(true, std::memory_order_relaxed);
  return {};
}

Result<Table> WriteTransaction::State::open_table(const std::string& name) {
  if (auto created = staging.find_created(name)) {
    auto schema = schemas.find(created->id);
    return database->handle(std::move(created), schema == schemas.end() ? nullptr : schema->second);
  }
  if (const TableRenaming* renaming = staging.find_renamed_to(name)) {
    auto there = database->open_table(renaming->from->name);
    if (!there.ok()) return there;
    return database->handle(renaming->to, TableParts::schema(*there));
  }
  auto there = database->open_table(name);
  if (there.ok() && staging.renames(there->id()))
    return Status(StatusCode::not_found,
                  "the transaction has given table '" + name + "' another name");
  return there;
}

Result<TableRenaming> WriteTransaction::State::rename(const Table& table,
                                                      const std::string& new_name,
                                                      std::vector<NamedNote>* notes,
                                                      std::vector<NamedNote>* stale) const {
  STRIDE_TRY(check_identity(table, database->context().identity));
  STRIDE_TRY(check_table_name(new_name));
  uint32_t commit = 0;
  const auto version = database->current(&commit);
  auto there = version->find(table);
  if (!there.ok()) return there.status();
  const std::shared_ptr<const TableRecord>& record = (*there)->table;
  for (const std::string& name : {record->name, new_name})
    if (name == notes_table_name)
      return Status::invalid("table '" + record->name + "' cannot be renamed to '" + new_name +
                             "': '" + name + "' is where schemas are kept")
          .with_remedy("rename another table, or give another name");
  const TableVersion* other = version->find_name(new_name);
  if (other && !staging.renames(other->table->id))
    return Status(StatusCode::already_exists, "there is a table '" + new_name + "' already")
        .with_file(version->database->path);
  STRIDE_TRY(staging.check_renaming(record->id, record->name, new_name));
  STRIDE_TRY(read_named_notes(version, commit, record->name, notes));
  STRIDE_TRY(read_named_notes(version, commit, new_name, stale));
  auto renamed = std::make_shared<TableRecord>(*record);
  renamed->name = new_name;
  return TableRenaming{record, std::move(renamed)};
}

void WriteTransaction::State::end_change() noexcept {
  if (staging.bytes() < CommitQueue::min_large_bytes) return;
  if (!entered.exchange(true, std::memory_order_relaxed)) database->large_commits().enter(&open);
}

// Calls stage(staging, record) for a table that rows can be staged of.
template <class Stage>
Status WriteTransaction::change(const Table& table, const Stage& stage) {
  return no_throw([&] {
    if (!state_) return absent();
    STRIDE_TRY(state_->begin_change(table));
    STRIDE_TRY(state_->staging.check_takes_rows(*TableParts::record(table)));
    Status s = stage(state_->staging, TableParts::record(table));
    state_->end_change();
    return s;
  });
}

Status WriteTransaction::absent() const {
  if (!why_not_.ok()) return why_not_;
  return Status(StatusCode::closed, "the transaction was moved away, committed or aborted")
      .with_remedy("begin another one");
}

Result<Table> WriteTransaction::create_table(const std::string& name, const TableOptions& options) {
  return no_throw([&]() -> Result<Table> {
    if (!state_) return absent();
    STRIDE_TRY(state_->check_open());
    auto record = state_->database->new_table(name, options, &state_->staging);
    if (!record.ok()) return record.status();
    std::shared_ptr<const Schema> schema;
    if (!options.schema.empty()) schema = std::make_shared<const Schema>(options.schema);
    Table table = state_->database->handle(*record, schema);
    STRIDE_TRY(state_->begin_change(table));
    // The table comes last: where this fails there is at most the schema of an id that nobody has.
    if (schema) STRIDE_TRY(keep_schema(table, schema));
    STRIDE_TRY(state_->staging.create(std::move(*record)));
    return table;
  });
}

Status WriteTransaction::keep_schema(const Table& table,
                                     const std::shared_ptr<const Schema>& schema) {
  auto notes = open_or_create_table(std::string(notes_table_name));
  if (!notes.ok()) return notes.status();
  state_->schemas[table.id()] = schema;
  return put(*notes, schema_key(table.id()), schema->to_string());
}

Result<Table> WriteTransaction::open_or_create_table(const std::string& name,
                                                     const TableOptions& options) {
  return no_throw([&]() -> Result<Table> {
    if (!state_) return absent();
    auto there = state_->open_table(name);
    return there.ok() ? check_same_options(*there, options) : create_table(name, options);
  });
}

namespace {

// Puts what is known of a table under its new name, and erases the rest. Where that fails the old
// name still has all of its notes, for they are erased last and in one call.
Status move_notes(const Table& kept, const std::vector<NamedNote>& notes,
                  const std::vector<NamedNote>& stale, const std::string& old_name,
                  const std::string& new_name, WriteTransaction* transaction) {
  KeyCopies put(0), values(0), erased(0);
  for (const NamedNote& note : notes) {
    put.add(as_bytes(note.kind + new_name));
    values.add(as_bytes(note.value));
    erased.add(as_bytes(note.kind + old_name));
  }
  for (const NamedNote& note : stale) {
    const bool replaced = std::any_of(notes.begin(), notes.end(),
                                      [&](const NamedNote& n) { return n.kind == note.kind; });
    if (!replaced) erased.add(as_bytes(note.kind + new_name));
  }
  STRIDE_TRY(transaction->put(kept, put.column(), values.column()));
  return transaction->erase(kept, erased.column());
}

}  // namespace

Status WriteTransaction::rename_table(const Table& table, const std::string& new_name) {
  return no_throw([&] {
    if (!state_) return absent();
    STRIDE_TRY(state_->check_open());
    std::vector<NamedNote> notes, stale;
    auto renaming = state_->rename(table, new_name, &notes, &stale);
    if (!renaming.ok()) return renaming.status();
    const std::string old_name = renaming->from->name;
    STRIDE_TRY(state_->begin_change(table));
    STRIDE_TRY(state_->staging.rename(std::move(*renaming)));
    if (notes.empty() && stale.empty()) return Status();
    Status moved = no_throw([&]() -> Status {
      auto kept = state_->open_table(std::string(notes_table_name));
      if (!kept.ok()) return kept.status();
      return move_notes(*kept, notes, stale, old_name, new_name, this);
    });
    if (!moved.ok()) state_->staging.undo_rename();
    return moved;
  });
}

Status WriteTransaction::put(const Table& table, const KeyColumn& keys, const ValueColumn& values) {
  return change(table, [&](Staging& staging, const auto& record) {
    STRIDE_TRY(check_row_width(table, values));
    if (!has_time_to_live(*record)) return staging.stage(record, keys, &values);
    ValuesWithEnds ends(*record, values, state_->database->now_is());
    return staging.stage(record, keys, &ends.values());
  });
}

Status WriteTransaction::put(const Table& table, const KeyColumn& keys,
                             std::span<const CellColumn> columns) {
  EncodedRows encoded;
  STRIDE_TRY(encode_rows(table.schema(), columns, &encoded));
  return put(table, keys, encoded.rows);
}

Status WriteTransaction::put_view(const Table& table, const KeyColumn& keys,
                                  const ValueColumn& values) {
  return change(table, [&](Staging& staging, const auto& record) {
    STRIDE_TRY(check_row_width(table, values));
    if (!has_time_to_live(*record)) return staging.stage_view(record, keys, values);
    ValuesWithEnds ends(*record, values, state_->database->now_is());
    return staging.stage(record, keys, &ends.values());
  });
}

Status WriteTransaction::put_if_absent(const Table& table, const KeyColumn& keys,
                                       const ValueColumn& values, std::span<uint64_t> was_new) {
  return change(table, [&](Staging& staging, const auto& record) {
    STRIDE_TRY(check_row_width(table, values));
    if (!has_time_to_live(*record)) return staging.stage_absent(record, keys, values, was_new);
    ValuesWithEnds ends(*record, values, state_->database->now_is());
    return staging.stage_absent(record, keys, ends.values(), was_new);
  });
}

Status WriteTransaction::accumulate(const Table& table, const KeyColumn& keys,
                                    const ValueColumn& deltas) {
  return change(table, [&](Staging& staging, const auto& record) {
    return staging.stage_deltas(record, keys, deltas);
  });
}

Status WriteTransaction::accumulate_view(const Table& table, const KeyColumn& keys,
                                         const ValueColumn& deltas) {
  return change(table, [&](Staging& staging, const auto& record) {
    return staging.stage_delta_view(record, keys, deltas);
  });
}

Status WriteTransaction::accumulate_numbers(const Table& table, const KeyColumn& keys,
                                            NumberType type, const ValueColumn& deltas) {
  return change(table, [&](Staging& staging, const auto& record) {
    if (record->numbers != type && record->numbers != NumberType::none)
      return Status::invalid("deltas of type " + std::string(to_string(type)) +
                             " are given for table '" + record->name +
                             "', which has numbers of type " +
                             std::string(to_string(record->numbers)))
          .with_remedy("give " + std::string(to_string(record->numbers)) + " numbers");
    return staging.stage_deltas(record, keys, deltas);
  });
}

Status WriteTransaction::accumulate(const Table& table, std::string_view key, int64_t delta) {
  const NumberType type = table.numbers();
  const auto narrow = static_cast<int32_t>(delta);
  if (key.size() > max_key_bytes || is_float(type) || (type == NumberType::i32 && narrow != delta))
    return no_throw([&] {
      return Status::invalid("table '" + table.name() + "' of " + std::string(to_string(type)) +
                             ": " + std::to_string(delta) + " cannot be added to a key of " +
                             std::to_string(key.size()) + " bytes")
          .with_remedy(
              "a key has at most 65535 bytes; give numbers of the table's type in a column");
    });
  return accumulate(table, Column::fixed(key.data(), static_cast<uint32_t>(key.size()), 1),
                    type == NumberType::i32 ? Column::fixed(&narrow, sizeof narrow, 1)
                                            : Column::fixed(&delta, sizeof delta, 1));
}

Status WriteTransaction::put(const Table& table, Bytes key, Bytes value) {
  if (key.size() > max_key_bytes || value.size() > max_value_bytes)
    return no_throw([&] {
      return Status::invalid("a key has " + std::to_string(key.size()) + " and its value " +
                             std::to_string(value.size()) +
                             " bytes; at most 65535 and 4294967295 are possible");
    });
  return put(table, Column::fixed(key.data(), static_cast<uint32_t>(key.size()), 1),
             Column::fixed(value.data(), static_cast<uint32_t>(value.size()), 1));
}

Status WriteTransaction::erase(const Table& table, const KeyColumn& keys) {
  return change(table, [&](Staging& staging, const auto& record) {
    return staging.stage(record, keys, nullptr);
  });
}

Status WriteTransaction::erase(const Table& table, Bytes key) {
  if (key.size() > max_key_bytes)
    return no_throw([&] {
      return Status::invalid("a key has " + std::to_string(key.size()) +
                             " bytes; at most 65535 are possible");
    });
  return erase(table, Column::fixed(key.data(), static_cast<uint32_t>(key.size()), 1));
}

Status WriteTransaction::erase_range(const Table& table, std::optional<Bytes> from,
                                     std::optional<Bytes> to) {
  return change(table, [&](Staging& staging, const auto& record) {
    KeyRange range;
    if (from) range.from = as_text(*from);
    if (to) range.to = as_text(*to);
    return staging.stage_ranges(record, {std::move(range)});
  });
}

Status WriteTransaction::erase_ranges(const Table& table, const KeyColumn& from,
                                      const KeyColumn& to) {
  return change(table, [&](Staging& staging, const auto& record) {
    if (from.size != to.size)
      return Status::invalid("the ranges have " + std::to_string(from.size) + " lower and " +
                             std::to_string(to.size) +
                             " upper bounds: give one of each for a range");
    STRIDE_TRY(check_offsets(from));
    STRIDE_TRY(check_offsets(to));
    std::vector<KeyRange> ranges;
    for (uint64_t i = 0; i < from.size; ++i)
      ranges.push_back({std::string(as_text(from[i])), std::string(as_text(to[i]))});
    return staging.stage_ranges(record, std::move(ranges));
  });
}

void WriteTransaction::hand_over() {
  if (state_) state_->staging.hand_over();
}

namespace {

Status commit_watched(CommitRequest* request,
                      const std::function<bool(const CommitProgress&)>& progress,
                      DatabaseImpl* database) {
  if (request->open) database->large_commits().leave(std::exchange(request->open, nullptr));
  request->watched = true;
  CommitProgress now;
  now.total_rows = request->staging->rows();
  now.total_bytes = request->staging->bytes();
  auto goes_on = [&](const WorkWatch& watch) {
    now.share = std::max(now.share, watch.share());
    now.rows = std::max(now.rows, std::min(watch.rows(), now.total_rows));
    now.bytes = std::min(watch.written_bytes(), now.total_bytes);
    return progress(now);
  };
  return run_watched([&](WorkWatch* watch) { return database->commit_watched(request, watch); },
                     goes_on);
}

}  // namespace

namespace {

// A commit, as metrics tell of it.
class CountedCommit {
 public:
  explicit CountedCommit(const Staging& staging)
      : rows_(staging.rows()), bytes_(staging.bytes()), begin_(Clock::now()) {}

  void end(const Status& s, bool small, OperationCounters& counters) const noexcept {
    OperationCounters::Slot& slot = counters.slot();
    if (!s.ok()) return slot.add(Count::failed_commits, 1);
    slot.add(small ? Count::small_commits : Count::large_commits, 1);
    slot.add(Count::committed_rows, rows_);
    slot.add(Count::committed_bytes, bytes_);
    const std::chrono::nanoseconds took = Clock::now() - begin_;
    slot.add_commit_latency(static_cast<uint64_t>(took.count()));
  }

 private:
  using Clock = std::chrono::steady_clock;
  const uint64_t rows_, bytes_;
  const Clock::time_point begin_;
};

// What the commit queue knows of a transaction as `open`. It forgets that when the commit is
// there, or when there is none.
class EnteredCommit {
 public:
  explicit EnteredCommit(WriteTransaction::State* state)
      : state_(*state), is_known_(state->entered) {}
  ~EnteredCommit() {
    if (is_known_) state_.database->large_commits().leave(&state_.open);
  }
  EnteredCommit(const EnteredCommit&) = delete;
  EnteredCommit& operator=(const EnteredCommit&) = delete;
  // Whether a commit is to take the place of `open`, which the queue does then.
  bool hand_over() noexcept { return std::exchange(is_known_, false); }

 private:
  WriteTransaction::State& state_;
  bool is_known_;
};

}  // namespace

Status WriteTransaction::State::commit_once(const CommitOptions& options, Durability wanted,
                                            bool is_known, CommitReport* report, bool* stale) {
  CommitRequest request{.staging = &staging, .durability = wanted};
  if (is_known) request.open = &open;
  PutKeys put_keys{.refuse_equal = options.refuse_equal_keys};
  if (report || options.refuse_equal_keys) request.put_keys = &put_keys;
  request.reads = reads;
  const bool watched = options.progress && database->is_large(request);
  const CountedCommit counted(staging);
  Status s = watched ? commit_watched(&request, options.progress, database.get())
                     : database->commit(&request);
  *stale = request.stale;
  if (!*stale) counted.end(s, request.logged, database->context().identity->monitor->operations());
  if (s.ok() && report) report->keys = std::move(put_keys.keys);
  return s;
}

Status WriteTransaction::commit(std::optional<Durability> durability) {
  return commit(CommitOptions{.durability = durability});
}

Status WriteTransaction::commit(const CommitOptions& options, CommitReport* report) {
  return no_throw([&] {
    if (report) *report = {};
    if (!state_) return absent();
    STRIDE_TRY(state_->database->check_process());
    if (state_->ended.exchange(true)) return has_ended();
    std::shared_ptr<State> state = std::move(state_);
    DatabaseImpl& database = *state->database;
    Durability wanted = options.durability.value_or(database.context().options.durability);
    if (!state->changed) return wanted == Durability::sync ? database.sync() : database.writable();
    EnteredCommit entered(state.get());
    for (bool stale = false;;) {
      if (state->reads && (stale || state->reads->is_worth_a_look()))
        STRIDE_TRY(state->reads->look_ahead([&] { return database.now(); }));
      Status s = state->commit_once(options, wanted, entered.hand_over(), report, &stale);
      if (!stale) return s;
    }
  });
}

void WriteTransaction::abort() {
  if (!state_) return;
  const bool here = state_->database->context().identity->opened_in.is_here();
  if (here && !state_->ended.exchange(true) && state_->entered.load(std::memory_order_relaxed))
    state_->database->large_commits().leave(&state_->open);
  state_.reset();
}

uint64_t WriteTransaction::staged_rows() const { return state_ ? state_->staging.rows() : 0; }

}  // namespace stride
