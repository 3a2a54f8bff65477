// What executes batches: host threads, or a CUDA device with host threads beside it.
//
//   std::unique_ptr<Backend> backend = Backend::automatic();     // a device where there is one
//   Sorted s;
//   backend->sort(chunks, &s);                                   // newest of equal keys stays
//   std::vector<std::byte> image;
//   backend->build_tree(column, TreeOptions{}, &image);
//   IndexView index{column, tree};
//   backend->find({&index, 1}, queries, locations);
//
// Every call is one virtual call for a whole batch, blocks until the batch is done, and may be made
// from several threads at once. Ranks are 32 bits: an index holds at most 2^32 - 2 keys.
//
// A device searches the indexes that are resident there, and the host all others, with the same
// results:
//
//   auto index = backend->make_resident(view);                   // copies keys and tree to it
//   backend->find_ranks((*index)->view(), queries, ranks);
//
// Queries and results of a resident index may lie in host memory or, in any mix, in the device's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "gpu/access_costs.h"
#include "gpu/key_statistics.h"
#include "gpu/location.h"
#include "gpu/scatter_add.h"
#include "gpu/tree_options.h"
#include "gpu/vector_set.h"
#include "storage/block_guard.h"
#include "storage/column.h"
#include "storage/prefix_key.h"
#include "storage/status.h"

namespace stride {

inline constexpr uint64_t max_index_keys = 0xFFFFFFFEull;
// That build_matches() takes.
inline constexpr uint64_t max_match_prefixes = 0x7FFFFFFE;

// Row `row` of chunk `chunk` of a staged batch. A chunk has at most 65,536 rows.
inline constexpr uint32_t row_bits = 16;
inline uint32_t make_row_id(uint32_t chunk, uint32_t row) { return chunk << row_bits | row; }

// Memory for large arrays that are written in any order: on huge pages where they are worth it.
// Throws std::bad_alloc.
void* allocate_bulk(uint64_t bytes);
void free_bulk(void* memory);

// A vector whose resize() leaves new elements uninitialised, so that the threads which fill it are
// the first to touch its pages.
template <class T>
struct BulkAllocator {
  using value_type = T;
  BulkAllocator() = default;
  template <class U>
  BulkAllocator(const BulkAllocator<U>&) {}  // NOLINT: implicit on purpose
  T* allocate(size_t n) { return static_cast<T*>(allocate_bulk(n * sizeof(T))); }
  void deallocate(T* p, size_t) { free_bulk(p); }
  template <class U>
  void construct(U* p) {
    ::new (static_cast<void*>(p)) U;
  }
  template <class U, class... Arguments>
  void construct(U* p, Arguments&&... arguments) {
    ::new (static_cast<void*>(p)) U(std::forward<Arguments>(arguments)...);
  }
  bool operator==(const BulkAllocator&) const { return true; }
};
template <class T>
using BulkVector = std::vector<T, BulkAllocator<T>>;

struct Sorted {
  // Row ids in ascending key order; of equal keys only the one with the largest id (the newest).
  BulkVector<uint32_t> order;
  // Where all keys are 8 bytes: the keys in that order, as stored (big-endian bytes). Else empty.
  BulkVector<uint64_t> keys8;
};

// A tree that was found to be sound. Owns nothing.
struct TreeView {
  const std::byte* image = nullptr;  // aligned to 8 bytes; null: no tree, search the column alone
  uint64_t image_bytes = 0;
};

class ResidentIndex;

// What belongs to the keys of an index, and may be kept on a device beside them.
struct IndexRows {
  const PackedColumn* values = nullptr;  // null: not kept
  // For each row, not 0: the key counts as absent (a tombstone). Null: none.
  const uint8_t* hidden = nullptr;
};

// One sorted, duplicate-free key column and its tree: what a segment offers to a search.
struct IndexView {
  PackedColumn keys;
  TreeView tree;
  BlockGuard* guard = nullptr;  // null: all bytes are known to be intact
  // The column that the caller reads next, at the rank that is found. A search for one key asks for
  // it together with the keys of the leaf, so that the cache misses overlap. Null: none.
  const PackedColumn* rows = nullptr;
  // Null: searched on the host.
  const ResidentIndex* resident = nullptr;
};

class ResidentMatches;

// What Backend::build_matches() made. Owns nothing.
struct MatchView {
  const std::byte* image = nullptr;  // in host memory, aligned to 8 bytes
  uint64_t image_bytes = 0;
  // Null: searched on the host.
  const ResidentMatches* resident = nullptr;
};

// The half-open interval of ranks [first, last).
struct RankInterval {
  uint32_t first;
  uint32_t last;
};

struct TreeStatistics {
  std::vector<uint32_t> strides;  // as built
  std::vector<uint64_t> nodes;    // of each level; the root is level 0
  std::vector<NodeKind> kinds;    // of each level
  uint32_t prefix_bits = 0;       // that all keys share
  uint32_t leaf_capacity = 0;
  uint64_t keys = 0;
  uint64_t image_bytes = 0;
};

// A key column and its tree where a backend searches them: in the memory of its device, or where
// they were made. Immutable. Must not outlive the backend that made it.
class ResidentIndex {
 public:
  virtual ~ResidentIndex() = default;
  // For searches by the backend that made it, while this lives. Its pointers need not be the
  // host's.
  virtual IndexView view() const = 0;
  // The tree image; the same bytes from every backend.
  virtual Status copy_image(std::vector<std::byte>* image) const = 0;
  // The rows of the key column, one after the other, and where each ends.
  virtual Status copy_keys(std::vector<std::byte>* keys, std::vector<uint64_t>* offsets) const = 0;
  virtual bool on_device() const = 0;
  // Whether the values are kept beside the keys.
  virtual bool has_values() const = 0;
  // Memory that searches need: keys, tree, what the device derives from them, and values.
  virtual uint64_t memory_bytes() const = 0;
};

// What belongs to the prefixes of matches, and may be kept on a device beside them.
struct MatchRows {
  const Location* rows = nullptr;    // of each rank; null: rank r is row r of index 0
  const uint8_t* lengths = nullptr;  // of each prefix, in bits; null: only ranks are asked for
};

// A copy of what build_matches() made in the memory of a backend's device. Immutable. Must not
// outlive the backend that made it.
class ResidentMatches {
 public:
  virtual ~ResidentMatches() = default;
  virtual uint64_t memory_bytes() const = 0;
};

// Memory of a backend's device or of the host. Must not outlive the backend.
class BackendMemory {
 public:
  virtual ~BackendMemory() = default;
  std::byte* data() const { return data_; }
  uint64_t size() const { return size_; }

 protected:
  std::byte* data_ = nullptr;
  uint64_t size_ = 0;
};

// Takes the answers to queries [first, first + locations.size()). Called from several threads at
// once; what it returns, if not ok, ends the search.
using TakeLocations = std::function<Status(uint64_t first, std::span<const Location> locations)>;

// The values that a batch has found, still on the device. Must not outlive the indexes.
class FoundValues {
 public:
  virtual ~FoundValues() = default;
  virtual uint64_t bytes() const = 0;
  // To host memory, one after the other in the order of the queries. Call it once: it completes the
  // offsets that find_values() was given.
  virtual Status copy(std::byte* values) = 0;
};

enum class KeyOrder { any, ascending };

// What the machine allows, measured: a search cannot be faster than its memory accesses.
struct BackendLimits {
  double gathers_per_second = 0;     // of random memory sectors: 32 bytes of a device, 64 of a host
  double copy_bytes_per_second = 0;  // read and written, in the memory that is searched
  // 0 where there is no device:
  double bus_in_bytes_per_second = 0;    // from pinned host memory to the device
  double bus_out_bytes_per_second = 0;   // and back
  double bus_both_bytes_per_second = 0;  // each way, both at once
};

class Backend;

struct CudaOptions {
  int device = 0;
  uint64_t memory_limit = 0;  // bytes of the device's memory; 0: nine tenths of what is free
  // For what stays on the host. Null: one of its own, with host_threads as in Backend::host().
  std::shared_ptr<Backend> host = nullptr;
  unsigned host_threads = 0;
};

class Backend {
 public:
  // A pool of `threads` workers (the calling thread is one of them), at most one a core; 0: one for
  // each core.
  static std::unique_ptr<Backend> host(unsigned threads);
  // unavailable: built without CUDA, no driver, no such device, or one too old. The message says
  // which.
  static Result<std::unique_ptr<Backend>> cuda(const CudaOptions& options = {});
  // The first CUDA device where there is one, else the host.
  static std::unique_ptr<Backend> automatic(unsigned threads = 0);
  virtual ~Backend() = default;

  virtual std::string name() const = 0;  // "host (16 threads)", "cuda:0 (NVIDIA H200)"
  virtual unsigned threads() const = 0;
  virtual bool has_device() const = 0;

  // Sorts the rows of `chunks` by key (unsigned bytes, a prefix first). Chunks may mix fixed and
  // variable layouts. At most 65,536 chunks of at most 65,536 rows. Stable: of equal keys only the
  // row with the largest id is kept.
  virtual Status sort(std::span<const KeyColumn> chunks, Sorted* sorted) = 0;

  // Samples a strictly ascending column, in host memory or the device's (gpu/key_statistics.h).
  virtual Status measure_keys(const PackedColumn& keys, const SampleOptions& options,
                              KeyStatistics* statistics) = 0;
  // What reads of the memory that is searched cost on this machine: takes some tenths of a second.
  virtual Status measure_costs(AccessCosts* costs) = 0;
  // Trees are chosen by these costs where their options leave strides open. Until they are set,
  // they are those of a typical machine, or of a typical host for a host's backend.
  AccessCosts access_costs() const;
  void set_access_costs(const AccessCosts& costs);

  // Builds the tree over a strictly ascending column, as a flat image (docs/format.md). The same
  // bytes from every backend, for the same options with strides, or the same access costs.
  // invalid_argument: more than max_index_keys keys, or options that do not hold.
  virtual Status build_tree(const PackedColumn& keys, const TreeOptions& options,
                            std::vector<std::byte>* image) = 0;

  // For each query, the first of `indexes` (newest first) that holds the key, and its rank.
  // out has queries.size entries. The trees must have passed check_tree().
  virtual Status find(std::span<const IndexView> indexes, const KeyColumn& queries,
                      std::span<Location> out) = 0;
  // The same, handed over in blocks while other blocks are still searched.
  virtual Status find_blocks(std::span<const IndexView> indexes, const KeyColumn& queries,
                             const TakeLocations& take) = 0;
  // For each query, its rank in one index, or Location::absent.
  virtual Status find_ranks(const IndexView& index, const KeyColumn& queries,
                            std::span<uint32_t> out) = 0;
  // For each query, how many keys of the index are smaller than it.
  virtual Status lower_bound(const IndexView& index, const KeyColumn& queries,
                             std::span<uint32_t> out) = 0;
  // For each query, how many keys of the index are not larger than it.
  virtual Status upper_bound(const IndexView& index, const KeyColumn& queries,
                             std::span<uint32_t> out) = 0;
  // Builds what longest_match() searches (gpu/match/match_layout.h) over a strictly ascending column
  // of prefix keys (storage/prefix_key.h). The same bytes from every backend. parents: null, or set
  // to the rank of the longest other prefix that covers each, or Location::absent.
  // invalid_argument: more than max_match_prefixes, or a row that is no prefix key.
  virtual Status build_matches(const PackedColumn& prefixes, uint32_t address_bits,
                               std::vector<std::byte>* image, std::vector<uint32_t>* parents) = 0;
  Status build_matches(const PackedColumn& prefixes, uint32_t address_bits,
                       std::vector<std::byte>* image) {
    return build_matches(prefixes, address_bits, image, nullptr);
  }
  // For each address the rank of the longest prefix that it begins with, or Location::absent.
  // Addresses have address_bytes(address_bits) bytes each, or are byte strings of any length. Of
  // matches that are resident, addresses and results may lie in host memory or the device's.
  // invalid_argument: addresses of another width.
  virtual Status longest_match(const MatchView& matches, const KeyColumn& addresses,
                               std::span<uint32_t> out) = 0;
  // For each query, the ranks of the keys that start with it.
  virtual Status prefix_interval(const IndexView& index, const KeyColumn& queries,
                                 std::span<RankInterval> out) = 0;

  // Copies an index to the device. corruption: its image does not pass check_tree(). Where it has a
  // guard, its bytes are checked first. resource_exhausted: no room within the memory limit. On a
  // backend without a device the index's own memory is used, and must outlive the result.
  virtual Result<std::shared_ptr<ResidentIndex>> make_resident(const IndexView& index,
                                                               const IndexRows& rows) = 0;
  Result<std::shared_ptr<ResidentIndex>> make_resident(const IndexView& index) {
    return make_resident(index, {});
  }
  // Copies matches to the device: MatchView::resident. unavailable: no device, or matches of byte
  // strings or of addresses of more than 128 bits, which the host searches. resource_exhausted: no
  // room within the memory limit.
  virtual Result<std::shared_ptr<ResidentMatches>> make_resident(const MatchView& matches,
                                                                 const MatchRows& rows) = 0;
  Result<std::shared_ptr<ResidentMatches>> make_resident(const MatchView& matches) {
    return make_resident(matches, MatchRows());
  }
  // Makes an index of the keys, which may lie in host memory or the device's. Equal keys become
  // one. KeyOrder::ascending: they are sorted and have no duplicates, and where they need no copy
  // (fixed width, on the side where they are searched) must outlive the result.
  virtual Result<std::shared_ptr<ResidentIndex>> build_index(const KeyColumn& keys, KeyOrder order,
                                                             const TreeOptions& options) = 0;
  // What follows needs indexes that are resident on a device, and returns `unavailable` for others.
  //
  // Finds values that are resident and not hidden. found: a bit for each query, all 0 before.
  // offsets: where each value begins, and the last ends (queries.size + 1 entries), once copied.
  // resource_exhausted: needs 16 bytes of the device's memory a query until the result goes.
  virtual Result<std::unique_ptr<FoundValues>> find_values(std::span<const IndexView> indexes,
                                                           const KeyColumn& queries,
                                                           std::span<uint64_t> found,
                                                           std::span<uint64_t> offsets) = 0;
  // Start work on a stream of the device (a cudaStream_t) and return, or, where it is null, wait
  // for the work. Queries and results are in the device's memory; hidden rows count as absent. The
  // indexes may go at once, not so queries and results.
  virtual Status find_on_device(std::span<const IndexView> indexes, const KeyColumn& queries,
                                Location* out, void* stream) = 0;
  virtual Status get_on_device(std::span<const IndexView> indexes, const KeyColumn& queries,
                               const DeviceValues& out, void* stream) = 0;
  // The rows of the longest prefixes of addresses, likewise. `changes` (null: none) lie over
  // `base`: the row is theirs where their longest prefix is not shorter than that of `base`. The
  // indexes of the rows of `base` count `newer` more. Both were made resident with lengths.
  virtual Status match_on_device(const ResidentMatches& base, uint32_t newer,
                                 const ResidentMatches* changes, const KeyColumn& addresses,
                                 Location* out, void* stream) = 0;

  // invalid_argument: options that do not hold. unavailable: slots or nodes of 128 bits, on a
  // device whose atomic operations are narrower. resource_exhausted: no room for so large a table.
  virtual Result<std::unique_ptr<VectorSet>> make_vector_set(const VectorSetOptions& options) = 0;
  virtual Result<std::unique_ptr<ByteSet>> make_byte_set() = 0;

  // T[R[i]] += S[i] for each i, or min or max (gpu/scatter_add.h). Columns may each lie in host
  // memory or the device's. invalid_argument: types or sizes that do not go together, or, with
  // OutOfRange::error, an index that is not below into.size. report: null, or what was left out.
  Status scatter(const Numbers& sources, const Indexes& targets, const MutableNumbers& into,
                 const ScatterOptions& options = {}, ScatterReport* report = nullptr);
  // Prepares targets, which may go then, for ScatterRoute::apply(). invalid_argument: as above.
  virtual Result<std::unique_ptr<ScatterRoute>> make_route(const Indexes& targets,
                                                           uint64_t target_count,
                                                           OutOfRange out_of_range) = 0;

  // Memory for queries and results. resource_exhausted: no room within the memory limit.
  virtual Result<std::unique_ptr<BackendMemory>> allocate(uint64_t bytes) = 0;
  // Host memory that the device reads and writes at the speed of the bus: queries and results there
  // need no copy on the host. Plain memory where there is no device.
  virtual Result<std::unique_ptr<BackendMemory>> allocate_host(uint64_t bytes) = 0;
  // Whether a pointer is to memory of the device.
  virtual bool is_on_device(const void* p) const = 0;
  // Between any two of host memory and the device's.
  virtual Status copy(void* to, const void* from, uint64_t bytes) = 0;

  // Measures for some tenths of a second. table_bytes: where the gathers go, at least 1 MiB.
  virtual Status measure_limits(uint64_t table_bytes, BackendLimits* limits) = 0;

  // Calls body(begin, end) for disjoint ranges that cover [0, n), each of about `grain` or more,
  // on the pool's threads. A single range is run on the calling thread without waking anybody.
  virtual void parallel_for(uint64_t n, uint64_t grain,
                            const std::function<void(uint64_t begin, uint64_t end)>& body) = 0;

 private:
  // As scatter(); the arguments were checked, there is at least one source, and the report is
  // empty.
  virtual Status scatter_checked(const Numbers& sources, const Indexes& targets,
                                 const MutableNumbers& into, const ScatterOptions& options,
                                 ScatterReport* report) = 0;

  mutable std::mutex costs_mutex_;
  std::optional<AccessCosts> costs_;
};

// Single searches on the calling thread, without a backend: what a get of one key uses.
// Sets *rank to Location::absent where the key is not there. Corruption: the guard found damage on
// the way.
Status find_one(const IndexView& index, Bytes key, uint32_t* rank);
// Sets *rank to how many keys are smaller.
Status lower_bound_one(const IndexView& index, Bytes key, uint32_t* rank);

// Checks everything that a search relies on (sizes, ranges, ascending starts), so that no image
// whatever can send a search outside the image or the column. Corruption says what is wrong.
Status check_tree(std::span<const std::byte> image, uint64_t keys);
// The first of the ranks [begin, end) to whose key the tree does not lead, or `end`: one made of
// these keys leads to each. Preconditions: check_tree() passed, and the keys ascend.
uint64_t first_misled(const IndexView& index, uint64_t begin, uint64_t end);
// The first of the ranks [begin, end) whose key is not larger than the one before it, or `end`.
uint64_t first_not_ascending(const PackedColumn& keys, uint64_t begin, uint64_t end);
// tree_statistics() reads only this much of an image, from its beginning.
inline constexpr uint64_t tree_head_bytes = 33 * 64;
// Precondition: check_tree() passed.
TreeStatistics tree_statistics(const TreeView& tree);

}  // namespace stride
