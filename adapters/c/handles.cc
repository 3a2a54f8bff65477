#include "adapters/c/handles.h"

#include <pthread.h>

#include <atomic>
#include <bit>
#include <mutex>
#include <new>
#include <string>
#include <vector>

namespace stride::c {
namespace {

static_assert(sizeof(void*) == 8);

constexpr uint32_t slot_bits = 28;
constexpr uint64_t slot_mask = (uint64_t{1} << slot_bits) - 1;
// The first handle of a slot: far from small numbers, and from addresses.
constexpr uint64_t first_use = 0xD1CE0000;

struct Slot {
  std::atomic<uint64_t> handle{0};  // 0: free
  std::atomic<void*> object{nullptr};
  std::atomic<bool> busy{false};
  uint64_t uses = first_use;  // guarded by Slots::mutex
};

// Slots in blocks of 64, 128, 256, ...: they stay where they are.
struct Slots {
  static constexpr uint32_t first_block_bits = 6;

  std::atomic<Slot*> blocks[slot_bits - first_block_bits + 1]{};
  std::mutex mutex;  // guards what follows
  uint64_t made = 0;
  std::vector<uint32_t> unused;

  static uint32_t block_of(uint64_t slot) {
    return static_cast<uint32_t>(std::bit_width((slot >> first_block_bits) + 1)) - 1;
  }
  static uint64_t first_of(uint32_t block) {
    return ((uint64_t{1} << block) - 1) << first_block_bits;
  }
  // Null where no such slot was ever made.
  Slot* at(uint64_t slot) {
    uint32_t block = block_of(slot);
    if (block >= std::size(blocks)) return nullptr;
    Slot* slots = blocks[block].load(std::memory_order_acquire);
    return slots ? slots + (slot - first_of(block)) : nullptr;
  }
  // Throws std::bad_alloc. Precondition: the mutex is held.
  uint64_t pop_unused() {
    if (!unused.empty()) {
      uint64_t slot = unused.back();
      unused.pop_back();
      return slot;
    }
    uint32_t block = block_of(made);
    if (block >= std::size(blocks)) throw std::bad_alloc();
    if (!blocks[block].load(std::memory_order_relaxed)) {
      unused.reserve(first_of(block + 1));  // so that giving a slot back cannot fail
      blocks[block].store(new Slot[uint64_t{64} << block], std::memory_order_release);
    }
    return made++;
  }
};

// Lives as long as the process: handles may be used while it ends.
Slots& slots() {
  static Slots& all = []() -> Slots& {
    // A child that is forked while another thread holds the mutex could release no handle.
    pthread_atfork([] { slots().mutex.lock(); }, [] { slots().mutex.unlock(); },
                   [] { slots().mutex.unlock(); });
    return *new Slots;
  }();
  return all;
}

uint64_t bits_of(const void* handle) { return reinterpret_cast<uint64_t>(handle); }

HandleKind kind_of(uint64_t handle) { return static_cast<HandleKind>(handle >> slot_bits & 15); }

const char* name_of(HandleKind kind) {
  switch (kind) {
    case HandleKind::database:
      return "stride_database";
    case HandleKind::table:
      return "stride_table";
    case HandleKind::tables:
      return "stride_tables";
    case HandleKind::transaction:
      return "stride_transaction";
    case HandleKind::snapshot:
      return "stride_snapshot";
    case HandleKind::values:
      return "stride_values";
    case HandleKind::references:
      return "stride_references";
    case HandleKind::scan:
      return "stride_scan";
    case HandleKind::commit_report:
      return "stride_commit_report";
    case HandleKind::groups:
      return "stride_groups";
    case HandleKind::set:
      return "stride_set";
    case HandleKind::dedup_table:
      return "stride_dedup_table";
    case HandleKind::keys:
      return "stride_keys";
    case HandleKind::cursor:
      return "stride_cursor";
  }
  return "handle";
}

}  // namespace

void* add_handle(HandleKind kind, void* object) {
  Slots& all = slots();
  std::lock_guard lock(all.mutex);
  uint64_t at = all.pop_unused();
  Slot& slot = *all.at(at);
  uint64_t handle = (slot.uses++ & 0xFFFFFFFF) << 32 | uint64_t(kind) << slot_bits | at;
  slot.object.store(object, std::memory_order_relaxed);
  slot.handle.store(handle, std::memory_order_release);
  return reinterpret_cast<void*>(handle);
}

void* find_handle(const void* given, HandleKind kind) noexcept {
  uint64_t handle = bits_of(given);
  Slot* slot = slots().at(handle & slot_mask);
  if (!slot || handle == 0 || kind_of(handle) != kind) return nullptr;
  if (slot->handle.load(std::memory_order_acquire) != handle) return nullptr;
  return slot->object.load(std::memory_order_relaxed);
}

std::atomic<bool>& busy_flag(const void* given) noexcept {
  return slots().at(bits_of(given) & slot_mask)->busy;
}

Status wrong_handle(const void* given, HandleKind kind) {
  std::string wanted = name_of(kind);
  uint64_t handle = bits_of(given);
  if (handle == 0) return Status::invalid("the " + wanted + " is NULL");
  Slot* slot = slots().at(handle & slot_mask);
  if (slot && slot->handle.load(std::memory_order_acquire) == handle)
    return Status::invalid("a " + std::string(name_of(kind_of(handle))) +
                           " was given in the place of a " + wanted);
  return Status::invalid("the " + wanted + " is no handle, or has been released")
      .with_remedy("use a handle from the call that makes it to the call that releases it");
}

bool remove_handle(const void* given, HandleKind kind) noexcept {
  if (!find_handle(given, kind)) return false;
  uint64_t handle = bits_of(given);
  Slots& all = slots();
  Slot& slot = *all.at(handle & slot_mask);
  if (!slot.handle.compare_exchange_strong(handle, 0)) return false;
  slot.busy.store(false, std::memory_order_release);
  std::lock_guard lock(all.mutex);
  all.unused.push_back(static_cast<uint32_t>(bits_of(given) & slot_mask));
  return true;
}

}  // namespace stride::c
