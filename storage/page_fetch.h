// Brings ranges of a file into the page cache, with many reads in flight.
//
//   Status s = fetch_pages(fd, path, ranges);    // returns when all of them have been read
//
// Short ranges through io_uring where the program was built with liburing and the system allows it
// (containers often do not), else by threads. Long ones by a few threads in large pieces, with the
// system's own read-ahead: its pages are then large, too, and take a third less time than those of
// single reads. What is read is thrown away. Internal to storage.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "storage/file.h"
#include "storage/status.h"

namespace stride {

inline constexpr unsigned fetch_depth = 128;   // reads in flight through io_uring
inline constexpr unsigned fetch_threads = 32;  // in its place
inline constexpr uint64_t fetch_page_bytes = 4096;
inline constexpr uint64_t fetch_piece_bytes = 128 << 10;  // of one read, at most
inline constexpr uint64_t long_range_bytes = 8 << 20;     // of ranges that are read ahead
inline constexpr uint64_t long_piece_bytes = 1 << 20;
inline constexpr unsigned long_range_threads = 8;

enum class FetchBy : uint8_t { anything, threads };

// Reads are issued in the order of the ranges, those of more than fetch_piece_bytes in pieces, and
// those of long_range_bytes or more before all others. Leaves the descriptor's file set to random
// access, so that nothing but the ranges is read. Errors as for Mapping::fetch(); `path` is for
// their messages.
Status fetch_pages(int fd, const std::string& path, std::span<const FileRange> ranges,
                   FetchBy by = FetchBy::anything);

}  // namespace stride
