#include "engine/transaction.h"

#include <algorithm>
#include <chrono>
#include <random>
#include <utility>

#include "engine/catalog/expired_rows.h"
#include "engine/database.h"
#include "engine/prefixes.h"
#include "engine/read_write_state.h"
#include "engine/snapshot_version.h"
#include "storage/no_throw.h"

namespace stride {
namespace {

// Rows of the first batch of a scan, and of an iterator, which reads one by one.
constexpr uint64_t first_scan_rows = 16;
constexpr uint64_t first_iterator_rows = 1;

Status transaction_has_ended() {
  return Status(StatusCode::closed, "the transaction was moved away, committed or aborted")
      .with_remedy("begin another one");
}

}  // namespace

Transaction::State::State(std::shared_ptr<DatabaseImpl> database)
    : moment(database->now()),
      base(SnapshotVersion::make(moment.version, moment.commit, moment.now)),
      staged(std::make_shared<WriteTransaction::State>()),
      writes(staged) {
  staged->database = std::move(database);
}

Status Transaction::State::update_own() {
  if (staged->staging.rows() == 0) return {};
  if (!own) own.emplace(moment);
  return own->update(&staged->staging);
}

void Transaction::State::end() noexcept {
  ended.store(true, std::memory_order_relaxed);
  own.reset();
  reads.clear();
}

Status TransactionCall::check() const {
  if (!state_)
    return Status::invalid("another thread is using the transaction")
        .with_remedy("give each thread a transaction of its own");
  return state_->ended.load(std::memory_order_relaxed) ? transaction_has_ended() : Status();
}

Transaction::Transaction(std::shared_ptr<State> state) noexcept : state_(std::move(state)) {}
Transaction::Transaction(Status why_not) noexcept : why_not_(std::move(why_not)) {}
Transaction::Transaction(Transaction&&) noexcept = default;

Transaction& Transaction::operator=(Transaction&& other) noexcept {
  if (this != &other) {
    abort();
    state_ = std::move(other.state_);
    why_not_ = std::move(other.why_not_);
  }
  return *this;
}

Transaction::~Transaction() { abort(); }

// Calls call(state), which returns a Status or a Result, as the only thread. A thread's rows come
// behind those of the thread before it.
template <class Call>
auto Transaction::use(const Call& call) {
  return no_throw([&]() -> decltype(call(*state_)) {
    if (!state_) return why_not_.ok() ? transaction_has_ended() : why_not_;
    TransactionCall one_thread(state_.get());
    STRIDE_TRY(one_thread.check());
    if (const auto here = std::this_thread::get_id(); here != state_->last_thread) {
      state_->writes.hand_over();
      state_->last_thread = here;
    }
    return call(*state_);
  });
}

Result<std::optional<Bytes>> Transaction::get(const Table& table, Bytes key) {
  return use([&](State& state) -> Result<std::optional<Bytes>> {
    STRIDE_TRY(state.update_own());
    if (state.own) {
      STRIDE_TRY(check_identity(table, state.moment.version->database));
      if (const TailRow* row = state.own->find(table.id(), key)) {
        const ExpiryCheck expiry = expiry_at(*TableParts::record(table), state.moment.now);
        if (row->kind == EntryKind::tombstone || expiry.hides(row->value()))
          return std::optional<Bytes>();
        return std::optional(row->value());
      }
    }
    auto value = state.base.get(table, key);
    if (value.ok()) state.note(table, [&](TableReads* reads) { reads->add_key(key); });
    return value;
  });
}

namespace {

// What the transaction itself has written depends on nothing that is stored.
void note_keys(const Table& table, const KeyColumn& keys, Transaction::State* state) {
  const bool any_own = state->has_own_rows(table);
  state->note(table, [&](TableReads* reads) {
    reads->reserve_keys(keys.size, keys.bytes());
    for (uint64_t i = 0; i < keys.size; ++i)
      if (!any_own || !state->own->find(table.id(), keys[i])) reads->add_key(keys[i]);
  });
}

}  // namespace

Status Transaction::get(const Table& table, const KeyColumn& queries, GetResult* result) {
  return use([&](State& state) {
    STRIDE_TRY(state.update_own());
    STRIDE_TRY(state.view().get(table, queries, result));
    note_keys(table, queries, &state);
    return Status();
  });
}

Status Transaction::find(const Table& table, const KeyColumn& queries, FindResult* result) {
  return use([&](State& state) {
    STRIDE_TRY(state.update_own());
    STRIDE_TRY(state.view().find(table, queries, result));
    note_keys(table, queries, &state);
    return Status();
  });
}

Status Transaction::lower_bound(const Table& table, const KeyColumn& queries,
                                LowerBoundResult* result) {
  return use([&](State& state) {
    STRIDE_TRY(state.update_own());
    STRIDE_TRY(state.view().lower_bound(table, queries, result));
    state.note(table, [&](TableReads* reads) {
      for (uint64_t i = 0; i < queries.size; ++i) {
        if (result->found[i])
          reads->add_interval(queries[i], result->keys[i], /*past_to=*/true);
        else
          reads->add_interval(queries[i], std::nullopt);
      }
    });
    return Status();
  });
}

Status Transaction::upper_bound(const Table& table, const KeyColumn& queries,
                                LowerBoundResult* result) {
  return use([&](State& state) {
    STRIDE_TRY(state.update_own());
    STRIDE_TRY(state.view().upper_bound(table, queries, result));
    state.note(table, [&](TableReads* reads) {
      std::string behind;  // the query, which is the smallest key above it
      for (uint64_t i = 0; i < queries.size; ++i) {
        behind.assign(as_text(queries[i])).push_back('\0');
        if (result->found[i])
          reads->add_interval(as_bytes(behind), result->keys[i], /*past_to=*/true);
        else
          reads->add_interval(as_bytes(behind), std::nullopt);
      }
    });
    return Status();
  });
}

Status Transaction::previous(const Table& table, const KeyColumn& queries,
                             LowerBoundResult* result) {
  return use([&](State& state) {
    STRIDE_TRY(state.update_own());
    STRIDE_TRY(state.view().previous(table, queries, result));
    state.note(table, [&](TableReads* reads) {
      // What was not found has no bytes, and all keys begin there.
      for (uint64_t i = 0; i < queries.size; ++i)
        reads->add_interval(result->keys[i], queries[i], /*past_to=*/true);
    });
    return Status();
  });
}

Result<Scan> Transaction::scan(const Table& table, const ScanOptions& options) {
  return use([&](State& state) -> Result<Scan> {
    STRIDE_TRY(state.update_own());
    auto rows = state.view().scan(table, options);
    if (!rows.ok()) return rows;
    return recorded_scan(std::move(*rows), state_, table, options, first_scan_rows);
  });
}

// The iterator reads its first row at once, in a call of its own.
Result<Iterator> Transaction::iterate(const Table& table, const ScanOptions& options) {
  auto scan = use([&](State& state) -> Result<Scan> {
    STRIDE_TRY(state.update_own());
    auto rows = state.view().scan(table, options);
    if (!rows.ok()) return rows;
    return recorded_scan(std::move(*rows), state_, table, options, first_iterator_rows);
  });
  if (!scan.ok()) return scan.status();
  return no_throw([&]() -> Result<Iterator> { return Iterator(std::move(*scan)); });
}

Result<Scan> Transaction::inside(const Table& table, Bytes prefix_key) {
  return use([&](State& state) -> Result<Scan> {
    STRIDE_TRY(state.update_own());
    auto rows = state.view().inside(table, prefix_key);
    if (!rows.ok()) return rows;
    auto bounds = scan_inside(prefix_key, table.address_bits());
    if (!bounds.ok()) return bounds.status();
    return recorded_scan(std::move(*rows), state_, table, *bounds, first_scan_rows);
  });
}

Result<Cursor> Transaction::cursor(const Table& table, const CursorOptions& options) {
  return use([&](State& state) -> Result<Cursor> {
    STRIDE_TRY(state.update_own());
    auto rows = state.view().cursor(table, options);
    if (!rows.ok()) return rows;
    return recorded_cursor(std::move(*rows), state_, table, options);
  });
}

Result<uint64_t> Transaction::count(const Table& table) {
  return use([&](State& state) {
    auto counted = [&]() -> Result<uint64_t> {
      STRIDE_TRY(state.update_own());
      return state.view().count(table);
    }();
    if (counted.ok())
      state.note(table, [](TableReads* reads) { reads->add_interval({}, std::nullopt); });
    return counted;
  });
}

Result<uint64_t> Transaction::count(const Table& table, std::optional<Bytes> from,
                                    std::optional<Bytes> to) {
  return use([&](State& state) -> Result<uint64_t> {
    STRIDE_TRY(state.update_own());
    auto counted = state.view().count(table, from, to);
    if (counted.ok())
      state.note(table,
                 [&](TableReads* reads) { reads->add_interval(from.value_or(Bytes()), to); });
    return counted;
  });
}

Status Transaction::count(const Table& table, const KeyColumn& from, const KeyColumn& to,
                          std::span<uint64_t> counts) {
  return use([&](State& state) {
    STRIDE_TRY(state.update_own());
    STRIDE_TRY(state.view().count(table, from, to, counts));
    state.note(table, [&](TableReads* reads) {
      for (uint64_t i = 0; i < from.size; ++i) reads->add_interval(from[i], to[i]);
    });
    return Status();
  });
}

Status Transaction::match(const Table& table, const KeyColumn& addresses, MatchResult* result) {
  return use([&](State& state) {
    STRIDE_TRY(state.update_own());
    STRIDE_TRY(state.view().match(table, addresses, result));
    state.note(table, [&](TableReads* reads) {
      for (uint64_t i = 0; i < addresses.size; ++i)
        reads->add_address(addresses[i], result->lengths[i]);
    });
    return Status();
  });
}

Result<std::optional<PrefixEntry>> Transaction::match(const Table& table, Bytes address) {
  return use([&](State& state) -> Result<std::optional<PrefixEntry>> {
    STRIDE_TRY(state.update_own());
    auto found = state.view().match(table, address);
    if (found.ok())
      state.note(table, [&](TableReads* reads) {
        reads->add_address(address, *found ? (*found)->length : 0);
      });
    return found;
  });
}

Status Transaction::put(const Table& table, const KeyColumn& keys, const ValueColumn& values) {
  return use([&](State& state) { return state.writes.put(table, keys, values); });
}

Status Transaction::put(const Table& table, const KeyColumn& keys,
                        std::span<const CellColumn> columns) {
  return use([&](State& state) { return state.writes.put(table, keys, columns); });
}

Status Transaction::put(const Table& table, Bytes key, Bytes value) {
  return use([&](State& state) { return state.writes.put(table, key, value); });
}

Status Transaction::erase(const Table& table, const KeyColumn& keys) {
  return use([&](State& state) { return state.writes.erase(table, keys); });
}

Status Transaction::erase(const Table& table, Bytes key) {
  return use([&](State& state) { return state.writes.erase(table, key); });
}

Status Transaction::erase_range(const Table& table, std::optional<Bytes> from,
                                std::optional<Bytes> to) {
  return use([&](State& state) { return state.writes.erase_range(table, from, to); });
}

Status Transaction::commit(std::optional<Durability> durability) {
  return commit(CommitOptions{.durability = durability});
}

Status Transaction::commit(const CommitOptions& options, CommitReport* report) {
  return use([&](State& state) {
    if (report) *report = {};
    STRIDE_TRY(state.moment.version->database->check_process());
    state.ended.store(true, std::memory_order_relaxed);
    ReadCheck check(state.reads, state.moment);
    if (!state.reads.empty()) state.staged->reads = &check;
    Status s;
    if (state.staged->changed)
      s = state.lost_reads ? Status::out_of_memory() : state.writes.commit(options, report);
    state.writes.abort();
    state.end();
    return s;
  });
}

// A call that another thread is in goes on with what it has.
void Transaction::abort() {
  if (!state_) return;
  TransactionCall one_thread(state_.get());
  if (!one_thread.is_open()) return;
  state_->writes.abort();
  state_->end();
}

bool Transaction::is_open() const {
  return state_ && !state_->ended.load(std::memory_order_relaxed);
}

uint64_t Transaction::staged_rows() const { return is_open() ? state_->writes.staged_rows() : 0; }

namespace {

// The others have gone on by then, and those who were in each other's way do not meet again.
void wait_a_moment(uint32_t attempt, std::minstd_rand* random) {
  constexpr uint32_t max_doublings = 10;  // about a millisecond
  std::this_thread::yield();
  if (attempt < 2) return;
  const uint32_t most = uint32_t{1} << std::min(attempt, max_doublings);
  std::this_thread::sleep_for(std::chrono::microseconds((*random)() % most));
}

}  // namespace

Status retry(Database& database, const std::function<Status(Transaction&)>& change, uint32_t limit,
             const CommitOptions& options) {
  std::minstd_rand random;
  Status s = Status::invalid("a transaction is to be tried 0 times");
  for (uint32_t attempt = 0; attempt < limit; ++attempt) {
    if (attempt == 0)
      random.seed(static_cast<uint32_t>(std::hash<std::thread::id>()(std::this_thread::get_id())));
    else
      wait_a_moment(attempt, &random);
    Transaction transaction = database.transaction();
    s = change(transaction);
    if (s.ok() && transaction.is_open()) s = transaction.commit(options);
    if (s.code() != StatusCode::conflict) return s;
  }
  return s;
}

}  // namespace stride
