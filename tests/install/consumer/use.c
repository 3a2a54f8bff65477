/* Writes and reads one row, and checks that library and header have one version. */
#include <stdio.h>
#include <stridedb.h>
#include <stridedb_columns.h>
#include <string.h>

#define CHECK(call)                                       \
  do {                                                    \
    if ((call) != STRIDE_OK) {                            \
      fprintf(stderr, "%s\n", stride_last_error()->text); \
      return 1;                                           \
    }                                                     \
  } while (0)

#if STRIDE_VERSION < STRIDE_VERSION_NUMBER(0, 1, 0)
#error "older than what this program needs"
#endif

int main(int argc, char** argv) {
  stride_database* db;
  stride_table* table;
  stride_transaction* t;
  stride_snapshot* snapshot;
  stride_bytes value;
  stride_set* set;
  uint32_t pairs[] = {1, 2, 3, 4, 1, 2};
  uint64_t ids[3];
  size_t column;
  if (argc != 2) return 2;
  if (strcmp(STRIDE_VERSION_TEXT, stride_version()) != 0) return 3;
  if (stride_version_number() != STRIDE_VERSION) return 3;
  CHECK(stride_open(argv[1], NULL, &db));
  CHECK(stride_table_open_or_create(db, "t", 0, &table));
  CHECK(stride_begin(db, &t));
  CHECK(stride_put_one(t, table, "key", 3, "value", 5));
  CHECK(stride_commit(t, STRIDE_DURABILITY_DEFAULT));
  CHECK(stride_snapshot_take(db, &snapshot));
  CHECK(stride_get_one(snapshot, table, "key", 3, &value));
  if (value.size != 5 || memcmp(value.data, "value", 5) != 0) return 4;
  if (stride_table_column(table, "none", &column) != STRIDE_NOT_FOUND) return 6;
  CHECK(stride_set_create(NULL, &set));
  CHECK(stride_set_find_or_put(set, pairs, 3, ids, NULL));
  if (ids[1] != 1 || ids[2] != ids[0]) return 5;
  CHECK(stride_set_release(set));
  CHECK(stride_snapshot_release(snapshot));
  CHECK(stride_table_release(table));
  CHECK(stride_close(db));
  return 0;
}
