// Brings ranges of a file into the page cache, with many reads in flight.
//
//   Status s = fetch_pages(fd, path, ranges);    // returns when all of them have been read
//
// Through io_uring where the program was built with liburing and the system allows it (containers
// often do not), else by threads. What is read is thrown away. Internal to storage.
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

enum class FetchBy : uint8_t { anything, threads };

// Reads are issued in the order of the ranges, those of more than fetch_piece_bytes in pieces. Sets
// the descriptor's file to random access, so that nothing but the ranges is read. Errors as for
// Mapping::fetch(); `path` is for their messages.
Status fetch_pages(int fd, const std::string& path, std::span<const FileRange> ranges,
                   FetchBy by = FetchBy::anything);

}  // namespace stride
