/* A queue of jobs that threads and programs share: each job is taken once.
 *
 *   cc -O2 job_queue.c $(pkg-config --cflags --libs stridedb) -o job_queue
 *   ./job_queue jobs.db add "sweep the floor" "water the plants"
 *   ./job_queue jobs.db take           prints the oldest job, which is gone then
 *   ./job_queue jobs.db watch          how many there are, also while another program adds some
 *
 * A job is taken in a transaction that reads the first row of the table and erases it. Where
 * another one was faster the commit is STRIDE_CONFLICT, nothing has happened, and it is tried
 * again.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <stridedb.h>
#include <stridedb_transactions.h>
#include <string.h>

enum { KEY_BYTES = 8 };

static void check(int status) {
  if (status == STRIDE_OK) return;
  fprintf(stderr, "%s\n", stride_last_error()->text);
  exit(1);
}

/* The last or the first key of the table, as the transaction sees it; 0: there is none. What was
 * read decides about the commit: another job with the same number would be a conflict. */
static int end_of(stride_transaction* t, stride_table* jobs, int last, int64_t* number,
                  stride_scan** scan, stride_column* values) {
  stride_scan_options options;
  check(stride_scan_options_init(&options, sizeof options));
  options.reverse = last;
  options.batch_rows = 1;
  stride_column keys;
  check(stride_transaction_scan(t, jobs, &options, scan));
  check(stride_scan_next(*scan, &keys, values));
  if (keys.size == 0) return 0;
  check(stride_int64_from_keys(keys.data, 1, number));
  return 1;
}

static int add(stride_database* db, stride_table* jobs, const char* text) {
  stride_transaction* t;
  stride_scan* scan;
  stride_column values;
  int64_t number = 0;
  char key[KEY_BYTES];
  check(stride_begin_reading(db, &t));
  if (end_of(t, jobs, 1, &number, &scan, &values)) ++number;
  check(stride_scan_release(scan));
  check(stride_int64_to_keys(&number, 1, key));
  check(stride_put_one(t, jobs, key, sizeof key, text, strlen(text)));
  return stride_commit(t, STRIDE_DURABILITY_DEFAULT);
}

/* *text: the job, which the caller frees; NULL where there is none. */
static int take(stride_database* db, stride_table* jobs, char** text) {
  stride_transaction* t;
  stride_scan* scan;
  stride_column values;
  int64_t number;
  char key[KEY_BYTES];
  *text = NULL;
  check(stride_begin_reading(db, &t));
  if (end_of(t, jobs, 0, &number, &scan, &values)) {
    const uint64_t bytes = values.offsets ? values.offsets[1] - values.offsets[0] : values.width;
    const char* data = (const char*)values.data + (values.offsets ? values.offsets[0] : 0);
    *text = malloc(bytes + 1);
    if (*text == NULL) abort();
    memcpy(*text, data, bytes);
    (*text)[bytes] = 0;
    check(stride_int64_to_keys(&number, 1, key));
    const stride_column keys = {.data = key, .size = 1, .width = sizeof key};
    check(stride_erase(t, jobs, &keys));
  }
  check(stride_scan_release(scan));
  const int status = stride_commit(t, STRIDE_DURABILITY_DEFAULT);
  if (status == STRIDE_OK) return status;
  free(*text);
  *text = NULL;
  return status;
}

static void retry_add(stride_database* db, stride_table* jobs, const char* text) {
  int status;
  do status = add(db, jobs, text);
  while (status == STRIDE_CONFLICT);
  check(status);
}

static void print_taken(stride_database* db, stride_table* jobs) {
  int status;
  char* text;
  do status = take(db, jobs, &text);
  while (status == STRIDE_CONFLICT);
  check(status);
  puts(text ? text : "nothing to do");
  free(text);
}

/* A reader of a database that another program may be writing. */
static void watch(const char* path) {
  stride_options options;
  stride_database* db;
  stride_table* jobs;
  stride_snapshot* now;
  uint64_t count;
  check(stride_options_init(&options, sizeof options));
  options.read_only = 1;
  check(stride_open(path, &options, &db));
  check(stride_table_open(db, "jobs", &jobs));
  check(stride_refresh(db)); /* and again each time that it is to see what is new */
  check(stride_snapshot_take(db, &now));
  check(stride_count(now, jobs, &count));
  printf("%" PRIu64 " jobs\n", count);
  check(stride_snapshot_release(now));
  check(stride_table_release(jobs));
  check(stride_close(db));
}

int main(int argc, char** argv) {
  if (argc == 3 && strcmp(argv[2], "watch") == 0) {
    watch(argv[1]);
    return 0;
  }
  if (argc < 3 || (strcmp(argv[2], "add") != 0 && strcmp(argv[2], "take") != 0)) {
    fprintf(stderr, "usage: job_queue DIRECTORY add JOB... | take | watch\n");
    return 2;
  }
  stride_database* db;
  stride_table* jobs;
  check(stride_open(argv[1], NULL, &db));
  check(stride_table_open_or_create(db, "jobs", KEY_BYTES, &jobs));
  if (strcmp(argv[2], "take") == 0) print_taken(db, jobs);
  for (int i = 3; i < argc; ++i) retry_add(db, jobs, argv[i]);
  check(stride_table_release(jobs));
  check(stride_close(db));
  return 0;
}
