/* All damage of a database's files, and a new database of what is left of them. Programs include
 * this header themselves; stridedb.h says what holds for all functions, and docs/damage.md
 * what becomes of a damaged database.
 *
 *   int print(const stride_damage* d, void* context) { return puts(d->text) >= 0; }
 *   ...
 *   if (stride_verify_each(db, print, NULL) == STRIDE_CORRUPTION) ...
 *   stride_salvage("/var/lib/app/db", "/var/lib/app/db-salvaged", NULL, NULL, NULL, NULL);
 */
#ifndef STRIDEDB_SALVAGE_H
#define STRIDEDB_SALVAGE_H

#include "stridedb.h"
#include "stridedb_backup.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes of a file that are not what was written, and what needs them, or rows that are lost. Valid
 * during the call that is given it. */
typedef struct stride_damage {
  size_t size;         /* sizeof(stride_damage) of the library */
  const char* text;    /* all of it, as a sentence */
  const char* file;    /* with the database's path */
  const char* section; /* "key_data", "header", "manifest", ...; "" of rows that are lost */
  uint64_t offset, bytes;
  const char* what;  /* "the checksum of a block differs" */
  const char* table; /* "": not known, or any */
  uint64_t rows;     /* that need the bytes, or are lost, at most; 0: none, or not known */
  /* The rows have keys from first_key to last_key, both included; where has_first_key or
   * has_last_key is 0 there is no such bound. */
  int has_first_key, has_last_key;
  stride_bytes first_key, last_key;
  int status;            /* STRIDE_CORRUPTION, STRIDE_IO_ERROR or STRIDE_UNSUPPORTED_VERSION */
  int older_rows_remain; /* of rows that are lost: what they had replaced may be there again */
} stride_damage;

/* Called by the thread that made the call, before that returns. Where it returns 0 it is not called
 * again. It must return (no longjmp). */
typedef int (*stride_damage_callback)(const stride_damage* damage, void* context);

/* As stride_verify(), and goes on after the first damage: calls `each` with all there is, in the
 * order of the files. STRIDE_CORRUPTION: there is some. */
STRIDE_C_API int stride_verify_each(stride_database* database, stride_damage_callback each,
                                    void* context);
/* The same of a database that need not be one that can be opened. STRIDE_NOT_FOUND: there is no
 * such directory; STRIDE_INVALID_ARGUMENT: it has no file of a database. STRIDE_LOCKED: a process
 * writes it. */
STRIDE_C_API int stride_verify_files(const char* directory, stride_damage_callback each,
                                     void* context);

/* What a new database has of a damaged one. */
typedef struct stride_salvage_report {
  size_t size;           /* sizeof(stride_salvage_report), set by the caller */
  int complete;          /* 1: all rows, in the tables that they were in */
  uint64_t files, bytes; /* of segments */
  uint64_t rebuilt_files;
  uint64_t tables, unnamed_tables, rows;
  uint64_t lost_ranges, lost_rows; /* the rows as far as their number is known */
  uint64_t uncertain;              /* things that the files do not tell */
} stride_salvage_report;

/* Recovers the rows of every block that is intact into a new database. The source is only read.
 * options: as for copies. lost: NULL, or called for each range of rows that is lost. report: may be
 * NULL. STRIDE_OK: there is a new database, which may be a part of the old one. Else there is none:
 * STRIDE_NOT_FOUND, STRIDE_INVALID_ARGUMENT and STRIDE_LOCKED as for stride_verify_files();
 * STRIDE_ALREADY_EXISTS: new_directory is there; STRIDE_CORRUPTION: nothing is left;
 * STRIDE_UNSUPPORTED_VERSION, STRIDE_NO_SPACE, STRIDE_IO_ERROR, STRIDE_CANCELLED. */
STRIDE_C_API int stride_salvage(const char* source, const char* new_directory,
                                const stride_copy_options* options, stride_damage_callback lost,
                                void* context, stride_salvage_report* report);

#ifdef __cplusplus
}
#endif

#endif
