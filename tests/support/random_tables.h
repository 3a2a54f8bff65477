// Random changes of a database of a few small tables, and what it holds afterwards.
#pragma once

#include <cstdio>
#include <map>
#include <optional>
#include <random>
#include <string>

#include "tests/support/model.h"

namespace stride::test {

using Tables = std::map<std::string, Model>;

class RandomTables {
 public:
  explicit RandomTables(std::mt19937_64& random) : random_(random) {}

  // One change; *after becomes what the database is if it succeeds.
  Status change(Database& db, Durability durability, Tables* after) {
    switch (random_() % 13) {
      case 0:
        return create(db, after);
      case 1:
        return drop(db, after);
      case 2:
        return db.compact();
      case 3:
        return rename(db, durability, after);
      default:
        return commit(db, durability, after);
    }
  }

  Status create(Database& db, Tables* after) {
    std::string name = "t" + std::to_string(random_() % 4);
    if (after->count(name)) return {};
    (*after)[name];
    return db.create_table(name).status();
  }

  Status drop(Database& db, Tables* after) {
    if (after->size() < 2) return {};
    std::string name = std::next(after->begin(), random_() % after->size())->first;
    after->erase(name);
    return db.drop_table(name);
  }

  // Makes another table of the old name in the same commit now and then.
  Status rename(Database& db, Durability durability, Tables* after) {
    if (after->empty()) return {};
    const std::string from = std::next(after->begin(), random_() % after->size())->first;
    const std::string to = "t" + std::to_string(random_() % 4);
    if (after->count(to)) return {};
    auto table = db.open_table(from);
    if (!table.ok()) return table.status();
    WriteTransaction t = db.begin();
    STRIDE_TRY(t.rename_table(*table, to));
    STRIDE_TRY(t.put(*table, "renamed", from));
    (*after)[to] = std::move((*after)[from]);
    after->erase(from);
    (*after)[to]["renamed"] = from;
    if (random_() % 3 == 0) {
      auto another = t.create_table(from);
      if (!another.ok()) return another.status();
      STRIDE_TRY(t.put(*another, "new", to));
      (*after)[from] = {{"new", to}};
    }
    return t.commit(durability);
  }

  Status commit(Database& db, Durability durability, Tables* after) {
    WriteTransaction t = db.begin();
    for (auto& [name, model] : *after) {
      auto table = db.open_table(name);
      if (!table.ok()) return table.status();
      for (int i = random_() % 30; i > 0; --i) {
        std::string key = "k" + std::to_string(random_() % 60);
        if (random_() % 40 == 0) {
          std::string end = "k" + std::to_string(random_() % 60);
          STRIDE_TRY(t.erase_range(*table, as_bytes(key), as_bytes(end)));
          if (key < end) model.erase(model.lower_bound(key), model.lower_bound(end));
        } else if (random_() % 4 == 0) {
          STRIDE_TRY(t.erase(*table, key));
          model.erase(key);
        } else {
          std::string value(random_() % 300, char('a' + random_() % 26));
          STRIDE_TRY(t.put(*table, key, value));
          model[key] = value;
        }
      }
      if (random_() % 200 == 0) STRIDE_TRY(put_large(t, *table, &model));
      if (random_() % 3 == 0) STRIDE_TRY(put_if_absent(t, *table, &model));
    }
    return t.commit(durability);
  }

 private:
  // Last of the changes of a table, as the engine has it.
  Status put_if_absent(WriteTransaction& t, const Table& table, Model* model) {
    Rows keys, values;
    for (uint64_t i = random_() % 20; i > 0; --i) {
      std::string key = "k" + std::to_string(random_() % 80), value = std::to_string(random_());
      keys.add(key);
      values.add(value);
      model->emplace(key, value);
    }
    return t.put_if_absent(table, keys.column(), values.column());
  }
  // A segment of several pieces, which durability none does not wait for.
  Status put_large(WriteTransaction& t, const Table& table, Model* model) {
    std::string value((2 << 20) + random_() % (4 << 20), char('a' + random_() % 26));
    STRIDE_TRY(t.put(table, "large", value));
    (*model)["large"] = std::move(value);
    return {};
  }

  std::mt19937_64& random_;
};

// Everything that a fresh handle reads; nullopt where a read fails.
inline std::optional<Tables> read_all(Database& db) {
  Tables result;
  Snapshot snapshot = db.snapshot();
  for (const auto& t : db.tables()) {
    auto table = db.open_table(t.name);
    Model& model = result[t.name];
    auto it = snapshot.iterate(*table);
    if (it.ok())
      for (; it->valid(); it->next()) model[text(it->key())] = text(it->value());
    const Status status = it.ok() ? it->status() : it.status();
    if (!status.ok()) {
      std::fprintf(stderr, "table %s: %s\n", t.name.c_str(), status.to_string().c_str());
      return std::nullopt;
    }
  }
  return result;
}

}  // namespace stride::test
