// The splits for devices whose memory is the host's, and the choice.
#include "gpu/several/vector_split.h"

#include <cstring>
#include <utility>
#include <vector>

#include "gpu/bulk_vector.h"
#include "storage/no_throw.h"

namespace stride {

namespace {

uint32_t word_at(const std::byte* words, uint32_t i) {
  uint32_t word;
  std::memcpy(&word, words + uint64_t{i} * 4, sizeof word);
  return word;
}

// Rows of host memory by part.
class HostSplit {
 protected:
  explicit HostSplit(size_t parts) : rows_(parts), ids_(parts) {}

  void add(size_t part, uint64_t row) {
    rows_[part].push_back(row);
    ids_[part].push_back(VectorSet::absent);
  }

  std::vector<std::vector<uint64_t>> rows_;  // of those that were given
  std::vector<BulkVector<uint64_t>> ids_;
};

class HostVectorSplit final : public VectorSplit, private HostSplit {
 public:
  HostVectorSplit(const KeyColumn& vectors, const VectorHash& hash, size_t parts)
      : HostSplit(parts), size_(vectors.size), width_(vectors.width), moved_(parts), bits_(parts) {
    const auto words = static_cast<uint32_t>(width_ / 4);
    for (uint64_t row = 0; row < size_; ++row) {
      const std::byte* vector = vectors.data + row * width_;
      auto word = [vector](uint32_t i) { return word_at(vector, i); };
      const uint32_t part = part_of_hash(hash.first(word, words), static_cast<uint32_t>(parts));
      add(part, row);
      moved_[part].insert(moved_[part].end(), vector, vector + width_);
    }
    for (size_t part = 0; part < parts; ++part) bits_[part].resize((rows_[part].size() + 63) / 64);
  }

  KeyColumn rows(size_t part) const override {
    return KeyColumn::fixed(moved_[part].data(), width_, rows_[part].size());
  }
  std::span<uint64_t> ids(size_t part) override { return ids_[part]; }
  std::span<uint64_t> was_new(size_t part) override { return bits_[part]; }
  Status put_ids(uint64_t* ids, uint64_t* was_new) override {
    if (was_new) std::memset(was_new, 0, (size_ + 63) / 64 * sizeof *was_new);
    const uint64_t parts = rows_.size();
    for (uint64_t part = 0; part < parts; ++part)
      for (uint64_t i = 0; i < rows_[part].size(); ++i) {
        const uint64_t row = rows_[part][i], id = ids_[part][i];
        if (ids) ids[row] = id == VectorSet::absent ? id : id * parts + part;
        if (was_new) was_new[row / 64] |= (bits_[part][i / 64] >> i % 64 & 1) << row % 64;
      }
    return {};
  }

 private:
  const uint64_t size_, width_;
  std::vector<std::vector<std::byte>> moved_;  // vectors of each part
  std::vector<std::vector<uint64_t>> bits_;
};

class HostIdSplit final : public IdSplit, private HostSplit {
 public:
  HostIdSplit(std::span<const uint64_t> ids, uint32_t words, size_t parts)
      : HostSplit(parts), width_(uint64_t{words} * 4), vectors_(parts) {
    for (uint64_t row = 0; row < ids.size(); ++row) {
      const size_t part = ids[row] % parts;
      add(part, row);
      ids_[part].back() = ids[row] / parts;
    }
    for (size_t part = 0; part < parts; ++part) vectors_[part].resize(rows_[part].size() * width_);
  }

  std::span<const uint64_t> ids(size_t part) const override { return ids_[part]; }
  std::span<std::byte> vectors(size_t part) override { return vectors_[part]; }
  Status put_vectors(std::byte* vectors) override {
    for (size_t part = 0; part < rows_.size(); ++part)
      for (uint64_t i = 0; i < rows_[part].size(); ++i)
        std::memcpy(vectors + rows_[part][i] * width_, vectors_[part].data() + i * width_, width_);
    return {};
  }
  Result<uint64_t> row(size_t part, uint64_t i) const override { return rows_[part][i]; }

 private:
  const uint64_t width_;
  std::vector<std::vector<std::byte>> vectors_;
};

}  // namespace

Result<std::unique_ptr<VectorSplit>> split_vectors(Backend& device, const KeyColumn& vectors,
                                                   const VectorHash& hash, size_t parts,
                                                   bool in_order, const RoomOfDevice& memory) {
  if (CudaDevice* cuda = device.cuda_device())
    return split_vectors_on(*cuda, vectors, hash, parts, in_order, memory);
  return no_throw([&]() -> Result<std::unique_ptr<VectorSplit>> {
    return std::unique_ptr<VectorSplit>(std::make_unique<HostVectorSplit>(vectors, hash, parts));
  });
}

Result<std::unique_ptr<IdSplit>> split_ids(Backend& device, std::span<const uint64_t> ids,
                                           uint32_t words, size_t parts,
                                           const RoomOfDevice& memory) {
  if (CudaDevice* cuda = device.cuda_device())
    return split_ids_on(*cuda, ids, words, parts, memory);
  return no_throw([&]() -> Result<std::unique_ptr<IdSplit>> {
    return std::unique_ptr<IdSplit>(std::make_unique<HostIdSplit>(ids, words, parts));
  });
}

}  // namespace stride
