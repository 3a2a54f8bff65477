#include "engine/dedup_table.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <utility>

#include "engine/catalog/version.h"
#include "engine/dedup_blocks.h"
#include "engine/result_buffer.h"
#include "gpu/backend.h"
#include "storage/no_throw.h"
#include "storage/process.h"
#include "storage/quoted.h"
#include "storage/vector_block.h"
#include "storage/work_watch.h"

namespace stride {

static_assert(max_block_words == max_vector_words);

struct DedupTable::State {
  State(Database& db, Table t, const DedupOptions& o, std::shared_ptr<Backend> b)
      : database(db), table(std::move(t)), options(o), backend(std::move(b)), blocks(o.words) {}
  ~State();

  // Those that are open, by database and table's id: two of one table would give ids twice.
  using Key = std::pair<const DatabaseIdentity*, uint32_t>;
  static Key key_of(const Table& table) { return {TableParts::database(table).get(), table.id()}; }
  static inline std::mutex open_mutex;
  static inline std::map<Key, std::weak_ptr<State>> open;
  // The one that is open, and not broken; null: none is.
  static std::shared_ptr<State> find_open(const Key& key);
  static void enter(const std::shared_ptr<State>& state);
  // Held while one is made: what it reads nobody else may change.
  static inline std::mutex making_mutex;

  bool is_broken() const {
    const auto lock = shared_lock();
    return !broken.ok();
  }
  // In a forked child another thread of the parent may have it for ever.
  std::shared_lock<std::shared_mutex> shared_lock() const {
    return made_in.is_here() ? std::shared_lock(mutex) : std::shared_lock<std::shared_mutex>();
  }

  mutable std::shared_mutex mutex;  // shared by those that read

  Database& database;
  Table table;
  DedupOptions options;
  std::shared_ptr<Backend> backend;  // outlives the set
  std::unique_ptr<VectorSet> set;
  Status broken;  // not ok: the set is not what the table has
  std::vector<uint64_t> bits, own_ids;
  ResultBuffer<uint64_t> keys;
  ResultBuffer<std::byte> values;
  BlockRowWriter blocks;  // of a compressed table
  ProcessMark made_in;

  uint32_t bytes() const { return options.words * 4; }
  // closed: the set is not what the table has, or its threads are in the parent.
  Status usable() const;
  Status make_set();
  Status fill();
  Status add_stored(const ScanBatch& batch);
  Status add_stored(const KeyColumn& vectors);
  Status put(const KeyColumn& vectors, std::span<uint64_t> ids, std::span<uint64_t> was_new);
  Status write_new(const KeyColumn& vectors, std::span<const uint64_t> ids, uint64_t count);
  Status write_blocks(const KeyColumn& vectors, std::span<const uint64_t> ids, uint64_t count);
  Status commit(const KeyColumn& row_keys, const ValueColumn& rows);
};

namespace {

Status other_rows(const Table& table, uint64_t row, const std::string& what) {
  return Status::invalid("table '" + table.name() + "', row " + std::to_string(row) + ": " + what)
      .with_remedy("open it with the number of words that it has, or under another name");
}

Status check_words(const std::string& table, uint32_t there, uint32_t asked) {
  if (there == asked) return {};
  return Status::invalid("table " + in_quotes(table) + " has vectors of " + std::to_string(there) +
                         " words, not of " + std::to_string(asked))
      .with_remedy("open it with the number of words that it has, or under another name");
}

// The table, which is made where it is missing, with rows as the options say.
Result<Table> open_rows(Database& database, const std::string& name, const DedupOptions& options) {
  if (options.compressed) {
    Status there = database.open_table(name).status();
    if (there.code() == StatusCode::not_found)
      there = create_compressed_table(database, name, options.words, options.durability);
    if (!there.ok() && there.code() != StatusCode::already_exists) return there;
  }
  auto table = database.open_or_create_table(name, {.key_width = sizeof(uint64_t)});
  if (!table.ok()) return table;
  auto head = read_dedup_head(database, *table);
  if (!head.ok()) return head.status();
  if (!*head && options.compressed)
    return Status::invalid("table " + in_quotes(name) + " is no compressed dedup table")
        .with_remedy("open it without `compressed`, or under another name");
  if (*head && !options.compressed)
    return Status::invalid("table " + in_quotes(name) + " is a compressed dedup table")
        .with_remedy("open it with `compressed`, or under another name");
  if (*head) STRIDE_TRY(check_words(name, (*head)->words, options.words));
  return table;
}

}  // namespace

DedupTable::State::~State() {
  if (!made_in.is_here()) return;  // another thread of the parent may have the lock for ever
  std::lock_guard lock(open_mutex);
  auto found = open.find(key_of(table));
  if (found != open.end() && found->second.expired()) open.erase(found);
}

std::shared_ptr<DedupTable::State> DedupTable::State::find_open(const Key& key) {
  std::shared_ptr<State> state;  // outlives the lock, which ~State() takes
  {
    std::lock_guard lock(open_mutex);
    auto found = open.find(key);
    if (found != open.end()) state = found->second.lock();
  }
  return state && !state->is_broken() ? state : nullptr;
}

void DedupTable::State::enter(const std::shared_ptr<State>& state) {
  std::lock_guard lock(open_mutex);
  open[key_of(state->table)] = state;
}

Status DedupTable::State::usable() const {
  return made_in.is_here() ? broken : left_in_parent(table.name());
}

// An empty one, with room for what the table has.
Status DedupTable::State::make_set() {
  const Snapshot snapshot = database.snapshot();
  auto rows = snapshot.count(table);
  if (!rows.ok()) return rows.status();
  uint64_t vectors = *rows;
  if (options.compressed) {
    auto counted = BlockRowReader(table.name(), options.words).count(snapshot, table);
    if (!counted.ok()) return counted.status();
    // A damaged id is more than what all rows may have.
    vectors = std::min(vectors * vectors_of_block(options.words), *counted);
  }
  VectorSetOptions set_options;
  set_options.words = options.words;
  set_options.capacity = std::max(set_options.capacity, vectors);
  auto made = backend->sets().make_vector_set(set_options);
  if (!made.ok()) return made.status();
  set = std::move(*made);
  return {};
}

// The set as the table has it.
Status DedupTable::State::fill() {
  STRIDE_TRY(set->clear());
  auto scan = database.snapshot().scan(table);
  if (!scan.ok()) return scan.status();
  if (options.compressed)
    return BlockRowReader(table.name(), options.words).read(&*scan, [&](const KeyColumn& vectors) {
      return add_stored(vectors);
    });
  ScanBatch batch;
  while (scan->next(&batch)) STRIDE_TRY(add_stored(batch));
  return scan->status();
}

Status DedupTable::State::add_stored(const ScanBatch& batch) {
  const uint64_t rows = batch.keys.size, first = set->size();
  for (uint64_t i = 0; i < rows; ++i) {
    uint64_t id;
    std::memcpy(&id, batch.keys[i].data(), sizeof id);
    id = __builtin_bswap64(id);
    if (id != first + i)
      return other_rows(table, first + i,
                        "has id " + std::to_string(id) + ", where none is missing");
    if (uint64_t has = batch.values[i].size(); has != bytes())
      return other_rows(table, first + i,
                        "has " + std::to_string(has) + " bytes, but vectors of " +
                            std::to_string(options.words) + " words have " +
                            std::to_string(bytes()));
  }
  // Rows of a batch lie one behind the other.
  return add_stored(Column::fixed(batch.values[0].data(), bytes(), rows));
}

Status DedupTable::State::add_stored(const KeyColumn& vectors) {
  const uint64_t end = set->size() + vectors.size;
  STRIDE_TRY(set->find_or_put(vectors, {}, {}));
  if (set->size() == end) return {};
  const std::string twice = "a vector is there twice up to here";
  if (!options.compressed) return other_rows(table, end - 1, twice);
  return damaged_dedup_table(table.name(), "id " + std::to_string(end - 1) + ": " + twice);
}

// Those of the vectors that are new.
Status DedupTable::State::write_new(const KeyColumn& vectors, std::span<const uint64_t> ids,
                                    uint64_t count) {
  if (count == 0) return {};
  if (options.compressed) return write_blocks(vectors, ids, count);
  keys.reset(count);
  values.reset(count * bytes());
  uint64_t at = 0;
  for_each_bit(bits, [&](uint64_t row) {
    keys[at] = __builtin_bswap64(ids[row]);
    std::memcpy(values.data() + at * bytes(), vectors[row].data(), bytes());
    ++at;
  });
  return commit(Column::fixed(keys.data(), sizeof(uint64_t), count),
                Column::fixed(values.data(), bytes(), count));
}

// The block that the first new vector goes into, with what it has, and those that follow.
Status DedupTable::State::write_blocks(const KeyColumn& vectors, std::span<const uint64_t> ids,
                                       uint64_t count) {
  const uint64_t first = set->size() - count, begin = blocks.block_of(first);
  keys.reset(first - begin);
  for (uint64_t i = 0; i < keys.size(); ++i) keys[i] = begin + i;
  values.reset((set->size() - begin) * bytes());
  STRIDE_TRY(set->get({keys.data(), keys.size()}, {values.data(), keys.size() * bytes()}));
  for_each_bit(bits, [&](uint64_t row) {
    std::memcpy(values.data() + (ids[row] - begin) * bytes(), vectors[row].data(), bytes());
  });
  blocks.make(begin, values.data(), set->size() - begin);
  return commit(blocks.keys(), blocks.values());
}

Status DedupTable::State::commit(const KeyColumn& row_keys, const ValueColumn& rows) {
  WriteTransaction transaction = database.begin();
  STRIDE_TRY(transaction.put_view(table, row_keys, rows));
  return transaction.commit(options.durability);
}

Status DedupTable::State::put(const KeyColumn& vectors, std::span<uint64_t> ids,
                              std::span<uint64_t> was_new) {
  STRIDE_TRY(usable());
  const uint64_t first = set->size(), words = (vectors.size + 63) / 64;
  if (!was_new.empty() && was_new.size() != words)
    return Status::invalid("was_new has " + std::to_string(was_new.size()) + " words, but the " +
                           std::to_string(vectors.size) + " vectors need " + std::to_string(words));
  bits.resize(words);
  if (ids.empty()) {
    own_ids.resize(vectors.size);
    ids = own_ids;
  }
  Status s = set->find_or_put(vectors, ids, bits);
  if (s.code() == StatusCode::invalid_argument) return s;
  if (s.ok()) s = no_throw([&] { return write_new(vectors, ids, set->size() - first); });
  if (s.ok()) {
    if (!was_new.empty()) std::memcpy(was_new.data(), bits.data(), words * sizeof(uint64_t));
    return {};
  }
  if (set->size() == first) return s;
  // The set forgets what is not in the table.
  Status again = no_throw([&] { return fill(); });
  if (!again.ok())
    broken = Status(StatusCode::closed, "table '" + table.name() +
                                            "' could not be read again after a failure (" +
                                            again.message() + ")")
                 .with_remedy("open it again");
  return s;
}

DedupTable::DedupTable(std::shared_ptr<State> state) : state_(std::move(state)) {}
DedupTable::DedupTable(DedupTable&&) noexcept = default;
DedupTable& DedupTable::operator=(DedupTable&&) noexcept = default;
DedupTable::~DedupTable() = default;

Result<DedupTable> DedupTable::open(Database& database, const std::string& name,
                                    const DedupOptions& options) {
  if (options.words == 0 || options.words > max_vector_words)
    return Status::invalid("vectors of " + std::to_string(options.words) +
                           " words are not possible: give 1 to " +
                           std::to_string(max_vector_words));
  auto table = no_throw([&] { return open_rows(database, name, options); });
  if (!table.ok()) return table.status();
  std::lock_guard making(State::making_mutex);
  if (auto there = State::find_open(State::key_of(*table))) {
    if (&there->database != &database)
      return Status::invalid("table " + in_quotes(name) +
                             " is open as a dedup table of another handle of this database")
          .with_remedy("use that one, or let it go first");
    STRIDE_TRY(check_words(name, there->options.words, options.words));
    return DedupTable(std::move(there));
  }
  // How many rows it has nobody knows where a segment cannot be read.
  STRIDE_TRY(database.snapshot().scan(*table).status());
  std::shared_ptr<State> state;
  const WorkWatch::Scope watched(WorkWatch::offered());
  STRIDE_TRY(no_throw([&] {
    auto backend = options.backend ? options.backend
                                   : std::shared_ptr<Backend>(Backend::host(options.threads));
    state = make_shared_here<State>(database, *table, options, std::move(backend));
    Status filled = state->make_set();
    if (filled.ok()) filled = state->fill();
    if (filled.ok()) State::enter(state);
    return filled;
  }));
  return DedupTable(std::move(state));
}

Status DedupTable::find_or_put(const KeyColumn& vectors, std::span<uint64_t> ids,
                               std::span<uint64_t> was_new) {
  if (!state_->made_in.is_here()) return left_in_parent(state_->table.name());
  std::lock_guard lock(state_->mutex);
  return no_throw([&] { return state_->put(vectors, ids, was_new); });
}

Status DedupTable::find(const KeyColumn& vectors, std::span<uint64_t> ids) const {
  const auto lock = state_->shared_lock();
  STRIDE_TRY(state_->usable());
  return state_->set->find(vectors, ids);
}

Status DedupTable::get(std::span<const uint64_t> ids, std::span<std::byte> vectors) const {
  const auto lock = state_->shared_lock();
  STRIDE_TRY(state_->usable());
  return state_->set->get(ids, vectors);
}

uint64_t DedupTable::size() const {
  const auto lock = state_->shared_lock();
  return state_->set->size();
}
uint64_t DedupTable::memory_bytes() const {
  const auto lock = state_->shared_lock();
  return state_->set->memory_bytes();
}
uint32_t DedupTable::words() const { return state_->options.words; }
bool DedupTable::compressed() const { return state_->options.compressed; }

}  // namespace stride
