#include "gpu/set/vector_set_plan.h"

#include <algorithm>
#include <bit>
#include <string>

#include "storage/column.h"
#include "storage/no_throw.h"
#include "storage/status.h"

namespace stride {

namespace {

constexpr uint64_t max_capacity = uint64_t{1} << 40;

bool is_one_of_powers(uint32_t x, uint32_t least, uint32_t most) {
  return std::has_single_bit(x) && x >= least && x <= most;
}

uint32_t entry_bytes(const VectorSetOptions& options) {
  if (options.form == VectorForm::slots) return options.words * 4;
  return options.form == VectorForm::compressed && options.wide_nodes ? 16 : 8;
}

Status check_vectors(const KeyColumn& vectors, uint32_t words, uint64_t ids, uint64_t bits) {
  if (vectors.size > 0 && (!vectors.is_fixed() || vectors.width != words * 4)) {
    return Status::invalid((vectors.is_fixed() ? "vectors of " + std::to_string(vectors.width)
                                               : std::string("vectors of different numbers of")) +
                           " bytes for a set whose vectors have " + std::to_string(words * 4))
        .with_remedy("give a column of fixed width, 4 bytes a word");
  }
  if ((ids == 0 || ids == vectors.size) && (bits == 0 || bits == bitmap_words(vectors.size)))
    return {};
  return Status::invalid("room for " + std::to_string(ids) + " ids and " + std::to_string(bits) +
                         " words of bits, for " + std::to_string(vectors.size) + " vectors")
      .with_remedy("give an id for each vector and a word for 64 of them, or none");
}

}  // namespace

Status complete_options(VectorSetOptions* options) {
  uint32_t words = options->words;
  if (words == 0 || words > max_vector_words) {
    return Status::invalid("vectors of " + std::to_string(words) + " words")
        .with_remedy("give a set vectors of 1 to " + std::to_string(max_vector_words) + " words");
  }
  if (options->form == VectorForm::slots && words != 1 && words != 2 && words != 4) {
    return Status::invalid("a set of slots with vectors of " + std::to_string(words) + " words")
        .with_remedy("use the dense form, or 1, 2 or 4 words");
  }
  if (!(options->load > 0 && options->load <= 1)) {
    return Status::invalid("a set whose table is filled to a share of " +
                           std::to_string(options->load))
        .with_remedy("give a load above 0, at most 1");
  }
  if (options->capacity > max_capacity || options->node_capacity > max_capacity ||
      (options->form == VectorForm::dense && options->capacity > max_dense_ids - spare_rows)) {
    return Status::invalid("a set with room for " +
                           std::to_string(std::max(options->capacity, options->node_capacity)) +
                           " vectors")
        .with_remedy("give a smaller capacity: dense ids are below 2^32, others below 2^40");
  }
  // A memory sector of a device, and the one that is read from its memory together with it.
  if (options->bucket_slots == 0) options->bucket_slots = 32 / entry_bytes(*options);
  if (options->neighbours == 0) options->neighbours = 2;
  if (!is_one_of_powers(options->bucket_slots, 2, 64) ||
      !is_one_of_powers(options->neighbours, 1, 8)) {
    return Status::invalid("buckets of " + std::to_string(options->bucket_slots) + " slots with " +
                           std::to_string(options->neighbours) + " neighbours")
        .with_remedy("use a power of two from 2 to 64, and from 1 to 8");
  }
  if (options->capacity == 0) options->capacity = 1;
  if (options->node_capacity == 0) options->node_capacity = options->capacity / 8 + 1024;
  const uint64_t max_entries = std::max(options->capacity, options->node_capacity);
  if (static_cast<double>(max_entries) / options->load > 0x1p48) {
    return Status::invalid("a set whose table has more than 2^48 slots for " +
                           std::to_string(max_entries) + " entries")
        .with_remedy("give a smaller capacity, or a larger load");
  }
  if (options->form == VectorForm::compressed && !options->wide_nodes &&
      static_cast<double>(options->node_capacity) / options->load > 0.9 * max_narrow_ids) {
    return Status::invalid("a compressed set with room for " +
                           std::to_string(options->node_capacity) + " nodes")
        .with_remedy("use wide_nodes for more than 2^32 places");
  }
  return {};
}

SlotLayout layout_of(const VectorSetOptions& options, uint64_t entries) {
  auto slots = static_cast<uint64_t>(static_cast<double>(entries) / options.load) + 1;
  return SlotLayout::of(slots, options.bucket_slots, options.neighbours);
}

Status VectorSet::find_or_put(const KeyColumn& vectors, std::span<uint64_t> ids,
                              std::span<uint64_t> was_new) {
  STRIDE_TRY(check_vectors(vectors, words_, ids.size(), was_new.size()));
  if (vectors.size == 0) return {};
  Result<uint64_t> failed = no_throw([&] {
    return put_vectors(vectors, ids.empty() ? nullptr : ids.data(),
                       was_new.empty() ? nullptr : was_new.data());
  });
  if (!failed.ok()) return failed.status();
  if (*failed == 0) return {};
  return Status(StatusCode::resource_exhausted,
                "no room for " + std::to_string(*failed) + " of the batch's " +
                    std::to_string(vectors.size) + " vectors: the set holds " +
                    std::to_string(size()))
      .with_remedy(
          "make the set with a larger capacity, let it grow, or use another seed where vectors "
          "were made to collide");
}

Status VectorSet::find(const KeyColumn& vectors, std::span<uint64_t> ids) {
  STRIDE_TRY(check_vectors(vectors, words_, ids.size(), 0));
  if (ids.empty()) return {};
  return no_throw([&] { return find_vectors(vectors, ids.data()); });
}

Status VectorSet::get(std::span<const uint64_t> ids, std::span<std::byte> vectors) {
  if (vectors.size() != ids.size() * words_ * 4) {
    return Status::invalid("room for " + std::to_string(vectors.size()) + " bytes, for " +
                           std::to_string(ids.size()) + " vectors of " + std::to_string(words_) +
                           " words")
        .with_remedy("give 4 bytes for each word of each vector");
  }
  if (ids.empty()) return {};
  Result<uint64_t> bad = no_throw([&] { return get_vectors(ids, vectors.data()); });
  if (!bad.ok()) return bad.status();
  if (*bad == absent) return {};
  return Status(StatusCode::not_found, "row " + std::to_string(*bad) + ": its id was never given")
      .with_remedy("ask for ids that this set has given since it was last cleared");
}

Status VectorSet::clear() {
  return no_throw([&] { return clear_vectors(); });
}

}  // namespace stride
