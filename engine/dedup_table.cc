#include "engine/dedup_table.h"

#include <bit>
#include <cstring>
#include <utility>

#include "engine/result_buffer.h"
#include "gpu/backend.h"
#include "storage/no_throw.h"
#include "storage/process.h"

namespace stride {

struct DedupTable::State {
  State(Database& db, Table t, const DedupOptions& o, std::shared_ptr<Backend> b)
      : database(db), table(std::move(t)), options(o), backend(std::move(b)) {}

  Database& database;
  Table table;
  DedupOptions options;
  std::shared_ptr<Backend> backend;  // outlives the set
  std::unique_ptr<VectorSet> set;
  Status broken;  // not ok: the set is not what the table has
  std::vector<uint64_t> bits, own_ids;
  ResultBuffer<uint64_t> keys;
  ResultBuffer<std::byte> values;
  ProcessMark made_in;

  uint32_t bytes() const { return options.words * 4; }
  // closed: the set is not what the table has, or its threads are in the parent.
  Status usable() const;
  Status fill();
  Status add_stored(const ScanBatch& batch);
  Status put(const KeyColumn& vectors, std::span<uint64_t> ids, std::span<uint64_t> was_new);
  Status write_new(const KeyColumn& vectors, std::span<const uint64_t> ids, uint64_t count);
};

namespace {

Status other_rows(const Table& table, uint64_t row, const std::string& what) {
  return Status::invalid("table '" + table.name() + "', row " + std::to_string(row) + ": " + what)
      .with_remedy("open it with the number of words that it has, or under another name");
}

}  // namespace

Status DedupTable::State::usable() const {
  return made_in.is_here() ? broken : left_in_parent(table.name());
}

// The set as the table has it.
Status DedupTable::State::fill() {
  STRIDE_TRY(set->clear());
  auto scan = database.snapshot().scan(table);
  if (!scan.ok()) return scan.status();
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
  KeyColumn vectors = Column::fixed(batch.values[0].data(), bytes(), rows);
  STRIDE_TRY(set->find_or_put(vectors, {}, {}));
  if (set->size() == first + rows) return {};
  return other_rows(table, first + rows - 1, "a vector is there twice up to here");
}

// Those of the vectors that are new.
Status DedupTable::State::write_new(const KeyColumn& vectors, std::span<const uint64_t> ids,
                                    uint64_t count) {
  if (count == 0) return {};
  keys.reset(count);
  values.reset(count * bytes());
  uint64_t at = 0;
  for (uint64_t w = 0; w < bits.size(); ++w) {
    for (uint64_t left = bits[w]; left != 0; left &= left - 1, ++at) {
      uint64_t row = w * 64 + static_cast<uint64_t>(std::countr_zero(left));
      keys[at] = __builtin_bswap64(ids[row]);
      std::memcpy(values.data() + at * bytes(), vectors[row].data(), bytes());
    }
  }
  WriteTransaction transaction = database.begin();
  STRIDE_TRY(transaction.put_view(table, Column::fixed(keys.data(), sizeof(uint64_t), count),
                                  Column::fixed(values.data(), bytes(), count)));
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
  auto table = database.open_or_create_table(name, {.key_width = sizeof(uint64_t)});
  if (!table.ok()) return table.status();
  // How many rows it has nobody knows where a segment cannot be read.
  STRIDE_TRY(database.snapshot().scan(*table).status());
  std::shared_ptr<State> state;
  STRIDE_TRY(no_throw([&] {
    auto backend = options.backend ? options.backend
                                   : std::shared_ptr<Backend>(Backend::host(options.threads));
    state = make_shared_here<State>(database, *table, options, std::move(backend));
    VectorSetOptions set;
    set.words = options.words;
    for (const TableStatistics& t : database.tables())
      if (t.name == name) set.capacity = std::max(set.capacity, t.rows);
    auto made = state->backend->sets().make_vector_set(set);
    if (!made.ok()) return made.status();
    state->set = std::move(*made);
    return state->fill();
  }));
  return DedupTable(std::move(state));
}

Status DedupTable::find_or_put(const KeyColumn& vectors, std::span<uint64_t> ids,
                               std::span<uint64_t> was_new) {
  return no_throw([&] { return state_->put(vectors, ids, was_new); });
}

Status DedupTable::find(const KeyColumn& vectors, std::span<uint64_t> ids) const {
  STRIDE_TRY(state_->usable());
  return state_->set->find(vectors, ids);
}

Status DedupTable::get(std::span<const uint64_t> ids, std::span<std::byte> vectors) const {
  STRIDE_TRY(state_->usable());
  return state_->set->get(ids, vectors);
}

uint64_t DedupTable::size() const { return state_->set->size(); }
uint64_t DedupTable::memory_bytes() const { return state_->set->memory_bytes(); }
uint32_t DedupTable::words() const { return state_->options.words; }

}  // namespace stride
