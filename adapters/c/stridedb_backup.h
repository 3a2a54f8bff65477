/* Copies of a whole database: checkpoints, backups, and databases that are restored from these.
 * Programs include this header themselves; stridedb.h says what holds for all functions, and
 * docs/backup.md what each copy is for.
 *
 *   stride_checkpoint(db, "/snapshots/today", NULL, NULL);
 *   stride_backup(db, "/backups/app", NULL, NULL);
 *   stride_restore("/backups/app", "/var/lib/app/db", NULL, NULL);
 */
#ifndef STRIDEDB_BACKUP_H
#define STRIDEDB_BACKUP_H

#include "stridedb.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How far a copy is. */
typedef struct stride_copy_progress {
  size_t size;    /* sizeof(stride_copy_progress) of the library */
  uint64_t files; /* that are done, of total_files that are copied or linked */
  uint64_t total_files;
  uint64_t bytes; /* that are written, of total_bytes that are copied */
  uint64_t total_bytes;
} stride_copy_progress;

typedef struct stride_copy_options {
  size_t size; /* sizeof(stride_copy_options) */
  /* NULL, or watches the copy: called by the thread that made the call, at once and then at least
   * every 50 ms, until it returns 0 or the call ends. Where it returns 0 the call is
   * STRIDE_CANCELLED, some tenths of a second later. It may use the database and must return (no
   * longjmp). */
  int (*progress)(const stride_copy_progress* progress, void* context);
  void* progress_context;
} stride_copy_options;
/* Sets the defaults. As stride_options_init(). */
STRIDE_C_API int stride_copy_options_init(stride_copy_options* options, size_t size);

/* What a copy has, and what was done for it. */
typedef struct stride_copy_report {
  size_t size; /* sizeof(stride_copy_report), set by the caller */
  uint64_t files, bytes;
  uint64_t copied_files, copied_bytes; /* of these: written by this call */
  uint64_t linked_files;               /* of these: other names of the database's own files */
} stride_copy_report;

/* Each takes NULL for `options` and `report`.
 *
 * A directory that is a database of its own, with all that was committed when the call began.
 * Commits go on meanwhile. STRIDE_ALREADY_EXISTS: the directory is there. STRIDE_CLOSED,
 * STRIDE_POISONED, STRIDE_NO_SPACE, STRIDE_IO_ERROR, STRIDE_CANCELLED; STRIDE_CORRUPTION: a segment
 * cannot be opened. */
STRIDE_C_API int stride_checkpoint(stride_database* database, const char* directory,
                                   const stride_copy_options* options, stride_copy_report* report);
/* Brings the backup in the directory up to date, or makes it there: copies what it does not have,
 * and checks every byte that it copies. What ends early is gone on with by the next call, and the
 * backup before it stays whole until then. STRIDE_INVALID_ARGUMENT: the backup is another
 * database's, or the directory has other files. STRIDE_CORRUPTION: a segment is damaged.
 * STRIDE_LOCKED: another backup goes on there. And as stride_checkpoint(). */
STRIDE_C_API int stride_backup(stride_database* database, const char* directory,
                               const stride_copy_options* options, stride_copy_report* report);
/* Makes a database of a backup, every byte of which is checked. STRIDE_NOT_FOUND: there is no
 * backup, or the first one has not come to its end. STRIDE_ALREADY_EXISTS: new_directory is there.
 * STRIDE_CORRUPTION: a file of the backup is damaged or missing. STRIDE_UNAVAILABLE: another backup
 * was completed meanwhile; call it again. STRIDE_NO_SPACE, STRIDE_IO_ERROR, STRIDE_CANCELLED. */
STRIDE_C_API int stride_restore(const char* backup_directory, const char* new_directory,
                                const stride_copy_options* options, stride_copy_report* report);

#ifdef __cplusplus
}
#endif

#endif
