#include "benchmark/workloads/ycsb/client.h"

#include <algorithm>

namespace stride::benchmark {
namespace {

Status wrong(const std::string& what, uint64_t record) {
  return Status(StatusCode::corruption,
                "wrong answer: " + what + " (record " + std::to_string(record) + ")");
}

// Times work() as the call of an operation.
template <class Work>
Status timed_call(Operation operation, YcsbCall* call, const Work& work) {
  call->operation = operation;
  const YcsbClock::time_point begin = YcsbClock::now();
  Status status = work();
  call->end = YcsbClock::now();
  call->nanoseconds = static_cast<uint64_t>((call->end - begin).count());
  return status;
}

// Checks the rows that one scan visits; the first that is wrong is kept.
class RowChecks {
 public:
  explicit RowChecks(const YcsbRecords& records) : records_(records) {}

  void visit(Bytes key, Bytes value) {
    uint64_t record = 0;
    if (status_.ok() && !records_.check_row(key, value, &record))
      status_ = wrong("a scan visits a row that no one has written", record);
    if (status_.ok() && visited_ > 0 &&
        as_text(key) <= std::string_view(last_.text, YcsbKey::bytes))
      status_ = wrong("the rows of a scan are not in the order of their keys", record);
    if (!status_.ok()) return;
    std::copy_n(reinterpret_cast<const char*>(key.data()), YcsbKey::bytes, last_.text);
    if (visited_++ == 0) first_record_ = record;
    last_record_ = record;
    visited_loaded_ += record < records_.loaded();
  }
  // Counts the records that were loaded, for those are there all the time.
  Status check_none_is_missing(bool to_the_end) const {
    uint64_t between = records_.loaded_from(first_record_);
    if (!to_the_end)
      between -= records_.loaded_from(last_record_) - (last_record_ < records_.loaded());
    if (visited_loaded_ == between) return {};
    return wrong("a scan visits " + std::to_string(visited_loaded_) + " of " +
                     std::to_string(between) + " rows",
                 first_record_);
  }
  const Status& status() const { return status_; }
  uint64_t visited() const { return visited_; }
  uint64_t first_record() const { return first_record_; }

 private:
  const YcsbRecords& records_;
  Status status_;
  YcsbKey last_{};
  uint64_t visited_ = 0, visited_loaded_ = 0, first_record_ = 0, last_record_ = 0;
};

double theta_if(const KeyChoice& keys, KeyDistribution distribution) {
  return keys.distribution == distribution ? keys.theta : 0;
}

}  // namespace

RecordChooser::RecordChooser(const YcsbClientOptions& options, const YcsbRecords& records)
    : options_(options),
      records_(records),
      zipf_(records.loaded(), theta_if(options.keys, KeyDistribution::zipf)),
      latest_(records.loaded(), theta_if(options.keys, KeyDistribution::latest)) {}

uint64_t RecordChooser::draw(uint64_t number, uint64_t random_bits) {
  if (options_.mix.rewrites) {
    const uint64_t round = number / records_.loaded();
    return RandomOrder(records_.loaded(), options_.seed + round)[number % records_.loaded()];
  }
  switch (options_.keys.distribution) {
    case KeyDistribution::uniform:
      return below(random_bits, records_.visible());
    case KeyDistribution::zipf:
      return zipf_[random_bits];
    case KeyDistribution::latest:
      break;
  }
  return latest_.draw(random_bits, records_.visible());
}

YcsbClient::YcsbClient(SmallStore* store, YcsbRecords* records, const YcsbClientOptions& options,
                       unsigned thread)
    : store_(store),
      records_(records),
      options_(options),
      chooser_(options, *records),
      seed_(scramble(options.seed * YcsbRecords::max_threads + thread + 1)) {}

Status YcsbClient::run(uint64_t number, YcsbCall* call) {
  const Operation operation = options_.mix.draw(random_bits());
  if (operation == Operation::insert) return insert(call);
  const uint64_t record = chooser_.draw(number, random_bits());
  switch (operation) {
    case Operation::update:
      return update(record, call);
    case Operation::scan:
      return scan(record, 1 + below(random_bits(), options_.max_scan_rows), call);
    case Operation::read_modify_write:
      return read_modify_write(record, call);
    default:
      return read(record, call);
  }
}

Status YcsbClient::read(uint64_t record, YcsbCall* call) {
  const YcsbKey key = records_->key(record);
  const uint32_t oldest = records_->oldest(record);
  STRIDE_TRY(timed_call(Operation::read, call, [&] { return store_->get(key.view(), &value_); }));
  if (records_->check(record, oldest, as_bytes(value_))) return {};
  return wrong("a read finds another value than was written", record);
}

Status YcsbClient::update(uint64_t record, YcsbCall* call) {
  const YcsbKey key = records_->key(record);
  const YcsbWrite write = records_->begin_write(record);
  records_->make_value(record, write.version, &value_);
  STRIDE_TRY(timed_call(Operation::update, call,
                        [&] { return store_->put(key.view(), as_bytes(value_)); }));
  records_->end_write(record, write);
  return {};
}

Status YcsbClient::insert(YcsbCall* call) {
  const uint64_t record = records_->begin_insert();
  if (record == records_->capacity())
    return Status(StatusCode::resource_exhausted, "there is no room for more records")
        .with_remedy("give fewer --seconds or --operations");
  const YcsbKey key = records_->key(record);
  const YcsbWrite write = records_->begin_write(record);
  records_->make_value(record, write.version, &value_);
  STRIDE_TRY(timed_call(Operation::insert, call,
                        [&] { return store_->put(key.view(), as_bytes(value_)); }));
  records_->end_insert(record, write);
  return {};
}

Status YcsbClient::read_modify_write(uint64_t record, YcsbCall* call) {
  const YcsbKey key = records_->key(record);
  const uint32_t oldest = records_->oldest(record);
  std::string found;
  YcsbWrite write{};
  STRIDE_TRY(timed_call(Operation::read_modify_write, call, [&]() -> Status {
    Status status = store_->get(key.view(), &found);
    if (!status.ok()) return status;
    write = records_->begin_write(record);
    records_->make_value(record, write.version, &value_);
    return store_->put(key.view(), as_bytes(value_));
  }));
  records_->end_write(record, write);
  if (records_->check(record, oldest, as_bytes(found))) return {};
  return wrong("a read finds another value than was written", record);
}

Status YcsbClient::scan(uint64_t record, uint64_t rows, YcsbCall* call) {
  const YcsbKey key = records_->key(record);
  RowChecks checks(*records_);
  STRIDE_TRY(timed_call(Operation::scan, call, [&] {
    return store_->scan(key.view(), rows,
                        [&](Bytes row_key, Bytes value) { checks.visit(row_key, value); });
  }));
  STRIDE_TRY(checks.status());
  if (checks.visited() == 0 || checks.visited() > rows || checks.first_record() != record)
    return wrong("a scan does not begin with the row that it asks for", record);
  const bool to_the_end = checks.visited() < rows;
  // Counting what lies between costs about as much as a short scan.
  if (!to_the_end && random_bits() % 8 != 0) return {};
  return checks.check_none_is_missing(to_the_end);
}

Status check_all_records(SmallStore* store, const YcsbRecords& records) {
  RowChecks checks(records);
  Status stale;
  STRIDE_TRY(store->scan({}, UINT64_MAX, [&](Bytes key, Bytes value) {
    checks.visit(key, value);
    uint64_t record = 0;
    if (!stale.ok() || !records.check_row(key, value, &record)) return;
    if (!records.check(record, records.oldest(record), value))
      stale = wrong("an old value is there after reopening", record);
  }));
  STRIDE_TRY(checks.status());
  STRIDE_TRY(std::move(stale));
  if (checks.visited() == records.visible()) return {};
  return Status(StatusCode::corruption,
                "wrong answer: there are " + std::to_string(checks.visited()) +
                    " records after reopening, and not " + std::to_string(records.visible()));
}

}  // namespace stride::benchmark
