#include "tests/engine/metamorphic/model_run.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "tests/engine/metamorphic/answers.h"
#include "tests/support/prefix_model.h"

namespace stride::test::metamorphic {
namespace {

__extension__ typedef __int128 Wide;

// A table in a transaction: its rows, and sums that are looked at when all is there.
struct Staged {
  Model rows;
  std::map<std::string, Wide> sums;
  std::vector<const Step*> absent;

  bool has(const std::string& key) const { return rows.contains(key) || sums.contains(key); }
  void put(const std::string& key, const std::string& value) {
    sums.erase(key);
    rows[key] = value;
  }
  void erase(const std::string& key) {
    sums.erase(key);
    rows.erase(key);
  }
  void erase_range(const std::string& from, const std::string& to) {
    auto inside = [&](const auto& entry) {
      return entry.first >= from && (to.empty() || entry.first < to);
    };
    std::erase_if(rows, inside);
    std::erase_if(sums, inside);
  }
  void add(TableKind kind, const std::string& key, int64_t delta) {
    auto [sum, is_new] = sums.try_emplace(key, 0);
    auto row = rows.find(key);
    if (is_new && row != rows.end()) sum->second = decode_number(kind, row->second);
    sum->second += delta;
  }
  bool finish(TableKind kind) {
    for (const auto& [key, sum] : sums) {
      const bool fits =
          sum >= std::numeric_limits<int64_t>::min() && sum <= std::numeric_limits<int64_t>::max();
      if (kind == TableKind::i64 && !fits) return false;
      rows[key] = encode_number(kind, static_cast<int64_t>(sum));
    }
    sums.clear();
    return true;
  }
};

bool fit_width(const Step& step) {
  const uint32_t width = table_options(step.table).key_width;
  return std::all_of(step.keys.begin(), step.keys.end(),
                     [&](const std::string& key) { return !width || key.size() == width; });
}

std::string lookups(const Model& rows, const Reading& reading) {
  std::string found, bounds;
  for (const std::string& key : reading.keys) {
    auto row = rows.find(key);
    found += row == rows.end() ? answer_none() : answer_value(row->second);
    auto bound = rows.lower_bound(key);
    bounds += bound == rows.end() ? answer_none() : answer_row(bound->first, bound->second);
  }
  return answer_lookups(found, bounds);
}

std::string matches(const Model& rows, const Reading& reading) {
  const TableKind kind = kind_of(reading.table);
  if (!has_prefixes(kind)) return "";
  PrefixModel model(address_bits_of(kind));
  model.entries() = rows;
  std::string longest, all, inside;
  for (const std::string& address : reading.addresses) {
    auto covering = model.all_of(address);
    longest += covering.empty() ? answer_none()
                                : answer_row(covering.back()->first, covering.back()->second);
    for (const auto& entry : covering) all += answer_row(entry->first, entry->second);
    all += ";";
  }
  if (!reading.keys.empty())
    for (const auto& [key, value] : model.inside(reading.keys[0])) inside += answer_row(key, value);
  return answer_matches(longest, all, inside);
}

}  // namespace

// Stages as the database does, and tells what each call says.
class ModelRun::Transaction {
 public:
  Transaction(const Catalog& catalog) : before_(catalog) {}

  std::string stage(const Step& step) {
    const bool there = before_.contains(step.table) || created_.contains(step.table);
    if (step.kind == Step::Kind::create) {
      if (!there) created_.insert({step.table, true});
    } else if (!there) {
      return answer(StatusCode::not_found);
    }
    return stage_rows(step);
  }

  // before: what is there now.
  std::string commit(Catalog* catalog) {
    StatusCode code = StatusCode::ok;
    Catalog after = *catalog;
    for (const auto& [table, is_created] : created_)
      if (catalog->contains(table)) code = StatusCode::already_exists;
    for (const auto& [table, is_created] : created_) after[table] = std::make_shared<const Model>();
    std::string bits;
    if (code == StatusCode::ok) code = apply(&after, &bits);
    if (code == StatusCode::ok) *catalog = std::move(after);
    if (code != StatusCode::ok) bits.assign(bits_, '0');
    return answer(code) + bits;
  }

 private:
  std::string stage_rows(const Step& step) {
    using Kind = Step::Kind;
    const bool by_row = step.kind == Kind::put || step.kind == Kind::erase;
    const bool ranges = step.kind == Kind::erase_range || step.kind == Kind::erase_ranges;
    if (step.kind == Kind::accumulate && !has_numbers(kind_of(step.table)))
      return answer(StatusCode::invalid_argument);
    if (by_row) return stage_each(step);
    if (!ranges && !fit_width(step)) return answer(StatusCode::invalid_argument);
    if (step.kind == Kind::put_if_absent) bits_ += step.keys.size();
    if (!step.keys.empty()) steps_.push_back(&step);
    return answer(StatusCode::ok);
  }
  std::string stage_each(const Step& step) {
    std::string answers;
    const uint32_t width = table_options(step.table).key_width;
    bool any = false;
    for (const std::string& key : step.keys) {
      const bool fits = !width || key.size() == width;
      answers += answer(fits ? StatusCode::ok : StatusCode::invalid_argument);
      any = any || fits;
    }
    if (any) steps_.push_back(&step);
    return answers;
  }

  StatusCode apply(Catalog* catalog, std::string* bits) {
    std::map<int, Staged> staged;
    for (const Step* step : steps_) {
      auto table = catalog->find(step->table);
      if (table == catalog->end()) return StatusCode::not_found;
      auto [at, is_new] = staged.try_emplace(step->table);
      if (is_new) at->second.rows = *table->second;
      apply(*step, &at->second);
    }
    for (auto& [table, rows] : staged)
      if (!rows.finish(kind_of(table))) return StatusCode::invalid_argument;
    // In the order of the calls, for that is the order of the bits.
    for (const Step* step : steps_)
      if (step->kind == Step::Kind::put_if_absent) put_absent(*step, &staged[step->table], bits);
    for (auto& [table, rows] : staged)
      (*catalog)[table] = std::make_shared<const Model>(std::move(rows.rows));
    return StatusCode::ok;
  }
  static void put_absent(const Step& step, Staged* staged, std::string* bits) {
    for (size_t i = 0; i < step.keys.size(); ++i)
      *bits += staged->rows.emplace(step.keys[i], step.values[i]).second ? '1' : '0';
  }
  static void apply(const Step& step, Staged* staged) {
    using Kind = Step::Kind;
    const TableKind kind = kind_of(step.table);
    const uint32_t width = table_options(step.table).key_width;
    for (size_t i = 0; i < step.keys.size(); ++i) {
      const std::string& key = step.keys[i];
      const bool range = step.kind == Kind::erase_range || step.kind == Kind::erase_ranges;
      if (!range && width && key.size() != width) continue;
      if (step.kind == Kind::erase || step.kind == Kind::erase_column) {
        staged->erase(key);
      } else if (step.kind == Kind::erase_range) {
        staged->erase_range(key, step.values[i]);
      } else if (step.kind == Kind::erase_ranges) {
        if (!step.values[i].empty()) staged->erase_range(key, step.values[i]);
      } else if (step.kind == Kind::accumulate) {
        staged->add(kind, key, step.deltas[i]);
      } else if (step.kind != Kind::put_if_absent) {
        staged->put(key, step.values[i]);
      }
    }
  }

  const Catalog before_;
  std::map<int, bool> created_;
  std::vector<const Step*> steps_;
  size_t bits_ = 0;
};

ModelRun::ModelRun() {
  for (int table = 0; table < tables; ++table) catalog_[table] = std::make_shared<const Model>();
}

std::string ModelRun::apply(const Operation& operation) {
  switch (operation.kind) {
    case Operation::Kind::commit:
    case Operation::Kind::concurrent:
      return commit(operation);
    case Operation::Kind::create:
      if (catalog_.contains(operation.table)) return answer(StatusCode::already_exists);
      catalog_[operation.table] = std::make_shared<const Model>();
      return answer(StatusCode::ok);
    case Operation::Kind::drop:
      return answer(catalog_.erase(operation.table) ? StatusCode::ok : StatusCode::not_found);
    case Operation::Kind::keep:
      kept_[static_cast<size_t>(operation.kept)] = catalog_;
      return "";
    case Operation::Kind::read:
      return read(operation.reading);
    case Operation::Kind::read_only:
      return contents();
    case Operation::Kind::drop_before_commit:
      return drop_before_commit(operation);
    case Operation::Kind::compact:
    case Operation::Kind::sync:
      break;
  }
  return answer(StatusCode::ok);
}

std::string ModelRun::commit(const Operation& operation) {
  std::string answers;
  std::vector<Transaction> open;
  for (const Changes& changes : operation.transactions) {
    Transaction& transaction = open.emplace_back(catalog_);
    for (const Step& step : changes.steps) answers += transaction.stage(step);
  }
  for (size_t i = 0; i < open.size(); ++i)
    if (!operation.transactions[i].aborted) answers += open[i].commit(&catalog_);
  return answers;
}

std::string ModelRun::drop_before_commit(const Operation& operation) {
  std::string answers;
  Transaction transaction(catalog_);
  for (const Step& step : operation.transactions[0].steps) answers += transaction.stage(step);
  answers += answer(catalog_.erase(operation.table) ? StatusCode::ok : StatusCode::not_found);
  return answers + transaction.commit(&catalog_);
}

std::string ModelRun::read(const Reading& reading) const {
  const Catalog& seen = reading.kept ? kept_[static_cast<size_t>(*reading.kept)] : catalog_;
  auto table = seen.find(reading.table);
  if (table == seen.end()) return answer(StatusCode::not_found);
  const Model& rows = *table->second;
  return std::to_string(rows.size()) + lookups(rows, reading) +
         answer_scan(rows_within(rows, reading.scan)) + matches(rows, reading);
}

std::string rows_within(const Model& rows, const ScanOptions& scan) {
  std::vector<std::string> found;
  for (const auto& [key, value] : rows)
    if (within(key, scan)) found.push_back(answer_row(key, value));
  if (scan.reverse) std::reverse(found.begin(), found.end());
  std::string all;
  for (const std::string& row : found) all += row;
  return all;
}

std::string ModelRun::contents() const {
  std::string all;
  for (const auto& [table, rows] : catalog_)
    all += table_name(table) + ": " + rows_within(*rows, {}) + "\n";
  return all;
}

}  // namespace stride::test::metamorphic
