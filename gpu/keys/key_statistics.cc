#include "gpu/key_statistics.h"

#include <algorithm>
#include <cstring>

#include "gpu/tree_index.h"
#include "storage/column.h"
#include "storage/status.h"

namespace stride {

namespace {

constexpr uint32_t statistics_version = 1;

// As stored, before the arrays.
struct StoredHead {
  uint32_t version, samples, points, width;
  uint64_t keys, key_bytes;
  uint32_t prefix_bits, reserved;
};
static_assert(sizeof(StoredHead) == 40);

template <class T>
void append(std::string* to, const std::vector<T>& from) {
  to->append(reinterpret_cast<const char*>(from.data()), from.size() * sizeof(T));
}
template <class T>
void take(const std::byte** from, uint64_t n, std::vector<T>* to) {
  to->resize(n);
  if (n) std::memcpy(to->data(), *from, n * sizeof(T));
  *from += n * sizeof(T);
}

uint64_t stored_bytes(uint64_t samples, uint64_t points) {
  return sizeof(StoredHead) + 4 * (2 * samples + 2 * samples + 1 + 2 * points) +
         8 * samples * KeyStatistics::head_words;
}

// Whether points are as key_statistics.h says.
bool in_order(const KeyStatistics& s) {
  if (s.first.front() != 0 || s.first.back() != s.distances.size()) return false;
  for (size_t side = 0; side + 1 < s.first.size(); ++side) {
    if (s.first[side] > s.first[side + 1] || s.first[side + 1] > s.distances.size()) return false;
    uint32_t distance = 0, shared = 0xFFFFFFFF;
    for (uint32_t p = s.first[side]; p < s.first[side + 1]; ++p) {
      if (s.distances[p] <= distance || s.shared[p] > shared) return false;
      distance = s.distances[p];
      shared = s.shared[p];
    }
  }
  return std::all_of(s.ranks.begin(), s.ranks.end(), [&](uint32_t rank) { return rank < s.keys; });
}

}  // namespace

uint32_t default_samples(uint64_t keys) {
  // A sample takes some 3 us of a host thread, and some 300 bytes of a segment.
  constexpr uint64_t keys_per_sample = 1024, fewest = 64, most = 256;
  return static_cast<uint32_t>(std::clamp(keys / keys_per_sample, fewest, most));
}

std::string KeyStatistics::serialize() const {
  StoredHead head{statistics_version,
                  samples(),
                  static_cast<uint32_t>(distances.size()),
                  width,
                  keys,
                  key_bytes,
                  prefix_bits,
                  0};
  std::string bytes(reinterpret_cast<const char*>(&head), sizeof head);
  append(&bytes, heads);
  append(&bytes, ranks);
  append(&bytes, lengths);
  append(&bytes, first);
  append(&bytes, distances);
  append(&bytes, shared);
  return bytes;
}

Result<KeyStatistics> KeyStatistics::parse(Bytes bytes) {
  auto bad = [](const char* what) {
    return Status(StatusCode::corruption, std::string("statistics of keys: ") + what);
  };
  StoredHead head;
  if (bytes.size() < sizeof head) return bad("too short");
  std::memcpy(&head, bytes.data(), sizeof head);
  if (head.version != statistics_version)
    return bad("of another version").with_remedy("compact the table");
  constexpr uint32_t most_samples = 1 << 20;
  if (head.keys > max_index_keys) return bad("of more keys than an index has");
  if (head.samples > most_samples || bytes.size() != stored_bytes(head.samples, head.points))
    return bad("of another size than they say");
  KeyStatistics s;
  s.keys = head.keys;
  s.key_bytes = head.key_bytes;
  s.width = head.width;
  s.prefix_bits = head.prefix_bits;
  const std::byte* at = bytes.data() + sizeof head;
  uint64_t samples = head.samples, points = head.points;
  take(&at, samples * head_words, &s.heads);
  take(&at, samples, &s.ranks);
  take(&at, samples, &s.lengths);
  take(&at, 2 * samples + 1, &s.first);
  take(&at, points, &s.distances);
  take(&at, points, &s.shared);
  if (!in_order(s)) return bad("damaged");
  return s;
}

}  // namespace stride
