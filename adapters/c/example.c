/* StrideDB from C: load ticks, look some up in one batch, read a range in order, find the routes of
 * addresses, and see an error.
 *
 *   cc example.c $(pkg-config --cflags --libs stridedb) && ./a.out /tmp/ticks.db
 */
#include <stridedb.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TICKS = 1000, QUERIES = 4 };

static void check(int status) {
  if (status == STRIDE_OK) return;
  fprintf(stderr, "%s\n", stride_last_error()->text);
  exit(1);
}

/* Times -500 to 499, and prices of four bytes each. */
static void load(stride_database* db, stride_table* table) {
  static int64_t times[TICKS];
  static uint32_t prices[TICKS];
  static char keys[TICKS * 8];
  for (int i = 0; i < TICKS; ++i) {
    times[i] = i - 500;
    prices[i] = 10000 + (uint32_t)i;
  }
  check(stride_int64_to_keys(times, TICKS, keys));
  stride_column key_column = {.data = keys, .size = TICKS, .width = 8};
  stride_column price_column = {.data = prices, .size = TICKS, .width = 4};

  stride_transaction* t;
  check(stride_begin(db, &t));
  check(stride_put(t, table, &key_column, &price_column));
  check(stride_commit(t, STRIDE_DURABILITY_DEFAULT));
}

static void look_up(stride_snapshot* snapshot, stride_table* table) {
  const int64_t times[QUERIES] = {7, -500, 12345, 499};
  char keys[QUERIES * 8];
  check(stride_int64_to_keys(times, QUERIES, keys));
  stride_column queries = {.data = keys, .size = QUERIES, .width = 8};

  stride_values* found;
  stride_column prices;
  const uint64_t* validity;
  check(stride_values_create(&found));
  check(stride_get(snapshot, table, &queries, found));
  check(stride_values_read(found, &prices, &validity));
  for (int i = 0; i < QUERIES; ++i) {
    if (validity[0] >> i & 1) {
      const uint32_t* price = (const uint32_t*)((const char*)prices.data + prices.offsets[i]);
      printf("at %" PRId64 ": %" PRIu32 "\n", times[i], *price);
    } else {
      printf("at %" PRId64 ": nothing\n", times[i]);
    }
  }
  check(stride_values_release(found));
}

/* The last ticks before time 0, the latest first. */
static void read_back(stride_snapshot* snapshot, stride_table* table) {
  const int64_t bounds[2] = {-3, 0};
  char keys[2 * 8];
  check(stride_int64_to_keys(bounds, 2, keys));
  stride_scan_options options;
  check(stride_scan_options_init(&options, sizeof options));
  options.from = (stride_bytes){keys, 8};
  options.to = (stride_bytes){keys + 8, 8};
  options.reverse = 1;

  stride_scan* scan;
  stride_column times, prices;
  check(stride_scan_open(snapshot, table, &options, &scan));
  for (;;) {
    check(stride_scan_next(scan, &times, &prices));
    if (times.size == 0) break;
    for (uint64_t i = 0; i < times.size; ++i) {
      uint64_t at = times.offsets ? times.offsets[i] : i * times.width;
      int64_t time;
      check(stride_int64_from_keys((const char*)times.data + at, 1, &time));
      printf("time %" PRId64 "\n", time);
    }
  }
  check(stride_scan_release(scan));
}

/* The longest prefix of each address. */
static void route(stride_database* db) {
  const char* prefixes[] = {"0.0.0.0/0", "10.0.0.0/8", "10.1.0.0/16"};
  const char* addresses[] = {"10.1.2.3", "10.200.0.1", "192.0.2.1"};
  stride_table_options options;
  check(stride_table_options_init(&options, sizeof options));
  options.address_bits = 32;
  stride_table* routes;
  stride_transaction* t;
  check(stride_table_open_or_create_with(db, "routes", &options, &routes));
  check(stride_begin(db, &t));
  for (int i = 0; i < 3; ++i) {
    char key[5];
    check(stride_parse_prefix(prefixes[i], 32, STRIDE_HOST_BITS_REFUSE, key, sizeof key, NULL));
    check(stride_put_one(t, routes, key, sizeof key, prefixes[i], strlen(prefixes[i])));
  }
  check(stride_commit(t, STRIDE_DURABILITY_DEFAULT));

  char bytes[3 * 4];
  for (int i = 0; i < 3; ++i) check(stride_parse_address(addresses[i], 32, bytes + 4 * i, 4, NULL));
  stride_column queries = {.data = bytes, .size = 3, .width = 4}, found;
  stride_snapshot* snapshot;
  stride_values* values;
  const uint32_t* lengths;
  check(stride_snapshot_take(db, &snapshot));
  check(stride_values_create(&values));
  check(stride_match(snapshot, routes, &queries, values));
  check(stride_values_read(values, &found, NULL));
  check(stride_values_lengths(values, &lengths));
  for (int i = 0; i < 3; ++i)
    printf("%s: %.*s, %" PRIu32 " bits\n", addresses[i],
           (int)(found.offsets[i + 1] - found.offsets[i]),
           (const char*)found.data + found.offsets[i], lengths[i]);
  check(stride_values_release(values));
  check(stride_snapshot_release(snapshot));
  check(stride_table_release(routes));
}

int main(int argc, char** argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: %s DATABASE\n", argv[0]);
    return 2;
  }
  stride_database* db;
  stride_table* table;
  stride_snapshot* snapshot;
  printf("StrideDB %s\n", stride_version());
  check(stride_open(argv[1], NULL, &db));
  check(stride_table_open_or_create(db, "ticks", 8, &table));
  load(db, table);
  check(stride_snapshot_take(db, &snapshot));
  look_up(snapshot, table);
  read_back(snapshot, table);
  route(db);

  /* What goes wrong says what, where and what to do. */
  stride_table* other;
  if (stride_table_open(db, "tocks", &other) == STRIDE_NOT_FOUND) {
    const stride_error* e = stride_last_error();
    printf("%s: %s; %s\n", stride_status_name(e->status), e->message, e->remedy);
  }

  check(stride_snapshot_release(snapshot));
  check(stride_table_release(table));
  check(stride_close(db));
  return 0;
}
