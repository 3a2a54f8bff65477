
#include "gpu/backend.h"
#include "gpu/tree/tree_layout.h"
#include "tests/support/catch.h"
#include "tests/support/key_sets.h"
#include "tests/support/printed_seed.h"
#include "tests/support/sanitizers.h"

namespace stride::test {
namespace {

std::vector<std::byte> build(Backend& backend, const PackedColumn& keys,
                             const TreeOptions& options) {
  std::vector<std::byte> image;
  Status status = backend.tree_index().build_tree(keys, options, &image);
  CHECK_OK(status);
  status = check_tree(image, keys.size);
  CHECK_OK(status);
  return image;
}

// The example of tree_layout.h.
TEST_CASE("TreeTest.LaysOutTheExample", "[TreeTest]") {
  auto backend = Backend::host(1);
  OwnedIndex index({"\x10", "\x12", "\x13", "\x80"}, true);
  for (NodeKind kind : {NodeKind::dense, NodeKind::bitmap}) {
    std::vector<std::byte> image = build(*backend, index.column(), {{1, 2}, 2, kind, true});
    TreeStatistics statistics = tree_statistics({image.data(), image.size()});
    CHECK(statistics.strides == (std::vector<uint32_t>{1, 2}));
    CHECK(statistics.nodes == (std::vector<uint64_t>{1, 1}));
    CHECK(statistics.kinds == (std::vector<NodeKind>{NodeKind::dense, kind}));
    CHECK(statistics.prefix_bits == 0u);
    CHECK(statistics.leaf_capacity == 2u);
    CHECK(statistics.keys == 4u);
    CHECK(statistics.image_bytes == image.size());
    auto numbers = [&](uint64_t offset, size_t count) {
      std::vector<uint32_t> result(count);
      std::memcpy(result.data(), image.data() + offset, count * sizeof(uint32_t));
      return result;
    };
    TreeLevel root, level;
    std::memcpy(&root, image.data() + sizeof(TreeHeader), sizeof root);
    std::memcpy(&level, image.data() + sizeof(TreeHeader) + sizeof root, sizeof level);
    CHECK(numbers(root.starts_offset, 3) == (std::vector<uint32_t>{0, 3, 4}));
    CHECK(numbers(root.children_offset, 2) == (std::vector<uint32_t>{1, 0}));
    CHECK(numbers(level.depths_offset, 1) == (std::vector<uint32_t>{6}));
    if (kind == NodeKind::dense) {
      CHECK(numbers(level.starts_offset, 5) == (std::vector<uint32_t>{0, 1, 1, 2, 3}));
    } else {
      CHECK(numbers(level.words_offset, 2) == (std::vector<uint32_t>{13, 0}));
      CHECK(numbers(level.starts_offset, 4) == (std::vector<uint32_t>{0, 1, 2, 3}));
    }
  }
}

TEST_CASE("TreeTest.IsTheSameFromAnyNumberOfThreads", "[TreeTest]") {
  Random random(seed());
  for (const KeySet& set : key_sets()) {
    if (set.make == long_among_short) continue;
    size_t n = set.make == only_zeros ? 2000 : 60000;
    OwnedIndex index(sorted_unique(set.make(random, n)), true);
    for (const TreeOptions& options :
         {TreeOptions{}, TreeOptions{{7, 3, 9}, 4, NodeKind::bitmap, true},
          TreeOptions{{5, 5, 5, 5, 5, 5}, 1, NodeKind::automatic, false}}) {
      INFO(set.name);
      auto image = build(*Backend::host(1), index.column(), options);
      CHECK(image == build(*Backend::host(2), index.column(), options));
      CHECK(image == build(*Backend::host(5), index.column(), options));
    }
  }
}

TEST_CASE("TreeTest.RefusesOptionsThatDoNotHold", "[TreeTest]") {
  auto backend = Backend::host(1);
  OwnedIndex index({"a", "b"}, true);
  std::vector<std::byte> image;
  auto message = [&](const TreeOptions& options) {
    Status status = backend->tree_index().build_tree(index.column(), options, &image);
    CHECK(status.code() == StatusCode::invalid_argument);
    return status.message();
  };
  CHECK(message({.strides = {8, 0}}).find("stride 0 of level 1") != std::string::npos);
  CHECK(message({.strides = {29}}).find("stride 29 of level 0") != std::string::npos);
  CHECK(message({.strides = std::vector<uint32_t>(33, 1)}).find("32") != std::string::npos);
  CHECK(message({.strides = {}, .leaf_capacity = 65536}).find("65535") != std::string::npos);
  PackedColumn huge = index.column();
  huge.size = max_index_keys + 1;
  Status status = backend->tree_index().build_tree(huge, {}, &image);
  CHECK(status.code() == StatusCode::invalid_argument);
}

TEST_CASE("TreeTest.TakesWideStrides", "[TreeTest]") {
  auto backend = Backend::host(2);
  Random random(seed());
  OwnedIndex index(sorted_unique(random_numbers(random, 1000)), true);
  for (uint32_t stride : {1, 16, 22}) {
    build(*backend, index.column(), {.strides = {stride, 22}, .leaf_capacity = 64});
  }
  // 2^28 entries for each of many nodes are too many.
  std::vector<std::byte> image;
  CHECK(backend->tree_index()
            .build_tree(index.column(), {{6, 28}, 1, NodeKind::dense, true}, &image)
            .code() == StatusCode::invalid_argument);
}

// What an automatic tree may take, even where the keys' bits are spread as badly as can be.
TEST_CASE("TreeTest.StaysSmall", "[TreeTest]") {
  Random random(seed());
  auto backend = Backend::host(2);
  for (const KeySet& set : key_sets()) {
    if (set.make == long_among_short || set.make == only_zeros) continue;
    OwnedIndex index(sorted_unique(set.make(random, smaller_under_tsan(100000, 50000))), true);
    auto image = build(*backend, index.column(), {});
    uint64_t most = std::max(index.column().size * 4, index.column().data_bytes / 8);
    CHECK_MESSAGE(image.size() <= std::max<uint64_t>(most, 1 << 16), set.name);
  }
}

}  // namespace
}  // namespace stride::test
