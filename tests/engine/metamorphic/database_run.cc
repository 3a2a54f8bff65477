#include "tests/engine/metamorphic/database_run.h"

#include <deque>
#include <latch>
#include <thread>
#include <utility>

#include "tests/engine/metamorphic/answers.h"

namespace stride::test::metamorphic {
namespace {

std::string told(const Status& status) {
  const bool expected = status.ok() || status.code() == StatusCode::not_found ||
                        status.code() == StatusCode::already_exists ||
                        status.code() == StatusCode::invalid_argument;
  return expected ? answer(status.code()) : answer(status.code()) + " (" + status.to_string() + ")";
}

// What several calls must agree on, once; else what each says.
std::string agreed(const std::string& one, const std::string& other) {
  return one == other ? one : "{" + one + " but " + other + "}";
}

std::string get_each(const Snapshot& snapshot, const Table& table, const Reading& reading) {
  std::string found;
  for (const std::string& key : reading.keys) {
    auto one = snapshot.get(table, std::string_view(key));
    if (!one.ok()) return told(one.status());
    found += *one ? answer_value(text(**one)) : answer_none();
  }
  return found;
}

std::string get_batch(const Snapshot& snapshot, const Table& table, const Reading& reading) {
  Rows keys(reading.keys);
  GetResult got;
  if (Status s = snapshot.get(table, keys.column(), &got); !s.ok()) return told(s);
  std::string found;
  for (size_t i = 0; i < reading.keys.size(); ++i)
    found += got.found[i] ? answer_value(text(got.values[i])) : answer_none();
  return found;
}

std::string find_batch(const Snapshot& snapshot, const Table& table, const Reading& reading) {
  Rows keys(reading.keys);
  FindResult result;
  if (Status s = snapshot.find(table, keys.column(), &result); !s.ok()) return told(s);
  std::string found;
  for (size_t i = 0; i < reading.keys.size(); ++i)
    found += result.found[i] ? answer_value(text(result.value(i))) : answer_none();
  return found;
}

std::string lower_bounds(const Snapshot& snapshot, const Table& table, const Reading& reading) {
  Rows keys(reading.keys);
  LowerBoundResult result;
  if (Status s = snapshot.lower_bound(table, keys.column(), &result); !s.ok()) return told(s);
  std::string found;
  for (size_t i = 0; i < reading.keys.size(); ++i)
    found +=
        result.found[i] ? answer_row(text(result.keys[i]), text(result.values[i])) : answer_none();
  return found;
}

std::string rows_of(Result<Scan> scan) {
  if (!scan.ok()) return told(scan.status());
  std::string rows;
  ScanBatch batch;
  while (scan->next(&batch))
    for (uint64_t i = 0; i < batch.keys.size; ++i)
      rows += answer_row(text(batch.keys[i]), text(batch.values[i]));
  return scan->status().ok() ? rows : rows + told(scan->status());
}

std::string rows_one_by_one(const Snapshot& snapshot, const Table& table, const ScanOptions& scan) {
  auto it = snapshot.iterate(table, scan);
  if (!it.ok()) return told(it.status());
  std::string rows;
  for (; it->valid(); it->next()) rows += answer_row(text(it->key()), text(it->value()));
  return it->status().ok() ? rows : rows + told(it->status());
}

std::string match_batch(const Snapshot& snapshot, const Table& table, const Reading& reading) {
  Rows addresses(reading.addresses);
  MatchResult matched;
  if (Status s = snapshot.match(table, addresses.column(), &matched); !s.ok()) return told(s);
  std::string longest;
  for (size_t i = 0; i < reading.addresses.size(); ++i)
    longest += matched.found[i] ? answer_row(text(matched.prefix(i)), text(matched.value(i)))
                                : answer_none();
  return longest;
}

std::string match_each(const Snapshot& snapshot, const Table& table, const Reading& reading) {
  std::string longest;
  for (const std::string& address : reading.addresses) {
    auto one = snapshot.match(table, as_bytes(address));
    if (!one.ok()) return told(one.status());
    longest += *one ? answer_row(text((*one)->key), text((*one)->value)) : answer_none();
  }
  return longest;
}

std::string match_all(const Snapshot& snapshot, const Table& table, const Reading& reading) {
  std::string all;
  for (const std::string& address : reading.addresses) {
    auto entries = snapshot.match_all(table, as_bytes(address));
    if (!entries.ok()) return told(entries.status());
    for (const PrefixEntry& entry : *entries) all += answer_row(text(entry.key), text(entry.value));
    all += ";";
  }
  return all;
}

std::string read_table(const Snapshot& snapshot, const Table& table, const Reading& reading) {
  auto count = snapshot.count(table);
  if (!count.ok()) return told(count.status());
  std::string found = get_each(snapshot, table, reading);
  found = agreed(found, get_batch(snapshot, table, reading));
  found = agreed(found, find_batch(snapshot, table, reading));
  std::string read = std::to_string(*count);
  read += answer_lookups(found, lower_bounds(snapshot, table, reading));
  read += answer_scan(agreed(rows_of(snapshot.scan(table, reading.scan)),
                             rows_one_by_one(snapshot, table, reading.scan)));
  if (!has_prefixes(kind_of(reading.table))) return read;
  const bool inside = !reading.keys.empty();
  return read +
         answer_matches(
             agreed(match_batch(snapshot, table, reading), match_each(snapshot, table, reading)),
             match_all(snapshot, table, reading),
             inside ? rows_of(snapshot.inside(table, as_bytes(reading.keys[0]))) : "");
}

}  // namespace

// Owns what it has staged by reference.
class DatabaseRun::Transaction {
 public:
  explicit Transaction(Database& db) : db_(db), transaction_(db.begin()) {}

  std::string stage(const Step& step) {
    Result<Table> table = open(step);
    if (!table.ok()) return told(table.status());
    if (step.kind == Step::Kind::put || step.kind == Step::Kind::erase)
      return stage_each(step, *table);
    return told(stage_rows(step, *table));
  }

  std::string commit(Durability durability) {
    const Status status = transaction_.commit(durability);
    std::string bits;
    for (const Asked& asked : asked_)
      for (size_t i = 0; i < asked.rows; ++i) bits += asked.words[i / 64] >> i % 64 & 1 ? '1' : '0';
    return told(status) + bits;
  }
  void abort() { transaction_.abort(); }

 private:
  struct Asked {
    size_t rows;
    std::vector<uint64_t> words;
  };

  Result<Table> open(const Step& step) {
    if (created_.contains(step.table)) return created_[step.table];
    if (step.kind != Step::Kind::create) return db_.open_table(table_name(step.table));
    auto table =
        transaction_.open_or_create_table(table_name(step.table), table_options(step.table));
    if (table.ok()) created_[step.table] = *table;
    return table;
  }

  std::string stage_each(const Step& step, const Table& table) {
    std::string answers;
    for (size_t i = 0; i < step.keys.size(); ++i)
      answers +=
          told(step.kind == Step::Kind::put ? transaction_.put(table, step.keys[i], step.values[i])
                                            : transaction_.erase(table, step.keys[i]));
    return answers;
  }

  Status stage_rows(const Step& step, const Table& table) {
    using Kind = Step::Kind;
    auto& [keys, values] = kept_.emplace_back(Rows(step.keys), Rows(step.values));
    switch (step.kind) {
      case Kind::put_view:
        return transaction_.put_view(table, keys.column(), values.column());
      case Kind::erase_column:
        return transaction_.erase(table, keys.column());
      case Kind::erase_range:
        return transaction_.erase_range(table, bound(step.keys[0]), bound(step.values[0]));
      case Kind::erase_ranges:
        return transaction_.erase_ranges(table, keys.column(), values.column());
      case Kind::put_if_absent:
        return put_if_absent(step, table);
      case Kind::accumulate:
        return accumulate(step, table);
      default:
        return transaction_.put(table, keys.column(), values.column());
    }
  }
  static std::optional<Bytes> bound(const std::string& key) {
    return key.empty() ? std::nullopt : std::optional(as_bytes(key));
  }
  Status put_if_absent(const Step& step, const Table& table) {
    Asked& asked = asked_.emplace_back();
    asked.rows = step.keys.size();
    asked.words.resize((asked.rows + 63) / 64);
    Status s = transaction_.put_if_absent(table, kept_.back().first.column(),
                                          kept_.back().second.column(), asked.words);
    if (!s.ok()) asked_.pop_back();
    return s;
  }
  Status accumulate(const Step& step, const Table& table) {
    Rows deltas;
    for (int64_t delta : step.deltas) deltas.add(encode_number(kind_of(step.table), delta));
    return transaction_.accumulate(table, kept_.back().first.column(), deltas.column());
  }

  Database& db_;
  std::deque<std::pair<Rows, Rows>> kept_;
  std::deque<Asked> asked_;
  std::map<int, Table> created_;
  WriteTransaction transaction_;
};

DatabaseRun::DatabaseRun(const OptionSet& set) : set_(set), options_(set.options()) {
  if (set.on_disk) {
    directory_.emplace();
    path_ = directory_->file("db");
  } else {
    options_.file_system = &memory_;
  }
  open();
  for (int table = 0; db_ && table < tables; ++table)
    if (auto made = db_->create_table(table_name(table), table_options(table)); !made.ok())
      failures_ += told(made.status());
}

DatabaseRun::~DatabaseRun() = default;

void DatabaseRun::open() {
  if (db_ && set_.closes)
    if (Status s = db_->close(); !s.ok()) failures_ += " close: " + s.to_string();
  db_.reset();
  auto opened = Database::open(path_, options_);
  if (opened.ok()) {
    db_ = std::move(*opened);
  } else {
    failures_ += " open: " + opened.status().to_string();
  }
}

std::string DatabaseRun::apply(const Operation& operation) {
  const bool reopens = set_.reopen_every && operations_ % set_.reopen_every == 0;
  if (operations_++ && reopens) open();
  if (!failures_.empty()) return failures_;
  switch (operation.kind) {
    case Operation::Kind::commit:
      return commit(operation);
    case Operation::Kind::concurrent:
      return commit_at_once(operation);
    case Operation::Kind::create:
      return told(
          db_->create_table(table_name(operation.table), table_options(operation.table)).status());
    case Operation::Kind::drop:
      return told(db_->drop_table(table_name(operation.table)));
    case Operation::Kind::keep:
      keep(*db_, &kept_[static_cast<size_t>(operation.kept)]);
      return "";
    case Operation::Kind::read:
      return read(operation.reading);
    case Operation::Kind::compact:
      return told(db_->compact());
    case Operation::Kind::sync:
      return told(db_->sync());
    case Operation::Kind::read_only:
      return read_beside();
    case Operation::Kind::drop_before_commit:
      break;
  }
  return drop_before_commit(operation);
}

std::string DatabaseRun::commit(const Operation& operation) {
  std::string answers;
  std::deque<Transaction> open;
  for (const Changes& changes : operation.transactions) {
    Transaction& transaction = open.emplace_back(*db_);
    for (const Step& step : changes.steps) answers += transaction.stage(step);
  }
  for (const Changes& changes : operation.transactions) {
    if (changes.aborted)
      open.front().abort();
    else
      answers += open.front().commit(changes.durability);
    open.pop_front();
  }
  return answers;
}

std::string DatabaseRun::commit_at_once(const Operation& operation) {
  const size_t n = operation.transactions.size();
  std::vector<std::string> staged(n), committed(n);
  std::latch all_here(static_cast<ptrdiff_t>(n));
  std::vector<std::thread> threads;
  for (size_t i = 0; i < n; ++i)
    threads.emplace_back([&, i] {
      Transaction transaction(*db_);
      for (const Step& step : operation.transactions[i].steps) staged[i] += transaction.stage(step);
      all_here.arrive_and_wait();
      committed[i] = transaction.commit(operation.transactions[i].durability);
    });
  for (std::thread& thread : threads) thread.join();
  std::string answers;
  for (const std::string& each : staged) answers += each;
  for (const std::string& each : committed) answers += each;
  return answers;
}

std::string DatabaseRun::drop_before_commit(const Operation& operation) {
  std::string answers;
  Transaction transaction(*db_);
  for (const Step& step : operation.transactions[0].steps) answers += transaction.stage(step);
  answers += told(db_->drop_table(table_name(operation.table)));
  return answers + transaction.commit(operation.transactions[0].durability);
}

// Lists the tables first: they are all in the snapshot, for nobody drops any meanwhile.
void DatabaseRun::keep(const Database& db, Kept* kept) {
  kept->handles.clear();
  for (int table = 0; table < tables; ++table)
    if (auto handle = db.open_table(table_name(table)); handle.ok()) kept->handles[table] = *handle;
  kept->snapshot = db.snapshot();
}

std::string DatabaseRun::read(const Reading& reading) {
  Kept now;
  const Kept* from = &now;
  if (reading.kept)
    from = &kept_[static_cast<size_t>(*reading.kept)];
  else
    keep(*db_, &now);
  auto table = from->handles.find(reading.table);
  if (table == from->handles.end()) return answer(StatusCode::not_found);
  return read_table(*from->snapshot, table->second, reading);
}

std::string DatabaseRun::contents() {
  if (!failures_.empty()) return failures_;
  if (Status s = db_->verify(); !s.ok()) return told(s);
  open();
  if (!failures_.empty()) return failures_;
  return contents_of(*db_);
}

std::string DatabaseRun::contents_of(const Database& db) {
  Kept now;
  keep(db, &now);
  std::string all;
  for (const auto& [table, handle] : now.handles)
    all += table_name(table) + ": " + rows_of(now.snapshot->scan(handle)) + "\n";
  return all;
}

// What is synced is there for others, too.
std::string DatabaseRun::read_beside() const {
  if (Status s = db_->sync(); !s.ok()) return told(s);
  Options options = options_;
  options.read_only = true;
  auto beside = Database::open(path_, options);
  return beside.ok() ? contents_of(**beside) : told(beside.status());
}

}  // namespace stride::test::metamorphic
