#include "benchmark/peers/stride_peer.h"

#include <algorithm>
#include <optional>

#include "benchmark/harness/value_refs.h"
#include "engine/database.h"

namespace stride::benchmark {
namespace {

constexpr uint64_t slice_records = 65536;

class StridePeer : public EngineUnderTest {
 public:
  explicit StridePeer(const EngineSettings& settings) : settings_(settings) {}

  Status open() override;
  Status write(const Records& records) override;
  Status read(ReadCheck& check) override { return read_all(check); }
  Status read(FullCheck& check) override { return read_all(check); }
  Status lookup(const KeyColumn& queries, LookupResult* result) override;
  bool gives_references() const override { return true; }
  bool has_many_callers() const override { return true; }
  Status refer(const KeyColumn& queries, FindResult* result) override {
    return snapshot().find(*table_, queries, result);
  }
  Status close() override;
  std::string backend() const override { return database_ ? database_->backend_name() : ""; }

 private:
  Status write_flow(const Flow& flow);
  template <class Check>
  Status read_all(Check& check);
  // The one that is held between writes, as a reading application would.
  const Snapshot& snapshot() {
    if (!snapshot_) snapshot_ = database_->snapshot();
    return *snapshot_;
  }

  EngineSettings settings_;
  std::unique_ptr<Database> database_;
  std::optional<Table> table_;
  std::optional<Snapshot> snapshot_;
};

Status StridePeer::open() {
  Options options = settings_.stride;
  options.durability = settings_.durability;
  options.threads = settings_.threads;
  Result<std::unique_ptr<Database>> database = Database::open(settings_.directory, options);
  if (!database.ok()) return database.status();
  database_ = std::move(*database);
  Result<Table> table = options.read_only ? database_->open_table("records")
                                          : database_->open_or_create_table(
                                                "records", {.key_width = settings_.key_width});
  if (!table.ok()) return table.status();
  table_ = *table;
  return {};
}

Status StridePeer::close() {
  snapshot_.reset();
  table_.reset();
  if (database_ == nullptr) return {};
  Status status = database_->close();
  database_.reset();
  return status;
}

Status StridePeer::write(const Records& records) {
  snapshot_.reset();
  return write_flows(records, [this](const Flow& flow) { return write_flow(flow); });
}

Status StridePeer::write_flow(const Flow& flow) {
  WriteTransaction transaction = database_->begin();
  for (uint64_t at = 0; at < flow.keys.size; at += slice_records) {
    uint64_t n = std::min(slice_records, flow.keys.size - at);
    STRIDE_TRY(transaction.put_view(*table_, flow.keys.slice(at, n), flow.values.slice(at, n)));
  }
  return transaction.commit();
}

// A batch of one is asked with the call for one key, as it is of every engine.
Status StridePeer::lookup(const KeyColumn& queries, LookupResult* result) {
  if (queries.size != 1) return snapshot().get(*table_, queries, result);
  Result<std::optional<Bytes>> value = snapshot().get(*table_, queries[0]);
  if (!value.ok()) return value.status();
  static thread_local ResultBuffer<Bytes> single;
  single.reset(1);
  single[0] = *value ? found_value((*value)->data(), (*value)->size()) : not_found_value;
  gather_few_values(single, result);
  return {};
}

template <class Check>
Status StridePeer::read_all(Check& check) {
  Result<Scan> scan = snapshot().scan(*table_);
  if (!scan.ok()) return scan.status();
  ScanBatch batch;
  while (scan->next(&batch)) check.batch(batch.keys, batch.values);
  return scan->status();
}

}  // namespace

std::vector<EngineConfiguration> stride_configurations() {
  EngineConfiguration c{.engine = "stride",
                        .configuration = "defaults",
                        .description = "default options, a transaction for each flow"};
  c.make = [](const EngineSettings& settings) { return std::make_unique<StridePeer>(settings); };
  return {c};
}

}  // namespace stride::benchmark
