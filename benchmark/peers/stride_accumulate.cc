#include "benchmark/peers/stride_accumulate.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <unordered_map>

#include "engine/database.h"

namespace stride::benchmark {
namespace {

class StrideAccumulate : public AccumulateEngine {
 public:
  explicit StrideAccumulate(const AccumulateSettings& settings) : settings_(settings) {}

  Status open() override;
  Status load(const KeyColumn& keys, std::span<const int64_t> numbers) override;
  Status accumulate(const KeyColumn& keys, std::span<const int64_t> deltas) override;
  Status read(BulkVector<uint64_t>* keys, BulkVector<int64_t>* numbers) override;
  Status close() override;

 private:
  AccumulateSettings settings_;
  std::unique_ptr<Database> database_;
  std::optional<Table> table_;
};

Status StrideAccumulate::open() {
  Options options;
  options.durability = settings_.durability;
  options.threads = settings_.threads;
  options.backend = settings_.backend;
  Result<std::unique_ptr<Database>> database = Database::open(settings_.directory, options);
  if (!database.ok()) return database.status();
  database_ = std::move(*database);
  Result<Table> table = database_->open_or_create_table("numbers", {.key_width = 8});
  if (!table.ok()) return table.status();
  table_ = *table;
  return {};
}

Status StrideAccumulate::close() {
  table_.reset();
  if (database_ == nullptr) return {};
  Status status = database_->close();
  database_.reset();
  return status;
}

Status StrideAccumulate::load(const KeyColumn& keys, std::span<const int64_t> numbers) {
  WriteTransaction transaction = database_->begin();
  STRIDE_TRY(
      transaction.put_view(*table_, keys, ValueColumn::fixed(numbers.data(), 8, numbers.size())));
  return transaction.commit();
}

Status StrideAccumulate::accumulate(const KeyColumn& keys, std::span<const int64_t> deltas) {
  uint64_t batch = settings_.batch == 0 ? keys.size : settings_.batch;
  for (uint64_t at = 0; at < keys.size; at += batch) {
    uint64_t n = std::min(batch, keys.size - at);
    STRIDE_TRY(
        accumulate_with_stride(database_.get(), *table_, keys.slice(at, n), deltas.subspan(at, n)));
  }
  return {};
}

Status StrideAccumulate::read(BulkVector<uint64_t>* keys, BulkVector<int64_t>* numbers) {
  Result<Scan> scan = database_->snapshot().scan(*table_);
  if (!scan.ok()) return scan.status();
  ScanBatch batch;
  while (scan->next(&batch)) {
    uint64_t first = keys->size(), n = batch.keys.size;
    if (batch.keys.bytes() != 8 * n || batch.values.bytes() != 8 * n)
      return Status(StatusCode::corruption, "a row that is not 8 bytes to 8 bytes");
    keys->resize(first + n);
    numbers->resize(first + n);
    std::memcpy(keys->data() + first, batch.keys[0].data(), 8 * n);
    std::memcpy(numbers->data() + first, batch.values[0].data(), 8 * n);
  }
  return scan->status();
}

std::unique_ptr<AccumulateEngine> make(const AccumulateSettings& settings) {
  return std::make_unique<StrideAccumulate>(settings);
}

}  // namespace

std::vector<AccumulateConfiguration> stride_accumulate_configurations() {
  return {{"stride", "defaults", "reads, adds and puts, a transaction for each batch", true, make}};
}

Status accumulate_with_stride(Database* database, const Table& table, const KeyColumn& keys,
                              std::span<const int64_t> deltas) {
  // Sums of deltas, by key.
  std::unordered_map<uint64_t, uint64_t> rows;
  std::vector<uint64_t> distinct;
  std::vector<int64_t> sums;
  for (uint64_t i = 0; i < keys.size; ++i) {
    uint64_t key;
    std::memcpy(&key, keys[i].data(), sizeof key);
    auto [row, is_new] = rows.try_emplace(key, sums.size());
    if (is_new) {
      distinct.push_back(key);
      sums.push_back(0);
    }
    sums[row->second] = wrapping_sum(sums[row->second], deltas[i]);
  }
  KeyColumn changed = KeyColumn::fixed(distinct.data(), 8, distinct.size());
  GetResult current;
  STRIDE_TRY(database->snapshot().get(table, changed, &current));
  for (uint64_t i = 0; i < changed.size; ++i) {
    if (!current.found[i]) continue;
    int64_t number = 0;
    if (current.values[i].size() != sizeof number)
      return Status::invalid("a value that is not a number of 8 bytes");
    std::memcpy(&number, current.values[i].data(), sizeof number);
    sums[i] = wrapping_sum(sums[i], number);
  }
  WriteTransaction transaction = database->begin();
  STRIDE_TRY(transaction.put_view(table, changed, ValueColumn::fixed(sums.data(), 8, sums.size())));
  return transaction.commit();
}

}  // namespace stride::benchmark
