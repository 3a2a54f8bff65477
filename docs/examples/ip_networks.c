/* Which network has an address? Loads prefixes of IPv4 addresses, then finds the longest prefix of
 * each address that is asked for, as routers do.
 *
 *   cc -O2 ip_networks.c $(pkg-config --cflags --libs stridedb) -o ip_networks
 *   printf '10.0.0.0/8\toffice\n10.1.0.0/16\tlaboratory\n' > prefixes.tsv
 *   ./ip_networks networks.db prefixes.tsv       (once; a line: prefix, tab, name)
 *   ./ip_networks networks.db --match 10.1.2.3 10.2.0.1 192.168.0.1
 */
#include <stridedb.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if STRIDE_VERSION < STRIDE_VERSION_NUMBER(0, 1, 0)
#error "StrideDB 0.1 or newer is needed"
#endif

enum { ADDRESS_BITS = 32, ADDRESS_BYTES = 4, KEY_BYTES = 5 };

static void check(int status) {
  if (status == STRIDE_OK) return;
  fprintf(stderr, "%s\n", stride_last_error()->text);
  exit(1);
}

static void fail(const char* what, const char* why) {
  fprintf(stderr, "%s: %s\n", what, why);
  exit(1);
}

static void* grown(void* memory, size_t bytes) {
  void* larger = realloc(memory, bytes);
  if (larger == NULL) fail("ip_networks", "out of memory");
  return larger;
}

/* The rows of a file: keys of one width, and names one behind the other. */
typedef struct rows {
  uint64_t size, room;
  char* keys;        /* KEY_BYTES each */
  char* names;       /* name i is names[offsets[i]] up to names[offsets[i + 1]] */
  uint64_t* offsets; /* size + 1 */
} rows;

static void add(rows* r, const char* prefix, const char* name) {
  if (r->size == r->room) {
    r->room = 2 * r->room + 1000;
    r->keys = grown(r->keys, r->room * KEY_BYTES);
    r->offsets = grown(r->offsets, (r->room + 1) * sizeof *r->offsets);
    r->names = grown(r->names, r->room * 256); /* no line is longer */
    r->offsets[0] = 0;
  }
  check(stride_parse_prefix(prefix, ADDRESS_BITS, STRIDE_HOST_BITS_REFUSE,
                            r->keys + r->size * KEY_BYTES, KEY_BYTES, NULL));
  uint64_t at = r->offsets[r->size];
  memcpy(r->names + at, name, strlen(name));
  r->offsets[++r->size] = at + strlen(name);
}

/* The table and all of its rows are there once the transaction is committed, or nothing is. */
static void load(stride_database* db, const char* path) {
  FILE* file = fopen(path, "r");
  if (file == NULL) fail(path, "cannot be read");
  rows r = {0};
  char line[256];
  while (fgets(line, sizeof line, file)) {
    char* tab = strchr(line, '\t');
    if (tab == NULL || strchr(tab, '\n') == NULL) fail(path, "a line has no tab or is too long");
    *tab = 0;
    *strchr(tab + 1, '\n') = 0;
    add(&r, line, tab + 1);
  }
  fclose(file);

  stride_table_options options;
  check(stride_table_options_init(&options, sizeof options));
  options.address_bits = ADDRESS_BITS; /* makes it a table of prefixes */
  stride_transaction* t;
  stride_table* table;
  check(stride_begin(db, &t));
  check(stride_table_create_in(t, "networks", &options, &table));
  stride_column keys = {.data = r.keys, .size = r.size, .width = KEY_BYTES};
  stride_column names = {.data = r.names, .offsets = r.offsets, .size = r.size};
  check(stride_put(t, table, &keys, &names));
  check(stride_commit(t, STRIDE_DURABILITY_DEFAULT));
  check(stride_table_release(table));
  printf("%" PRIu64 " prefixes\n", r.size);
  free(r.keys);
  free(r.names);
  free(r.offsets);
}

/* One call finds the prefixes of all addresses and copies no name: it hands out where they are. */
static void match(stride_database* db, char** texts, uint64_t n) {
  char* addresses = grown(NULL, n * ADDRESS_BYTES + 1);
  for (uint64_t i = 0; i < n; ++i)
    check(stride_parse_address(texts[i], ADDRESS_BITS, addresses + i * ADDRESS_BYTES,
                               ADDRESS_BYTES, NULL));
  stride_table* table;
  stride_snapshot* now;
  stride_references* found;
  check(stride_table_open(db, "networks", &table));
  check(stride_snapshot_take(db, &now));
  check(stride_references_create(&found));
  stride_column queries = {.data = addresses, .size = n, .width = ADDRESS_BYTES};
  check(stride_match_references(now, table, &queries, found));
  for (uint64_t i = 0; i < n; ++i) {
    stride_bytes name, key;
    char prefix[64];
    check(stride_references_get(found, i, 1, &name));
    if (name.data == NULL) {
      printf("%s\tno network\n", texts[i]);
      continue;
    }
    check(stride_references_prefixes(found, i, 1, &key, NULL));
    check(stride_format_prefix(key.data, key.size, ADDRESS_BITS, prefix, sizeof prefix, NULL));
    printf("%s\t%s\t%.*s\n", texts[i], prefix, (int)name.size, (const char*)name.data);
  }
  check(stride_references_release(found));
  check(stride_snapshot_release(now));
  check(stride_table_release(table));
  free(addresses);
}

int main(int argc, char** argv) {
  int matches = argc > 3 && strcmp(argv[2], "--match") == 0;
  if (!matches && argc != 3) {
    fprintf(stderr, "usage: %s DATABASE FILE | DATABASE --match ADDRESS...\n", argv[0]);
    return 2;
  }
  stride_database* db;
  check(stride_open(argv[1], NULL, &db));
  if (matches)
    match(db, argv + 3, (uint64_t)argc - 3);
  else
    load(db, argv[2]);
  check(stride_close(db));
  return 0;
}
