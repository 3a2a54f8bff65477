// T[R[i]] += S[i], where a table says what R is: the mapping from sources to targets.
//
//   // The table: key of a source -> number of its target, 4 bytes, little-endian.
//   Result<ScatterPlan> plan = ScatterPlan::make(database->snapshot(), mapping, links);  // n keys
//   std::vector<float> on_links(n), in_zones(plan->targets());
//   Status s = plan->map(Numbers::of<float>(on_links), MutableNumbers::of<float>(in_zones));
//   // and again with the next day's S: the keys are looked up once
//
// A plan is what the mapping table said when it was made. It keeps neither the snapshot nor the
// database open, and is not changed by what is written later. docs/map.md has more.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "engine/snapshot.h"
#include "engine/table.h"
#include "gpu/scatter_add.h"
#include "storage/column.h"
#include "storage/export.h"
#include "storage/status.h"

namespace stride {

class Backend;

// What the values of a mapping table are.
enum class ScatterPlanTargets : uint8_t {
  // The target itself, 0 to targets - 1: unsigned little-endian integers, all of 4 bytes or all
  // of 8.
  numbers,
  // Names of targets, any byte strings. The different ones that the sources have are numbered in
  // ascending order, as the store orders keys.
  keys,
};

// What becomes of a source that the mapping table lacks, or whose number is out of range.
enum class Unmapped : uint8_t {
  count,  // it changes no target, and is reported
  error,  // not_found or invalid_argument, before anything else
};

// More targets than any plan has; larger numbers are out of range.
inline constexpr uint64_t max_scatter_plan_targets = uint64_t{1} << 40;

struct ScatterPlanOptions {
  ScatterPlanTargets values = ScatterPlanTargets::numbers;
  // For ScatterPlanTargets::numbers: how many targets there are. 0: one more than the largest
  // number.
  uint64_t targets = 0;
  Unmapped unmapped = Unmapped::count;
  // What does the additions. Null: as Options::backend says of the database, a device where there
  // is one and there are many sources, else host threads.
  std::shared_ptr<Backend> backend = nullptr;
};

struct ScatterMapOptions {
  // Integers are always exact, and wrap. Floats: see gpu/scatter_add.h.
  ScatterMode mode = ScatterMode::fast;
  bool clear = false;  // T starts from 0; else S is added to what it has
  // For a device: a cudaStream_t on which the work is started, with S and T in the device's memory
  // until it is done. clear cannot be asked for then. Null: the call returns when all is done.
  void* stream = nullptr;
};

// May outlive its database. One thread at a time may use it; it uses several where that gains.
class STRIDE_API ScatterPlan {
 public:
  // Looks up n keys, in host memory or the device's; any may come several times, and they may go
  // when this returns. Values are read in batches; what stays is 4 bytes a source (8 where there
  // are 2^32 - 1 targets or more) and what the backend makes of them.
  //
  // not_found: the table is not in the snapshot. invalid_argument: values of another width than 4
  // or 8 bytes, or of both, or options that do not go together. With Unmapped::error: not_found, a
  // source is not in the mapping table, or invalid_argument, its number is out of range.
  static Result<ScatterPlan> make(const Snapshot& snapshot, const Table& mapping,
                                  const KeyColumn& sources, const ScatterPlanOptions& options = {});
  // Takes all rows of the mapping table in the order of their keys: source i is the i-th key.
  static Result<ScatterPlan> of_table(const Snapshot& snapshot, const Table& mapping,
                                      const ScatterPlanOptions& options = {});
  ScatterPlan(ScatterPlan&&) noexcept;
  ScatterPlan& operator=(ScatterPlan&&) noexcept;
  ~ScatterPlan();

  // T[R[i]] += S[i] for all sources. S has sources() numbers and T targets(), of types that go
  // together (gpu/scatter_add.h), each in host memory or in that of backend()'s device.
  // invalid_argument: they do not, and T is as it was. io_error, resource_exhausted and unavailable
  // come from a device, and leave T undefined.
  Status map(const Numbers& weights, const MutableNumbers& into,
             const ScatterMapOptions& options = {}) const;

  uint64_t sources() const;
  uint64_t targets() const;
  // Sources that change no target, and the smallest i of these (UINT64_MAX: there is none).
  uint64_t unmapped() const;
  uint64_t first_unmapped() const;
  // With ScatterPlanTargets::keys: the name of each target, ascending; else empty. Valid while the
  // plan lives.
  KeyColumn target_keys() const;
  uint64_t memory_bytes() const;
  const std::shared_ptr<Backend>& backend() const;
  std::string backend_name() const;  // "host (16 threads)"

 private:
  struct STRIDE_INTERNAL State;
  explicit ScatterPlan(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// The same at once, for one S: looks all sources up, maps, and forgets the plan. With
// ScatterPlanOptions::targets 0 there are as many as T has numbers. There can be no stream. T is as
// it was where a source cannot be looked up. report: null, or what ScatterPlan::unmapped() and
// first_unmapped() say.
STRIDE_API Status map_weights(const Snapshot& snapshot, const Table& mapping,
                              const KeyColumn& sources, const Numbers& weights,
                              const MutableNumbers& into,
                              const ScatterPlanOptions& plan_options = {},
                              const ScatterMapOptions& options = {},
                              ScatterReport* report = nullptr);

}  // namespace stride
