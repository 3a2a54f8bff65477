// Indexes of sorted keys with a tree over them: building one, and searching it in batches.
//
//   TreeIndex& trees = backend->tree_index();
//   std::vector<std::byte> image;
//   trees.build_tree(column, TreeOptions{}, &image);
//   IndexView index{column, {image.data(), image.size()}};
//   trees.find({&index, 1}, queries, locations);
//
// A device searches the indexes that are resident there, and the host all others, with the same
// results:
//
//   auto resident = trees.make_resident(index);                  // copies keys and tree to it
//   trees.find_ranks((*resident)->view(), queries, ranks);
//
// Queries and results of a resident index may lie in host memory or, in any mix, in the device's.
// Ranks have 32 bits: an index holds at most max_index_keys keys.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "gpu/access_costs.h"
#include "gpu/key_statistics.h"
#include "gpu/location.h"
#include "gpu/tree_options.h"
#include "storage/block_guard.h"
#include "storage/column.h"
#include "storage/status.h"

namespace stride {

inline constexpr uint64_t max_index_keys = 0xFFFFFFFEull;

// A tree that was found to be sound. Owns nothing.
struct TreeView {
  const std::byte* image = nullptr;  // aligned to 8 bytes; null: no tree, search the column alone
  uint64_t image_bytes = 0;
};

class KeyFilter;
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
  // Says of most keys that are not there that they are not; a batch on the host asks it before it
  // searches. Null: none.
  const KeyFilter* filter = nullptr;
  // Null: searched on the host.
  const ResidentIndex* resident = nullptr;
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
  // How it lies on several devices: "a copy on each of 2 devices"; empty: on one, or on none.
  virtual std::string placement() const { return {}; }
  // Whether the values are kept beside the keys.
  virtual bool has_values() const = 0;
  // Memory that searches need: keys, tree, what the device derives from them, and values. Of
  // several devices: of all of them together.
  virtual uint64_t memory_bytes() const = 0;
};

// Who takes the answers of a search while it goes on. Both are called from several threads at once.
class TakeLocations {
 public:
  // Takes the answers to queries [first, first + locations.size()). What it returns, if not ok,
  // ends the search.
  using Take = std::function<Status(uint64_t first, std::span<const Location> locations)>;
  // Does some of what has come up meanwhile, if there is any; does not throw.
  using Meanwhile = std::function<void()>;

  template <class F>
  requires(std::is_invocable_r_v<Status, F, uint64_t, std::span<const Location>>)
      TakeLocations(F take, Meanwhile meanwhile = {})  // NOLINT: a lambda is one
      : take_(std::move(take)), meanwhile_(std::move(meanwhile)) {}

  Status operator()(uint64_t first, std::span<const Location> locations) const {
    return take_(first, locations);
  }
  // May be null.
  const Meanwhile& meanwhile() const { return meanwhile_; }

 private:
  Take take_;
  Meanwhile meanwhile_;
};

// The values that a batch has found, still on the device. Must not outlive the indexes, nor what
// else find_values() was given.
class FoundValues {
 public:
  virtual ~FoundValues() = default;
  virtual uint64_t bytes() const = 0;
  // Whether each value has so many bytes. Call it before copy().
  virtual bool have_width(uint64_t width) const = 0;
  // To host memory, one after the other in the order of the queries, where the first begins at
  // offset `begin` of the ends. Call it once: only then the ends that find_values() was given say
  // something.
  virtual Status copy(std::byte* values, uint64_t begin) = 0;
  Status copy(std::byte* values) { return copy(values, 0); }
};

enum class KeyOrder { any, ascending };

// Every call is one virtual call for a whole batch, returns when the batch is done, and may be made
// from several threads at once.
class TreeIndex {
 public:
  virtual ~TreeIndex() = default;

  // Samples a strictly ascending column, in host memory or the device's (gpu/key_statistics.h).
  virtual Status measure_keys(const PackedColumn& keys, const SampleOptions& options,
                              KeyStatistics* statistics) = 0;
  // Measures what reads of the memory that is searched cost on this machine, in some tenths of a
  // second.
  virtual Status measure_costs(AccessCosts* costs) = 0;
  // The costs by which trees are chosen where their options leave strides open. Until they are set
  // they are those of a typical device or, on a host backend, of a typical host.
  AccessCosts access_costs() const;
  virtual void set_access_costs(const AccessCosts& costs);

  // Builds the tree over a strictly ascending column, as a flat image (docs/format-segment.md). The
  // same bytes from every backend, for the same options with strides, or the same access costs.
  // invalid_argument: more than max_index_keys keys, or options that do not hold.
  virtual Status build_tree(const PackedColumn& keys, const TreeOptions& options,
                            std::vector<std::byte>* image) = 0;

  // For each query, the first of `indexes` (newest first) that holds the key, and its rank.
  // out has queries.size entries. The trees must have passed check_tree().
  virtual Status find(std::span<const IndexView> indexes, const KeyColumn& queries,
                      std::span<Location> out) = 0;
  // The same, handed over in blocks while other blocks are still searched. A block comes again
  // where one of several devices has failed.
  virtual Status find_blocks(std::span<const IndexView> indexes, const KeyColumn& queries,
                             const TakeLocations& take) = 0;
  // Whether find_blocks() hands small blocks of such queries, about in their order, to the host's
  // threads, and has all of these call take.meanwhile() whenever nobody waits for them, also after
  // the last block, so that it pays to work on blocks at once.
  virtual bool finds_in_pieces(std::span<const IndexView> indexes, const KeyColumn& queries) const {
    (void)indexes, (void)queries;
    return false;
  }
  // For each query, its rank in one index, or Location::absent.
  virtual Status find_ranks(const IndexView& index, const KeyColumn& queries,
                            std::span<uint32_t> out) = 0;
  // For each query, how many keys of the index are smaller than it.
  virtual Status lower_bound(const IndexView& index, const KeyColumn& queries,
                             std::span<uint32_t> out) = 0;
  // For each query, how many keys of the index are not larger than it.
  virtual Status upper_bound(const IndexView& index, const KeyColumn& queries,
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
  // Makes an index of the keys, which may lie in host memory or the device's. Equal keys become
  // one. KeyOrder::ascending: they are sorted and have no duplicates, and where they need no copy
  // (fixed width, on the side where they are searched) must outlive the result.
  virtual Result<std::shared_ptr<ResidentIndex>> build_index(const KeyColumn& keys, KeyOrder order,
                                                             const TreeOptions& options) = 0;

  // What follows needs indexes that are resident on a device, and returns `unavailable` for others.
  //
  // Finds values that are resident and not hidden. found: a bit for each query, all 0 before.
  // ends: where each value ends (queries.size entries), once they are copied. resource_exhausted:
  // needs 16 bytes of the device's memory a query until the result goes.
  virtual Result<std::unique_ptr<FoundValues>> find_values(std::span<const IndexView> indexes,
                                                           const KeyColumn& queries,
                                                           std::span<uint64_t> found,
                                                           std::span<uint64_t> ends) = 0;
  // Start work on a stream of the device (a cudaStream_t) and return, or, where it is null, wait
  // for the work. Queries and results are in the device's memory; hidden rows count as absent. The
  // indexes may go at once, not so queries and results. Of several devices the one where the
  // queries lie does it, and the results are there too.
  virtual Status find_on_device(std::span<const IndexView> indexes, const KeyColumn& queries,
                                Location* out, void* stream) = 0;
  virtual Status get_on_device(std::span<const IndexView> indexes, const KeyColumn& queries,
                               const DeviceValues& out, void* stream) = 0;
  // Copies the rows of `count` locations, which such searches of the same indexes have found.
  virtual Status gather_on_device(std::span<const IndexView> indexes, const Location* locations,
                                  uint64_t count, const GatheredRows& out, void* stream) = 0;
  // Makes keys of columns as storage/key_format.h says: `rows` of them, each as long as all parts.
  // It needs no index; parts and keys are in the device's memory.
  virtual Status make_keys_on_device(std::span<const DeviceKeyPart> parts, uint64_t rows,
                                     std::byte* keys, void* stream) = 0;

 protected:
  // typical: the costs that hold until others are set.
  explicit TreeIndex(const AccessCosts& typical) : costs_(typical) {}

 private:
  mutable std::mutex costs_mutex_;
  AccessCosts costs_;
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
// tree_statistics() reads this much of an image, from its beginning.
inline constexpr uint64_t tree_head_bytes = 33 * 64;
// Precondition: check_tree() passed.
TreeStatistics tree_statistics(const TreeView& tree);

}  // namespace stride
