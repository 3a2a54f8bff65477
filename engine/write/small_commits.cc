#include "engine/write/small_commits.h"

#include <algorithm>
#include <utility>

#include "storage/no_throw.h"
#include "storage/prefetch.h"

namespace stride {

namespace {

// What a process has left in a log is written into the next one up to this size; of more a run is
// made.
constexpr uint64_t max_carried_bytes = 1 << 20;
constexpr uint64_t max_small_commit_bytes = 4 << 20;
// Memtables that are smaller are not worth their segments, however small the database is.
constexpr uint64_t small_log_bytes = 4 << 20;

LogWriter::Reach reach_of(Durability durability) {
  switch (durability) {
    case Durability::sync:
      return LogWriter::Reach::disk;
    case Durability::flush:
      return LogWriter::Reach::system;
    case Durability::none:
      break;
  }
  return LogWriter::Reach::memory;
}

void prefetch_all(Bytes bytes) {
  constexpr size_t line = 64, max_bytes = 1024;
  for (size_t i = 0; i < std::min(bytes.size(), max_bytes); i += line) prefetch(bytes.data() + i);
}

// Its own rows, and those that no other thread has begun to insert.
void insert_together(std::span<CommitRequest* const> requests, uint32_t number) noexcept {
  for (CommitRequest* request : requests) {
    request->number = number++;
    if (requests.size() > 1) request->insertion.offer();
  }
  if (requests.size() == 1) return requests[0]->rows.insert(requests[0]->number);
  for (CommitRequest* request : requests) {
    if (!request->insertion.take()) continue;
    request->rows.insert(request->number);
    request->insertion.finish();
  }
  for (const CommitRequest* request : requests) request->insertion.await_finished();
}

}  // namespace

void add_rows(const StagedTable& table, MemtableRows* rows) {
  for (const auto& chunk : table.chunks)
    if (chunk->rows() > 0) rows->add(&table.table, chunk->keys(), chunk->values(), chunk->kinds());
}

uint64_t staged_bytes(std::span<const StagedTable> tables) {
  uint64_t bytes = 0;
  auto add = [&](const StagedChunk& chunk) {
    bytes += chunk.rows() * sizeof(TailRow) + chunk.keys().bytes() + chunk.values().bytes();
  };
  for (const StagedTable& table : tables) {
    for (const auto& chunk : table.chunks) add(*chunk);
    for (const auto& absent : table.absent) add(*absent->rows);
  }
  return bytes;
}

SmallCommits::SmallCommits(const DatabaseContext& context, VersionSet& versions,
                           UnsyncedFiles& unsynced, Poison& poison,
                           std::function<Status()> flush_failure)
    : context_(context),
      versions_(versions),
      unsynced_(unsynced),
      poison_(poison),
      flush_failure_(std::move(flush_failure)),
      max_commit_bytes_(std::min(max_small_commit_bytes, context.options.memtable_bytes / 8)),
      seal_above_bytes_(context.options.memtable_bytes / 2) {}

SmallCommits::~SmallCommits() = default;

// Prefix tables are matched by what follows their segments alone.
bool SmallCommits::takes(const Staging& staging, std::span<const StagedTable> tables) const {
  if (staging.changes_tables() || staging.adopts() || max_commit_bytes_ == 0) return false;
  for (const StagedTable& table : tables)
    if (table.table->address_bits != 0) return false;
  return staged_bytes(tables) <= max_commit_bytes_;
}

void SmallCommits::prepare(CommitRequest* request) const {
  Staging& staging = *request->staging;
  if (staging.changes_tables() || !staging.has_rows_alone() ||
      staging.bytes() + staging.rows() * sizeof(TailRow) > max_commit_bytes_)
    return;
  staging.for_each_table([&](const StagedTable& table) { add_rows(table, &request->rows); });
}

Status SmallCommits::commit(std::span<CommitRequest* const> requests, Durability durability) {
  STRIDE_TRY(versions_.writable());
  if (std::all_of(requests.begin(), requests.end(), [](auto* r) { return r->rows.rows() == 0; }))
    return durability == Durability::sync ? versions_.sync() : Status();
  STRIDE_TRY(make_room());
  if (!log_) STRIDE_TRY(open_log(durability));
  Memtable& memtable = this->memtable();
  Status s = no_throw([&] {
    for (CommitRequest* request : requests) {
      prefetch_all(request->rows.payload());
      request->rows.reserve(&memtable);
    }
    return write_frame(requests, durability);
  });
  if (!s.ok()) {
    for (const auto& tail : memtable.tails()) tail->drop_reserved();
    memory_bytes_.store(memtable.bytes(), std::memory_order_relaxed);  // what it made stays
    return s;
  }
  insert_together(requests, memtable.next_commit());
  uint64_t rows = rows_.load(std::memory_order_relaxed);
  for (CommitRequest* request : requests) {
    request->rows.keep(request->number);
    rows += request->rows.rows();
  }
  memtable.publish(requests.back()->number);
  rows_.store(rows, std::memory_order_relaxed);
  versions_.set_log_bytes(log_->bytes());
  memory_bytes_.store(memtable.bytes(), std::memory_order_relaxed);
  return {};
}

uint64_t SmallCommits::sealed_bytes(const Version& version) {
  uint64_t bytes = 0;
  for (const SealedMemtable& sealed : version.sealed) bytes += sealed.memory_bytes;
  return bytes;
}

uint64_t SmallCommits::seal_early_above_bytes() const {
  return std::min(seal_above_bytes_, std::max(small_log_bytes, versions_.segment_bytes() / 2));
}

// Where the memtable can't be sealed, for lack of disk space, say, it grows on for a while.
Status SmallCommits::make_room() {
  const uint64_t bytes = memtable().bytes();
  memory_bytes_.store(bytes, std::memory_order_relaxed);  // also what was recovered
  if (bytes <= seal_early_above_bytes()) return {};
  const uint64_t sealed = sealed_bytes(*versions_.current());
  if (bytes <= seal_above_bytes_ && sealed > 0) return {};
  const bool is_full = bytes + sealed > 2 * context_.options.memtable_bytes;
  if (sealed > seal_above_bytes_) return is_full ? flush_failure_() : Status();
  Status s = no_throw([&] { return seal(); });
  return is_full ? s : Status();
}

// What was committed before must survive what this commit survives.
Status SmallCommits::write_frame(std::span<CommitRequest* const> requests, Durability durability) {
  if (durability == Durability::sync) STRIDE_TRY(versions_.sync());
  if (durability == Durability::flush)
    STRIDE_TRY(unsynced_.finish_writes(/*wait=*/true, /*logs=*/true));
  Status s = no_throw([&] {
    std::vector<std::byte>& frame = log_->begin_frame();
    for (const CommitRequest* request : requests) {
      const Bytes payload = request->rows.payload();
      frame.insert(frame.end(), payload.begin(), payload.end());
    }
    return Status();
  });
  if (!s.ok()) {
    log_->drop_frame();
    return s;
  }
  s = log_->end_frame(reach_of(durability), versions_.logged_next_id());
  return log_->poisoned() ? poison_.set(std::move(s)) : s;
}

// Rows that an earlier process has left in a log are read from there until this one writes. Then
// they go into the new log, in one frame, or are sealed, and that log goes.
Status SmallCommits::open_log(Durability durability) {
  if (memtable().bytes() > max_carried_bytes) STRIDE_TRY(seal());
  const bool carries = has_rows_to_carry();
  const Durability reached = carries ? Durability::sync : durability;
  const uint64_t number = versions_.new_id();
  const std::string path = context_.log_path(number);
  const uint64_t position = log_end_.value_or(versions_.recovered_logs().sealed_end);
  auto made = LogWriter::create(*context_.fs, path, number, position);
  if (!made.ok()) return made.status();
  std::shared_ptr<LogWriter> log = std::move(*made);
  log->count_in(context_.identity->monitor->log());
  PendingEdit pending(unsynced_);
  pending.only_moves_rows = true;
  pending.edit.created_logs.push_back(log->record());
  // Logs that an earlier process left unsealed have gone further.
  if (versions_.synced_logs() > position) pending.edit.synced_logs = position;
  Status s = no_throw([&] {
    for (const LogRecord& old : versions_.logs())
      if (old.run == 0) pending.edit.removed_logs.push_back(old.number);
    if (carries) STRIDE_TRY(carry_over(log.get()));
    if (reached == Durability::sync)
      STRIDE_TRY(log->reach(LogWriter::Reach::disk));
    else
      unsynced_.add_file(path);
    unsynced_.add_log(log);
    return versions_.apply(*versions_.current(), &pending, reached);
  });
  if (!s.ok()) {
    if (log->poisoned()) s = poison_.set(std::move(s));
    unsynced_.drop_log(number);
    log.reset();
    if (!poison_.is_set()) Status ignored = no_throw([&] { return context_.fs->remove(path); });
    return s;
  }
  log_ = std::move(log);
  return {};
}

bool SmallCommits::has_rows_to_carry() const {
  const auto version = versions_.current();
  return !memtable().empty() && std::ranges::any_of(memtable().tails(), [&](const auto& tail) {
    return version->find(tail->table()->id) != nullptr;
  });
}

// Rows of tables that have been dropped meanwhile stay behind.
Status SmallCommits::carry_over(LogWriter* log) {
  const auto version = versions_.current();
  LogRowsEncoder out(&log->begin_frame());
  for (const auto& tail : memtable().tails()) {
    if (!version->find(tail->table()->id)) continue;
    out.begin(tail->table()->id);
    TableTail::Cursor cursor(*tail);
    while (const TailRow* row = cursor.next(memtable().visible()))
      out.add(row->kind, row->key(), row->value());
    out.end();
  }
  return log->end_frame(LogWriter::Reach::disk, versions_.logged_next_id());
}

// The log stays with the unsynced files until segments have its rows.
Status SmallCommits::seal() {
  auto version = versions_.current();
  if (!version->memtable || version->memtable->empty()) return {};
  STRIDE_TRY(versions_.writable());
  PendingEdit pending(unsynced_);
  pending.only_moves_rows = true;
  pending.memtable = std::make_shared<Memtable>();
  pending.sealed = {versions_.new_id(), version->memtable, version->memtable->bytes(),
                    versions_.log_bytes()};
  for (const LogRecord& log : versions_.logs())
    if (log.run == 0) pending.edit.sealed_logs.push_back({log.number, pending.sealed.run});
  STRIDE_TRY(versions_.apply(*version, &pending, Durability::none));
  versions_.set_log_bytes(0);
  log_end_ = log_ ? log_->position() : versions_.recovered_logs().end;
  log_.reset();
  sealed_total_.fetch_add(memory_bytes(), std::memory_order_relaxed);
  memory_bytes_.store(0, std::memory_order_relaxed);
  seals_.fetch_add(1, std::memory_order_relaxed);
  return {};
}

bool SmallCommits::has_rows_of(std::span<const StagedTable> tables) const {
  auto version = versions_.current();
  return version->memtable &&
         std::any_of(tables.begin(), tables.end(), [&](const StagedTable& table) {
           return version->memtable->find(table.table->id) != nullptr;
         });
}

}  // namespace stride
