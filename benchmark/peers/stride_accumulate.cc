#include "benchmark/peers/stride_accumulate.h"

#include <algorithm>
#include <cstring>
#include <optional>

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
  Result<Table> table = database_->open_or_create_table(
      "numbers", {.key_width = 8, .numbers = NumberType::i64, .overflow = Overflow::wrap});
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
    WriteTransaction transaction = database_->begin();
    STRIDE_TRY(transaction.accumulate(*table_, keys.slice(at, n), deltas.subspan(at, n)));
    STRIDE_TRY(transaction.commit());
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
  return {{"stride", "defaults", "a transaction for each batch", true, make}};
}

}  // namespace stride::benchmark
