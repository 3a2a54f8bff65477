/* What a database does: as numbers, as text for Prometheus, and told as it happens. Programs
 * include this header themselves; stridedb.h says what holds for all functions, and
 * docs/monitoring.md what each number means.
 *
 *   size_t bytes = 0;
 *   stride_prometheus_text(db, NULL, 0, &bytes);                 (STRIDE_TOO_SMALL)
 *   char* text = malloc(bytes += 4096);                          (it may have grown meanwhile)
 *   if (stride_prometheus_text(db, text, bytes, &bytes) == STRIDE_OK) respond(text);
 */
#ifndef STRIDEDB_METRICS_H
#define STRIDEDB_METRICS_H

#include "stridedb.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How long calls took. Percentiles are up to 6.25 % above the exact ones and never below. */
typedef struct stride_latency {
  uint64_t count; /* of the calls that were measured */
  double sum_s;   /* of these */
  double p50_s, p90_s, p99_s, p999_s, max_s;
} stride_latency;

/* What was done since the database was opened, and its state. Names and meanings are those of
 * engine/metrics.h. */
typedef struct stride_metrics {
  size_t size; /* sizeof(stride_metrics), set by the caller */
  /* Calls: of single keys, of columns of keys, of which a device has searched device_keys with
   * match_addresses; scans, longest prefixes and commits. */
  uint64_t gets, get_found, get_bytes;
  uint64_t batch_gets, batch_keys, batch_found, batch_bytes;
  uint64_t device_keys, lower_bounds;
  uint64_t scans, scan_rows, scan_bytes;
  uint64_t match_addresses, match_found;
  uint64_t small_commits, large_commits, failed_commits, committed_rows, committed_bytes;
  stride_latency get_latency;    /* of one single get in 128 of each thread */
  stride_latency commit_latency; /* of all commits */
  /* What the database did by itself. */
  uint64_t log_bytes, log_syncs, bulk_bytes;
  uint64_t flushes, failed_flushes, flush_memory_bytes, flush_bytes;
  uint64_t compactions, failed_compactions, compaction_read_bytes, compaction_bytes;
  uint64_t stalls;
  double flush_s, compaction_s, stall_s;
  uint64_t device_copies, device_evictions, events, dropped_events;
  /* The state. log_file_bytes: of the write-ahead log's files. */
  uint64_t tables, runs, segments, rows, memtable_rows;
  uint64_t segment_bytes, log_file_bytes, size_bytes, memtable_bytes, sealed_memtables;
  uint64_t debt_bytes, resident_bytes, device_segments, device_bytes;
  double write_amplification, space_amplification;
  int poisoned;  /* 1: nothing more is written through this handle */
  int read_only; /* 1: it was opened so */
} stride_metrics;
/* The caller sets metrics->size. Cheap: no call to the operating system. */
STRIDE_C_API int stride_metrics_read(stride_database* database, stride_metrics* metrics);

/* The same as text, version 0.0.4 of Prometheus' format, with a NUL behind it. text: room for
 * `room` bytes; may be NULL where that is 0. *bytes, unless it is NULL: how many the text has, the
 * NUL included, also with STRIDE_TOO_SMALL, where nothing is written. */
STRIDE_C_API int stride_prometheus_text(stride_database* database, char* text, size_t room,
                                        size_t* bytes);

enum {
  STRIDE_EVENT_OPENED = 0,
  STRIDE_EVENT_CLOSED = 1,
  STRIDE_EVENT_FLUSH_BEGUN = 2, /* a memtable becomes a run */
  STRIDE_EVENT_FLUSH_ENDED = 3,
  STRIDE_EVENT_COMPACTION_BEGUN = 4, /* runs of a table are merged */
  STRIDE_EVENT_COMPACTION_ENDED = 5,
  STRIDE_EVENT_STALLED = 6,  /* commits waited: `inputs` times, `seconds` in all */
  STRIDE_EVENT_POISONED = 7, /* nothing more is written through the handle */
  STRIDE_EVENT_DEVICE_COPIED = 8,
  STRIDE_EVENT_DEVICE_EVICTED = 9,
  STRIDE_EVENT_DEVICE_LOST = 10
};

/* Strings are never NULL, and valid during the call. What a kind has nothing to say of is 0. */
typedef struct stride_event {
  size_t size;      /* sizeof(stride_event) of the library: it may grow at the end */
  int kind;         /* STRIDE_EVENT_... ; there may be more kinds one day */
  int status;       /* of what has ended: STRIDE_OK, or why it failed */
  int64_t time_us;  /* since the beginning of 1970, UTC */
  uint64_t number;  /* of the events of this opening, from 1 */
  uint64_t dropped; /* right before this one, because the callback was slow */
  const char* table;
  uint64_t run, inputs, rows, bytes_in, bytes_out;
  double seconds;
  const char* line; /* all of it, for people */
} stride_event;

enum { STRIDE_LOG_INFO = 0, STRIDE_LOG_WARNING = 1, STRIDE_LOG_ERROR = 2 };

/* Who is told of what a database does. One thread of the library makes all calls, in order, and
 * holds no lock meanwhile: callbacks may call this library, and close the database. Nothing but
 * stride_close() waits for a slow one: 256 events are kept for it, and more are dropped. After
 * stride_close() has returned there are no more calls, unless a callback was what called it. */
typedef struct stride_watch_options {
  size_t size;                                                /* sizeof(stride_watch_options) */
  void (*on_event)(void* context, const stride_event* event); /* NULL: nobody is told */
  void* event_context;
  /* A line for each event, in place of the file LOG. NULL: that file, as log_file says. */
  void (*on_line)(void* context, int level, const char* line);
  void* line_context;
  int log_file;      /* 1: of a database that is opened for writing; 0: no file LOG */
  uint32_t reserved; /* 0 */
} stride_watch_options;
/* Sets the defaults: the file LOG and no callbacks. As stride_options_init(). */
STRIDE_C_API int stride_watch_options_init(stride_watch_options* options, size_t size);

/* As stride_open(). watch: NULL for the defaults; contexts must live until the calls end. */
STRIDE_C_API int stride_open_watched(const char* path, const stride_options* options,
                                     const stride_watch_options* watch, stride_database** database);

#ifdef __cplusplus
}
#endif

#endif
