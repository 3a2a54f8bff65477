// Writes and reads columns, and what else of the interface is not inline.
#include <iostream>
#include <vector>

#include "engine/database.h"
#include "engine/library_version.h"
#include "engine/make_vector_set.h"
#include "gpu/vector_set.h"

using namespace stride;

static int failed(const Status& s) {
  std::cerr << s.to_string() << "\n";
  return 1;
}

// How many different pairs of numbers there are.
static Result<uint64_t> different(const Column& pairs) {
  auto set = make_vector_set({.words = 2, .form = VectorForm::slots});
  if (!set.ok()) return set.status();
  Status s = (*set)->find_or_put(pairs, {}, {});
  if (!s.ok()) return s;
  return (*set)->size();
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  if (version() != std::to_string(version_major) + "." + std::to_string(version_minor) + "." +
                       std::to_string(version_patch))
    return 3;
  auto db = Database::open(argv[1], {.tree = {.strides = {12, 8}}});
  if (!db.ok()) return failed(db.status());
  auto table = (*db)->open_or_create_table("t", {.key_width = 4});
  if (!table.ok()) return failed(table.status());

  std::vector<uint32_t> rows(10'000);
  for (uint32_t i = 0; i < rows.size(); ++i) rows[i] = i * 2654435761u;
  Column column = Column::fixed(rows.data(), 4, rows.size());
  WriteTransaction t = (*db)->begin();
  Status s = t.put(*table, column, column);
  if (s.ok()) s = t.commit(Durability::flush);
  if (!s.ok()) return failed(s);

  Snapshot snapshot = (*db)->snapshot();
  GetResult got;
  FindResult found;
  s = snapshot.get(*table, column, &got);
  if (s.ok()) s = snapshot.find(*table, column, &found);
  if (!s.ok()) return failed(s);
  if (got.found.count() != rows.size() || found.value(7).size() != 4) return 4;
  uint64_t scanned = 0;
  auto it = snapshot.iterate(*table, {.reverse = true});
  if (!it.ok()) return failed(it.status());
  for (; it->valid(); it->next()) ++scanned;
  if (scanned != rows.size()) return 5;
  auto pairs = different(Column::fixed(rows.data(), 8, rows.size() / 2));
  if (!pairs.ok()) return failed(pairs.status());
  if (*pairs != rows.size() / 2) return 6;
  s = (*db)->close();
  return s.ok() ? 0 : failed(s);
}
