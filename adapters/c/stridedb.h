/* StrideDB's C interface: an embeddable, ordered, durable key-value store for bulk work.
 *
 *   stride_database* db;
 *   stride_table* table;
 *   stride_transaction* t;
 *   if (stride_open("/var/lib/app/db", NULL, &db) != STRIDE_OK) return complain();
 *   stride_table_open_or_create(db, "ticks", 8, &table);
 *   stride_begin(db, &t);
 *   stride_put(t, table, &keys, &values);                   (two columns, any number of rows)
 *   stride_commit(t, STRIDE_DURABILITY_DEFAULT);            (durable when it returns)
 *
 * adapters/c/example.c is a whole program. This header includes others of the C interface:
 *   stridedb_scan.h       ordered reading in batches
 *   stridedb_prefixes.h   the longest prefix of an address
 *   stridedb_group_by.h   sums, counts, smallest and largest values of groups of keys
 *   stridedb_dedup.h      ids of vectors: in memory, and kept in a database
 * Programs include stridedb_columns.h (typed columns), _cursors.h, _transactions.h, _metrics.h,
 * _backup.h and _salvage.h themselves.
 *
 * Errors. Every function returns STRIDE_OK or another status and never aborts, unless its text says
 * otherwise; stride_last_error() says more. Any function may return STRIDE_RESOURCE_EXHAUSTED, when
 * memory runs out, and STRIDE_INVALID_ARGUMENT: for a NULL that its text does not allow, for a
 * handle that is of another kind, released or never made here, and for a handle that belongs to one
 * thread while another is using it. Results that are handed out through pointers are set only where
 * the status is STRIDE_OK; pointers to handles become NULL otherwise.
 *
 * Handles (stride_database*, stride_table*, ...) are names and not addresses: they are checked at
 * every call. The caller releases each, in any order; releasing NULL is fine. Tables, snapshots,
 * scans and results outlive the database that they come from.
 *
 * Threads. Databases, tables and snapshots may be used by any number of threads at once. A
 * transaction, a scan, a stride_values and a stride_references belong to one thread at a time. No
 * handle may be released while another thread is using it.
 *
 * Processes. After fork() what is open stays the parent's: in the child every handle that was made
 * before serves to be released, and all else fails with STRIDE_CLOSED.
 *
 * Stability. What is here stays, and keeps its meaning and its layout, in all versions of one major
 * number, 0 included; structs of options, reports and buffers begin with their size, so that they
 * can grow at the end, and those without a size never grow. The shared library's name has the minor number too before version 1.0, because of its
 * C++ half: programs are then linked again for another minor version.
 */
#ifndef STRIDEDB_H
#define STRIDEDB_H

#include <stddef.h>
#include <stdint.h>

#include "engine/stridedb_version.h"

#if defined(__GNUC__)
#define STRIDE_C_API __attribute__((visibility("default")))
#else
#define STRIDE_C_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* "0.1.0": the version of the library that runs. That of the headers are the macros of
 * engine/stridedb_version.h: STRIDE_VERSION_TEXT, STRIDE_VERSION_MAJOR, _MINOR and _PATCH, and
 * STRIDE_VERSION, which `#if STRIDE_VERSION >= STRIDE_VERSION_NUMBER(0, 1, 0)` compares. */
STRIDE_C_API const char* stride_version(void);
/* The same as a number that compares with STRIDE_VERSION: it is smaller where the library that runs
 * is older than the headers, which may then have functions that it lacks. */
STRIDE_C_API int stride_version_number(void);

/* ---- Status and errors ---- */

enum {
  STRIDE_OK = 0,
  STRIDE_NOT_FOUND = 1,           /* a named table, file or database is absent */
  STRIDE_ALREADY_EXISTS = 2,      /* a table or database of that name is there already */
  STRIDE_INVALID_ARGUMENT = 3,    /* the caller's data, handles or options are off */
  STRIDE_CORRUPTION = 4,          /* stored bytes are damaged or foreign */
  STRIDE_UNSUPPORTED_VERSION = 5, /* written by a newer StrideDB */
  STRIDE_IO_ERROR = 6,            /* the operating system failed a call */
  STRIDE_NO_SPACE = 7,            /* the disk or quota is full */
  STRIDE_PERMISSION_DENIED = 8,   /* file or directory may not be read or written */
  STRIDE_LOCKED = 9,              /* another process or handle writes this database */
  STRIDE_READ_ONLY = 10,          /* a write was asked of a read-only database */
  STRIDE_POISONED = 11, /* an earlier write failed: nothing more is written by this handle */
  STRIDE_RESOURCE_EXHAUSTED = 12, /* memory or another limit */
  STRIDE_CLOSED = 13,             /* the database has ended */
  STRIDE_UNAVAILABLE = 14,        /* this machine or build lacks what was asked for */
  STRIDE_CANCELLED = 15,          /* the caller asked for an end, and nothing has changed */
  STRIDE_CONFLICT = 16,           /* what a transaction has read was changed: do it again */
  STRIDE_TOO_SMALL = 100          /* the caller's memory does not hold the result */
};

/* Strings are never NULL; empty where there is nothing to say. */
typedef struct stride_error {
  int status;
  const char* message;
  const char* file;   /* the file or directory concerned */
  const char* remedy; /* what to do about it */
  const char* text;   /* all of it, in one line */
  int has_offset;     /* 1: `offset` is a byte offset in `file` */
  uint64_t offset;
} stride_error;

/* The last call of this thread that failed; STRIDE_OK before any has. Never NULL. The library owns
 * the struct and its strings, which change with the next call of this thread that fails. */
STRIDE_C_API const stride_error* stride_last_error(void);
/* "corruption", "no_space", ...; "unknown" for other numbers. Never NULL, and never freed. */
STRIDE_C_API const char* stride_status_name(int status);

/* ---- Columns ---- */

/* A view of byte strings, row by row, as Arrow lays out FixedSizeBinary and LargeBinary. It owns
 * nothing. Row i is
 *   data[i * width] and the `width` bytes that begin there     where offsets is NULL,
 *   data[offsets[i]] up to data[offsets[i + 1]], exclusively   elsewhere.
 * There are size + 1 ascending offsets, of which the first need not be 0. data may be NULL where
 * all rows together have no bytes. Keys have up to 65,535 bytes, values up to 2^32 - 1. A column
 * that is passed in is only read, and not after the call, unless the function says otherwise. */
typedef struct stride_column {
  const void* data;
  const uint64_t* offsets;
  uint64_t size;  /* rows */
  uint32_t width; /* bytes a row; not looked at where there are offsets */
} stride_column;

typedef struct stride_bytes {
  const void* data;
  uint64_t size;
} stride_bytes;

/* n numbers to keys that sort as they do, and back: 8 bytes each, big-endian, the sign bit flipped.
 */
STRIDE_C_API int stride_int64_to_keys(const int64_t* numbers, uint64_t n, void* keys);
STRIDE_C_API int stride_int64_from_keys(const void* keys, uint64_t n, int64_t* numbers);

/* ---- Databases ---- */

typedef struct stride_database stride_database;
typedef struct stride_table stride_table;
typedef struct stride_tables stride_tables;
typedef struct stride_transaction stride_transaction;
typedef struct stride_snapshot stride_snapshot;
typedef struct stride_values stride_values;
typedef struct stride_references stride_references;
typedef struct stride_scan stride_scan;
typedef struct stride_scan_options stride_scan_options;
typedef struct stride_commit_report stride_commit_report;

/* What a commit has survived once it returned. */
enum {
  STRIDE_DURABILITY_DEFAULT = -1, /* of a commit: as the options say */
  STRIDE_DURABILITY_SYNC = 0,     /* power loss */
  STRIDE_DURABILITY_FLUSH = 1,    /* the end of this process, however it comes */
  STRIDE_DURABILITY_NONE = 2      /* stride_close() */
};

/* What executes batches. */
enum {
  STRIDE_BACKEND_AUTOMATIC = 0, /* a CUDA device where there is one and it pays, else the host */
  STRIDE_BACKEND_HOST = 1,
  STRIDE_BACKEND_CUDA = 2 /* stride_open() fails with STRIDE_UNAVAILABLE without a device */
};

/* Where values are kept besides the files, once their keys are on a device. */
enum { STRIDE_VALUES_ON_HOST = 0, STRIDE_VALUES_ON_DEVICE = 1 /* as far as its memory allows */ };

/* None needs tuning. Flags are 0 or 1. */
typedef struct stride_options {
  size_t size;                     /* sizeof(stride_options) */
  int create_if_missing;           /* 1 */
  int error_if_exists;             /* 0 */
  int read_only;                   /* 0; 1: see stride_refresh() */
  int durability;                  /* STRIDE_DURABILITY_SYNC */
  int backend;                     /* STRIDE_BACKEND_AUTOMATIC */
  int value_placement;             /* STRIDE_VALUES_ON_HOST */
  uint32_t threads;                /* 0: for batches, one for each core */
  uint32_t reserved;               /* 0 */
  uint64_t memory_limit_bytes;     /* 0: half of the machine's (or control group's) memory, for
                                      memtables and recent segments */
  uint64_t gpu_memory_limit_bytes; /* 0: nine tenths of what is free; else 256 MiB at least */
  uint64_t memtable_bytes;         /* 128 MiB: of small commits' rows; 0: each makes a segment */
  int background_work;             /* 1; 0: the library has no threads that flush and merge */
  uint32_t reserved_too;           /* 0 */
  const int32_t* devices;          /* NULL: the first device and all others of its model; else the
                                      numbers of those that are used, read by stride_open() alone */
  size_t device_count;             /* 0: of devices; NULL and 0 go together */
} stride_options;
/* Sets the defaults. size: sizeof(stride_options), of which no byte beyond is touched. */
STRIDE_C_API int stride_options_init(stride_options* options, size_t size);

/* Opens or makes the database in the directory `path`. options: NULL for the defaults. The caller
 * closes *database. STRIDE_NOT_FOUND, STRIDE_ALREADY_EXISTS (error_if_exists), STRIDE_LOCKED,
 * STRIDE_CORRUPTION, STRIDE_UNSUPPORTED_VERSION, STRIDE_PERMISSION_DENIED, STRIDE_UNAVAILABLE,
 * STRIDE_IO_ERROR, STRIDE_NO_SPACE; STRIDE_INVALID_ARGUMENT also for a directory of other files. */
STRIDE_C_API int stride_open(const char* path, const stride_options* options,
                             stride_database** database);
/* Makes everything durable; the handle is gone, whatever the status is. Open transactions can only
 * be aborted then (a commit is STRIDE_CLOSED); snapshots, scans and results go on. STRIDE_POISONED,
 * STRIDE_IO_ERROR, STRIDE_NO_SPACE: commits that were not synced may be lost. */
STRIDE_C_API int stride_close(stride_database* database);
/* Makes all that was committed durable, whatever its level: it survives a power loss.
 * STRIDE_IO_ERROR and STRIDE_POISONED: it may not. STRIDE_READ_ONLY, STRIDE_CLOSED. */
STRIDE_C_API int stride_sync(stride_database* database);
/* Of a read_only handle: snapshots see afterwards what another process has committed before
 * (docs/readers.md). Where it fails all is as before: STRIDE_UNAVAILABLE, STRIDE_CORRUPTION,
 * STRIDE_IO_ERROR, STRIDE_CLOSED. */
STRIDE_C_API int stride_refresh(stride_database* database);
/* Bytes of all files. Cheap. */
STRIDE_C_API int stride_size(stride_database* database, uint64_t* bytes);
/* Merges what all commits have written, table by table, and drops what was erased.
 * STRIDE_READ_ONLY, STRIDE_CLOSED, STRIDE_POISONED, STRIDE_NO_SPACE, STRIDE_IO_ERROR,
 * STRIDE_CORRUPTION. */
STRIDE_C_API int stride_compact(stride_database* database);
/* Reads and checks every byte. STRIDE_CORRUPTION names file and offset; STRIDE_IO_ERROR. */
STRIDE_C_API int stride_verify(stride_database* database);

/* ---- Tables: named, ordered maps of byte strings to byte strings ---- */

/* key_width: every key has this many bytes (up to 65,535); 0: any length. name: 1 to 255 bytes.
 * The caller releases *table, which may be used as long as it likes; once the table is dropped,
 * other calls return STRIDE_NOT_FOUND. STRIDE_ALREADY_EXISTS, and as stride_commit(). */
STRIDE_C_API int stride_table_create(stride_database* database, const char* name,
                                     uint32_t key_width, stride_table** table);
/* STRIDE_NOT_FOUND. */
STRIDE_C_API int stride_table_open(stride_database* database, const char* name,
                                   stride_table** table);
/* STRIDE_INVALID_ARGUMENT also where it is there with another key width, or as a prefix table. */
STRIDE_C_API int stride_table_open_or_create(stride_database* database, const char* name,
                                             uint32_t key_width, stride_table** table);
STRIDE_C_API int stride_table_release(stride_table* table);
STRIDE_C_API int stride_table_key_width(stride_table* table, uint32_t* key_width);

/* In place of a number of address bits: addresses are byte strings of any length. */
#define STRIDE_BYTE_STRINGS 0xFFFFFFFFu

/* Types of numbers, little-endian, of 4 or 8 bytes. */
enum {
  STRIDE_NUMBERS_NONE = 0, /* bytes, not numbers */
  STRIDE_NUMBERS_I32 = 1,
  STRIDE_NUMBERS_I64 = 2,
  STRIDE_NUMBERS_F32 = 3,
  STRIDE_NUMBERS_F64 = 4
};

/* What becomes of a sum of integers that does not fit its type. */
enum {
  STRIDE_OVERFLOW_ERROR = 0, /* the commit fails, and nothing of it is there */
  STRIDE_OVERFLOW_WRAP = 1   /* two's complement */
};

/* None of these can be changed later. Files with numbers, or with values that are shared, are
 * STRIDE_UNSUPPORTED_VERSION to versions that do not know them. */
typedef struct stride_table_options {
  size_t size;           /* sizeof(stride_table_options) */
  uint32_t key_width;    /* 0; as of stride_table_create() */
  uint32_t address_bits; /* 0: an ordinary table. Else a prefix table (stridedb_prefixes.h): bits
                            of its addresses (up to 65,535), or STRIDE_BYTE_STRINGS; key_width is
                            0 then */
  int numbers;           /* STRIDE_NUMBERS_NONE: values are any bytes. Else a table of numbers: each
                            value is one of this type, and stride_accumulate() adds to it */
  int overflow;          /* STRIDE_OVERFLOW_ERROR; of tables of i32 and i64 */
  int share_equal_values; /* 0; 1: segments keep one of equal values (the same bytes) */
  uint32_t reserved;      /* 0 */
  const char* schema;     /* NULL: values are bytes. Else the table's columns, as "id u64 key, name
                             string, score f64?" (stridedb_columns.h). Read during the call */
  const char* expiry_column; /* NULL: rows do not end. Else the value column of the schema, a
                                timestamp, from which time on a row is not found any longer by
                                snapshots that are taken then. One that is null does not end. Not of
                                a prefix table; files with such a table are
                                STRIDE_UNSUPPORTED_VERSION to versions that do not know them */
  int64_t time_to_live;      /* microseconds: rows that are put with a null there end so long after
                                that, and the cell is set; the column is nullable then. 0: they do
                                not end */
} stride_table_options;
/* Sets the defaults: an ordinary table with keys of any length. As stride_options_init(). */
STRIDE_C_API int stride_table_options_init(stride_table_options* options, size_t size);
/* As without _with, with all that there is to choose. options: NULL for the defaults. */
STRIDE_C_API int stride_table_create_with(stride_database* database, const char* name,
                                          const stride_table_options* options,
                                          stride_table** table);
/* STRIDE_INVALID_ARGUMENT also where it is there with other options. */
STRIDE_C_API int stride_table_open_or_create_with(stride_database* database, const char* name,
                                                  const stride_table_options* options,
                                                  stride_table** table);
/* As stride_table_create_with(), for a table that is there once the transaction is committed, with
 * its first rows, or not at all. Until then it serves this transaction alone.
 * STRIDE_ALREADY_EXISTS, also of stride_commit(), where another transaction was faster. */
STRIDE_C_API int stride_table_create_in(stride_transaction* transaction, const char* name,
                                        const stride_table_options* options, stride_table** table);
/* Sets the bits of a prefix table's addresses; 0: it is none. */
STRIDE_C_API int stride_table_address_bits(stride_table* table, uint32_t* address_bits);
/* The type of a table of numbers, and what becomes of sums that do not fit. Either may be NULL. */
STRIDE_C_API int stride_table_numbers(stride_table* table, int* numbers, int* overflow);
/* Drops the table, durably. Older snapshots still read it. STRIDE_NOT_FOUND; as stride_commit(). */
STRIDE_C_API int stride_table_drop(stride_database* database, const char* name);
/* Gives the table another name, durably, and nothing else; handles and snapshots stay. As
 * stride_table_drop(); STRIDE_ALREADY_EXISTS; STRIDE_INVALID_ARGUMENT: a bad name, or ".stride". */
STRIDE_C_API int stride_table_rename(stride_database* database, const char* name,
                                     const char* new_name);
/* The same once the transaction is committed, which may then give the old name to another table. */
STRIDE_C_API int stride_table_rename_in(stride_transaction* transaction, stride_table* table,
                                        const char* new_name);

typedef struct stride_table_info {
  size_t size;      /* sizeof(stride_table_info), set by the caller */
  const char* name; /* as long as the list lives */
  uint32_t key_width;
  uint32_t address_bits; /* as stride_table_address_bits() */
  uint64_t runs;         /* that a read visits */
  uint64_t rows;         /* stored entries: erased and replaced ones count until stride_compact() */
  uint64_t bytes_on_disk;
  uint64_t memtable_rows; /* of rows: in the log and in memory, and in no segment yet */
  uint64_t filter_bytes;  /* of bytes_on_disk: filters that spare searches of newer runs */
  int numbers;            /* these three as in stride_table_options */
  int overflow;
  int share_equal_values;
  uint32_t reserved;         /* 0 */
  const char* schema;        /* as in stride_table_options, as long as the list lives; NULL: none */
  const char* expiry_column; /* the same */
  int64_t time_to_live;      /* as in stride_table_options */
} stride_table_info;
/* The tables that there are now, in the order of their creation. The caller releases *tables. */
STRIDE_C_API int stride_table_list(stride_database* database, stride_tables** tables);
STRIDE_C_API int stride_tables_size(stride_tables* tables, uint64_t* size);
/* Table `i` of the list; STRIDE_INVALID_ARGUMENT where there are not as many. STRIDE_CORRUPTION,
 * STRIDE_IO_ERROR: its schema could not be read; without `schema` (a smaller size) the rest can. */
STRIDE_C_API int stride_tables_get(stride_tables* tables, uint64_t i, stride_table_info* info);
STRIDE_C_API int stride_tables_release(stride_tables* tables);

/* ---- Transactions: changes that become visible and durable as a whole or not at all ---- */

/* Any number may be open at once, on the same tables too; each stages in memory and waits for no
 * other. There are no conflicts: of two commits that change a key the later one wins, and within a
 * transaction the last change. Each ends by stride_commit() or stride_abort(). A table serves the
 * database that it was opened with, until that is closed; any other refuses it
 * (STRIDE_INVALID_ARGUMENT). */
STRIDE_C_API int stride_begin(stride_database* database, stride_transaction** transaction);

/* Row i of keys gets row i of values. Copies both. STRIDE_INVALID_ARGUMENT also for a key that is
 * too long or not as wide as the table says, columns of different sizes and offsets that descend;
 * nothing of the call is staged then, and the transaction goes on. */
STRIDE_C_API int stride_put(stride_transaction* transaction, stride_table* table,
                            const stride_column* keys, const stride_column* values);
/* The same without a copy, for bulk loads: the memory of the columns (not the structs) must stay as
 * it is until stride_commit() or stride_abort() has returned. */
STRIDE_C_API int stride_put_view(stride_transaction* transaction, stride_table* table,
                                 const stride_column* keys, const stride_column* values);
/* One row, copied. */
STRIDE_C_API int stride_put_one(stride_transaction* transaction, stride_table* table,
                                const void* key, uint64_t key_bytes, const void* value,
                                uint64_t value_bytes);
/* Puts those rows whose key is not there when this is committed, nor in a row before; copies both.
 * These rows come after all other changes of the transaction: a key that it also puts is not new,
 * one that it erases is. was_new: NULL, or (keys->size + 63) / 64 words, all 0 until
 * stride_commit() has returned STRIDE_OK: bit i % 64 of word i / 64 is 1 then where row i was put.
 * They must stay until the transaction has ended. As stride_put(). */
STRIDE_C_API int stride_put_if_absent(stride_transaction* transaction, stride_table* table,
                                      const stride_column* keys, const stride_column* values,
                                      uint64_t* was_new);

/* Adds deltas[i] to the number of row i of keys, of a table of numbers:
 *
 *   int64_t deltas[] = {1, 5};
 *   stride_accumulate(t, hits, &keys, STRIDE_NUMBERS_I64, deltas);
 *
 * A key that is not there, or was erased, has 0; rows of equal keys add up. After a put of the same
 * transaction the sum is of what was put; later puts and erasures of a key outdo what was added
 * before. deltas: keys->size numbers of the table's type, which `numbers` has to be; copied.
 * Integers are exact: where a sum does not fit in the end, stride_commit() is
 * STRIDE_INVALID_ARGUMENT and names the key, or the sum wraps (STRIDE_OVERFLOW_). Floats give the
 * same bits for any order of rows and any number of threads; deltas less than 2^-64 of the
 * transaction's largest may be cut. As stride_put(). */
STRIDE_C_API int stride_accumulate(stride_transaction* transaction, stride_table* table,
                                   const stride_column* keys, int numbers, const void* deltas);
/* One row, of a table of i32 or i64. */
STRIDE_C_API int stride_accumulate_one(stride_transaction* transaction, stride_table* table,
                                       const void* key, uint64_t key_bytes, int64_t delta);

/* Erases the keys; those that are not there are fine. As stride_put(). */
STRIDE_C_API int stride_erase(stride_transaction* transaction, stride_table* table,
                              const stride_column* keys);
/* For each row i, erases the keys from row i of `from` up to row i of `to`, exclusively: those that
 * are there when this is committed, and those that the transaction has put before. Bounds have any
 * length. Costs about the same however many keys there are; of few, and in a table of prefixes, as
 * much as erasing them one by one. As stride_put(). */
STRIDE_C_API int stride_erase_ranges(stride_transaction* transaction, stride_table* table,
                                     const stride_column* from, const stride_column* to);
/* One range. from, to: NULL for no bound on that side. */
STRIDE_C_API int stride_erase_range(stride_transaction* transaction, stride_table* table,
                                    const stride_bytes* from, const stride_bytes* to);

/* Makes the rows that `count` other databases, in these directories, have in their table of this
 * name a part of this one once this is committed, newer than all that is there: their segments are
 * copied, every block checked, and the databases stay as they are. They have to be there until
 * stride_commit() has returned.
 *
 * STRIDE_INVALID_ARGUMENT, naming the database: a table of other options, rows that are not in
 * segments or that are erased (stride_compact() it and close it first), ranges of keys that
 * overlap, this database itself, or a table whose rows the transaction changes otherwise, too.
 * STRIDE_NOT_FOUND: there is no such database or table. STRIDE_CORRUPTION. Nothing of the call is
 * staged then. */
STRIDE_C_API int stride_adopt(stride_transaction* transaction, stride_table* table,
                              const char* const* databases, uint64_t count);

/* Ends the transaction; the handle is gone, whatever the status is, unless `durability` is none of
 * STRIDE_DURABILITY_. With another status than STRIDE_OK nothing of it is visible, now or after
 * reopening. STRIDE_NO_SPACE and STRIDE_RESOURCE_EXHAUSTED: try again with a new transaction.
 * STRIDE_POISONED: open the database again. STRIDE_NOT_FOUND: a table was dropped. STRIDE_IO_ERROR,
 * STRIDE_READ_ONLY, STRIDE_CLOSED, STRIDE_CORRUPTION (where it erases ranges). */
STRIDE_C_API int stride_commit(stride_transaction* transaction, int durability);

/* How far a commit is. */
typedef struct stride_commit_progress {
  size_t size;   /* sizeof(stride_commit_progress) of the library */
  double share;  /* of the time that it takes, about, from 0 to 1; never less than before */
  uint64_t rows; /* that are in files, of total_rows that were staged */
  uint64_t total_rows;
  uint64_t bytes; /* of files that are written, of about total_bytes */
  uint64_t total_bytes;
} stride_commit_progress;
/* Returns 1 to go on, 0 to end the commit. */
typedef int (*stride_commit_callback)(const stride_commit_progress* progress, void* context);

typedef struct stride_commit_options {
  size_t size;           /* sizeof(stride_commit_options) */
  int durability;        /* STRIDE_DURABILITY_DEFAULT */
  int refuse_equal_keys; /* 0; 1: STRIDE_ALREADY_EXISTS, which names a key, where two rows of a
                            table that are put have the same one. Nothing is committed then */
  /* NULL, or watches a commit that is too large for the log: called by the thread that commits, at
   * once and then at least every 50 ms, until it returns 0 or the commit ends; never for a small
   * one. Where it returns 0 in time the commit is STRIDE_CANCELLED, some tenths of a second later,
   * and nothing of it is there; else it ends as it would have. It may use the database, but not the
   * transaction, and must return (no longjmp). */
  stride_commit_callback progress;
  void* progress_context;
} stride_commit_options;
/* Sets the defaults. As stride_options_init(). */
STRIDE_C_API int stride_commit_options_init(stride_commit_options* options, size_t size);
/* As stride_commit(), for bulk loads. options: NULL for the defaults; where they are wrong the
 * handle stays. report: NULL, or set to what was written, which the caller releases. With equal
 * keys refused, or a report, each table's rows make a run of their own, however few they are. */
STRIDE_C_API int stride_commit_with(stride_transaction* transaction,
                                    const stride_commit_options* options,
                                    stride_commit_report** report);
/* How many different keys the commit has put into the table, sums included; 0 where it put none. */
STRIDE_C_API int stride_commit_report_keys(stride_commit_report* report, const char* table,
                                           uint64_t* keys);
/* The tables that something was put into, in the order of their names: how many, and table `i`,
 * with its keys. *table lives as long as the report. Either result may be NULL. */
STRIDE_C_API int stride_commit_report_size(stride_commit_report* report, uint64_t* size);
STRIDE_C_API int stride_commit_report_get(stride_commit_report* report, uint64_t i,
                                          const char** table, uint64_t* keys);
STRIDE_C_API int stride_commit_report_release(stride_commit_report* report);

/* Ends the transaction without a trace; the handle is gone. NULL is fine. */
STRIDE_C_API int stride_abort(stride_transaction* transaction);

/* ---- Snapshots: the database as it was at one moment ---- */

/* Cheap; readers never wait for writers. The caller releases *snapshot; files that it reads stay on
 * the disk until then. Every call that reads returns STRIDE_NOT_FOUND for a table that is not in
 * the snapshot and STRIDE_CORRUPTION or STRIDE_IO_ERROR where stored bytes could not be read. */
STRIDE_C_API int stride_snapshot_take(stride_database* database, stride_snapshot** snapshot);
STRIDE_C_API int stride_snapshot_release(stride_snapshot* snapshot);
/* How many keys the table has. Reads all keys where several commits have written to it. */
STRIDE_C_API int stride_count(stride_snapshot* snapshot, stride_table* table, uint64_t* keys);
/* Looks up one key. value->data is NULL where it is not there, and only then; else a view, without
 * a copy, that is valid while the snapshot lives. */
STRIDE_C_API int stride_get_one(stride_snapshot* snapshot, stride_table* table, const void* key,
                                uint64_t key_bytes, stride_bytes* value);

/* Memory of the library for the values of a batch, to be used for many batches. */
STRIDE_C_API int stride_values_create(stride_values** values);
STRIDE_C_API int stride_values_release(stride_values* values);
/* Looks up a batch of keys, in any order and with duplicates, and copies what is found into
 * `values`, whose earlier content is gone, also after an error. Keys that no table could hold are
 * not found. */
STRIDE_C_API int stride_get(stride_snapshot* snapshot, stride_table* table,
                            const stride_column* keys, stride_values* values);

/* What the last stride_get() or stride_match() into `values` has found: row i belongs to key (or
 * address) i and is empty where that was not found. column has offsets, the first of which is 0.
 * Bit i % 64 of word i / 64 of validity is 1 where key i was found (an Arrow validity bitmap);
 * validity is NULL where there are no rows. Either result may be NULL. Valid until `values` is used
 * again or released. STRIDE_INVALID_ARGUMENT where there was no such call or it failed. */
STRIDE_C_API int stride_values_read(stride_values* values, stride_column* column,
                                    const uint64_t** validity);

/* Memory of the caller for the values of a batch of n keys. */
typedef struct stride_buffers {
  size_t size;         /* sizeof(stride_buffers), set by the caller */
  void* data;          /* the values, one after the other */
  uint64_t data_bytes; /* how many there is room for */
  uint64_t* offsets;   /* n + 1: value i is data[offsets[i]] up to data[offsets[i + 1]] */
  uint64_t* validity;  /* (n + 63) / 64 words, as in stride_values_read() */
  uint64_t needed;     /* out: the bytes of all values */
} stride_buffers;

/* As stride_get(), into the caller's memory. STRIDE_TOO_SMALL where data does not hold the values:
 * `needed` says how much would, offsets and validity are complete, and data is undefined. `needed`
 * is 0 after any other error. workspace: NULL, or keeps 8 bytes a key between calls; its content
 * goes. */
STRIDE_C_API int stride_get_into(stride_snapshot* snapshot, stride_table* table,
                                 const stride_column* keys, stride_values* workspace,
                                 stride_buffers* buffers);

/* Memory of the library for where the values of a batch are: 8 bytes a key. */
STRIDE_C_API int stride_references_create(stride_references** references);
STRIDE_C_API int stride_references_release(stride_references* references);
/* As stride_get(), but copies no values. The references keep alive what they point to, files too,
 * until they are used again or released, even when the snapshot goes before. */
STRIDE_C_API int stride_find(stride_snapshot* snapshot, stride_table* table,
                             const stride_column* keys, stride_references* references);
/* How many keys or addresses the last stride_find() or stride_match_references() was asked for and,
 * as in stride_values_read(), which it found. Either may be NULL. */
STRIDE_C_API int stride_references_read(stride_references* references, uint64_t* size,
                                        const uint64_t** validity);
/* Views of the values of keys first to first + n - 1, for any thread: the data of values[k] is NULL
 * where key first + k is not there, and only then. STRIDE_INVALID_ARGUMENT: there were fewer keys.
 */
STRIDE_C_API int stride_references_get(stride_references* references, uint64_t first, uint64_t n,
                                       stride_bytes* values);

#ifdef __cplusplus
}
#endif

#include "stridedb_dedup.h"
#include "stridedb_group_by.h"
#include "stridedb_prefixes.h"
#include "stridedb_scan.h"

#endif
