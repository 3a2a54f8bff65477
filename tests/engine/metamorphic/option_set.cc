#include "tests/engine/metamorphic/option_set.h"

#include <random>

#include "tests/support/background_work.h"
#include "tests/support/fake_device.h"
#include "tests/support/tree_option_sets.h"

namespace stride::test::metamorphic {
namespace {

// Backends have threads, so those of all runs are the same.
std::shared_ptr<Backend> host_backend(unsigned threads) {
  static const std::shared_ptr<Backend> backends[] = {Backend::host(1), Backend::host(2),
                                                      Backend::host(3), Backend::host(4)};
  return backends[(threads - 1) % 4];
}

std::shared_ptr<Backend> real_device() {
  static const std::shared_ptr<Backend> there = [] {
    auto device = Backend::cuda({.host_threads = 2});
    return device.ok() ? std::shared_ptr<Backend>(std::move(*device)) : nullptr;
  }();
  return there;
}

}  // namespace

Options OptionSet::options() const {
  Options made;
  made.memtable_bytes = memtable_bytes;
  made.memory_limit_bytes = memory_limit_bytes;
  made.max_range_tombstones = max_range_tombstones;
  made.threads = threads;
  made.tree = tree;
  made.backend = BackendKind::host;
  made.shared_backend = host_backend(threads);
  if (device == Device::fake) made.shared_backend = std::make_shared<FakeDevice>(1 << 22);
  if (auto there = device == Device::real ? real_device() : nullptr) made.shared_backend = there;
  set_background_work(&made, background_work);
  return made;
}

OptionSet make_option_set(uint64_t seed) {
  std::mt19937_64 random(seed);
  OptionSet set;
  // A commit goes to the memtable if it has no more than an eighth of its bytes: of these, none;
  // one row; a few; most; all.
  constexpr uint64_t memtables[] = {0, 512, 1 << 12, 1 << 15, 64 << 20};
  set.memtable_bytes = memtables[random() % std::size(memtables)];
  constexpr uint64_t limits[] = {0, 0, 1, 1 << 16};
  set.memory_limit_bytes = limits[random() % std::size(limits)];
  // Ranges erase in place: all; those of some keys; of a large table only.
  constexpr uint64_t tombstones[] = {0, 0, 3, 4096};
  set.max_range_tombstones = tombstones[random() % std::size(tombstones)];
  set.threads = 1 + static_cast<unsigned>(random() % 4);
  Random tree(random());
  if (random() % 2) set.tree = random_options(tree);
  constexpr OptionSet::Device devices[] = {OptionSet::Device::none, OptionSet::Device::none,
                                           OptionSet::Device::fake, OptionSet::Device::real};
  set.device = devices[random() % std::size(devices)];
  constexpr int reopenings[] = {0, 0, 1, 7, 60};
  set.reopen_every = reopenings[random() % std::size(reopenings)];
  // Syncs of a real disk take their time, and every reopening has some.
  set.on_disk = random() % 12 == 0;
  if (set.on_disk && set.reopen_every > 0) set.reopen_every = 60;
  set.background_work = random() % 2;
  set.closes = random() % 2;
  return set;
}

std::string describe(const OptionSet& set) {
  std::string said = "memtable_bytes " + std::to_string(set.memtable_bytes) +
                     ", memory_limit_bytes " + std::to_string(set.memory_limit_bytes) +
                     ", max_range_tombstones " + std::to_string(set.max_range_tombstones) +
                     ", threads " + std::to_string(set.threads) + ", strides";
  for (uint32_t stride : set.tree.strides) said += " " + std::to_string(stride);
  said += ", leaf_capacity " + std::to_string(set.tree.leaf_capacity);
  if (set.device == OptionSet::Device::fake) said += ", fake device";
  if (set.device == OptionSet::Device::real) said += real_device() ? ", device" : ", no device";
  said += ", reopened every " + std::to_string(set.reopen_every);
  said += set.on_disk ? ", on disk" : ", in memory";
  if (set.background_work) said += ", background work";
  return said + (set.closes ? ", closed" : ", destroyed");
}

}  // namespace stride::test::metamorphic
