#include <algorithm>
#include <optional>

#include "benchmark/peers/small_store.h"
#include "engine/database.h"
#include "engine/transaction.h"

namespace stride::benchmark {
namespace {

class StrideSmallStore : public SmallStore {
 public:
  explicit StrideSmallStore(const SmallStoreSettings& settings) : settings_(settings) {}

  Status open() override {
    Result<std::unique_ptr<Database>> database = Database::open(
        settings_.directory, {.durability = settings_.durability, .threads = settings_.threads});
    if (!database.ok()) return database.status();
    database_ = std::move(*database);
    Result<Table> table = database_->open_or_create_table("records");
    if (!table.ok()) return table.status();
    table_ = *table;
    return {};
  }
  Status put(Bytes key, Bytes value) override {
    WriteTransaction transaction = database_->begin();
    STRIDE_TRY(transaction.put(*table_, key, value));
    return transaction.commit();
  }
  Status put_all(std::span<const SmallRecord> records) override {
    WriteTransaction transaction = database_->begin();
    for (const SmallRecord& record : records)
      STRIDE_TRY(transaction.put(*table_, record.key, record.value));
    return transaction.commit();
  }
  Status erase(Bytes key) override {
    WriteTransaction transaction = database_->begin();
    STRIDE_TRY(transaction.erase(*table_, key));
    return transaction.commit();
  }
  Status get(Bytes key, std::string* value) override {
    Snapshot snapshot = database_->snapshot();
    Result<std::optional<Bytes>> found = snapshot.get(*table_, key);
    if (!found.ok()) return found.status();
    value->assign(found->has_value() ? as_text(**found) : std::string_view());
    return {};
  }
  Status scan(Bytes from, uint64_t count, const RowVisitor& visit) override {
    ScanOptions options;
    options.from = as_text(from);
    if (count < max_batch_rows) options.batch_rows = static_cast<uint32_t>(count);
    Result<Scan> scan = database_->snapshot().scan(*table_, options);
    if (!scan.ok()) return scan.status();
    ScanBatch batch;
    while (count > 0 && scan->next(&batch)) {
      const uint64_t rows = std::min(count, batch.keys.size);
      for (uint64_t i = 0; i < rows; ++i) visit(batch.keys[i], batch.values[i]);
      count -= rows;
    }
    return scan->status();
  }
  Status transact(std::span<const Bytes> keys, size_t written, const ValueChange& change,
                  bool* conflict) override {
    Transaction transaction = database_->transaction();
    std::vector<std::string> values(keys.size());
    for (size_t i = 0; i < keys.size(); ++i) {
      Result<std::optional<Bytes>> found = transaction.get(*table_, keys[i]);
      if (!found.ok()) return found.status();
      if (found->has_value()) values[i] = as_text(**found);
    }
    change(values);
    for (size_t i = 0; i < written; ++i)
      STRIDE_TRY(transaction.put(*table_, keys[i], as_bytes(values[i])));
    Status s = transaction.commit();
    *conflict = s.code() == StatusCode::conflict;
    return *conflict ? Status() : s;
  }
  Status close() override {
    table_.reset();
    if (!database_) return {};
    Status s = database_->close();
    database_.reset();
    return s;
  }

 private:
  static constexpr uint64_t max_batch_rows = 4096;

  SmallStoreSettings settings_;
  std::unique_ptr<Database> database_;
  std::optional<Table> table_;
};

std::unique_ptr<SmallStore> make_stride_store(const SmallStoreSettings& settings) {
  return std::make_unique<StrideSmallStore>(settings);
}

}  // namespace

std::vector<SmallStoreConfiguration> stride_small_stores() {
  return {{"stride", "defaults", "a transaction for each put, a snapshot for each get",
           make_stride_store}};
}

}  // namespace stride::benchmark
