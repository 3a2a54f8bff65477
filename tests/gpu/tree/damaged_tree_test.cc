// No image whatever may send a search outside the image or the column: check_tree() refuses it, or
// the searches stay inside (which a sanitizer sees).

#include <memory>

#include "gpu/backend.h"
#include "gpu/tree/tree_layout.h"
#include "tests/support/catch.h"
#include "tests/support/key_sets.h"
#include "tests/support/printed_seed.h"

namespace stride::test {
namespace {

// Searches with an image that may be damaged, if it passes.
bool search_if_sound(Backend& backend, const OwnedIndex& index, const std::vector<std::byte>& image,
                     const OwnedColumn& queries) {
  // Has exactly this size, for the sanitizer's sake.
  std::unique_ptr<std::byte[]> copy(new std::byte[image.size()]);
  std::copy(image.begin(), image.end(), copy.get());
  if (!check_tree({copy.get(), image.size()}, index.keys().size()).ok()) return false;
  IndexView view = index.view();
  view.tree = {copy.get(), image.size()};
  KeyColumn column = queries.column();
  std::vector<Location> found(column.size);
  CHECK_OK(backend.tree_index().find({&view, 1}, column, found));
  std::vector<uint32_t> lower(column.size);
  CHECK_OK(backend.tree_index().lower_bound(view, column, lower));
  for (uint64_t i = 0; i < column.size; ++i) {
    if (found[i].found()) {
      CHECK(found[i].rank < view.keys.size);
      CHECK(compare(view.keys[found[i].rank], column[i]) == 0);
    }
    CHECK(lower[i] <= view.keys.size);
    uint32_t rank;
    CHECK_OK(find_one(view, column[i], &rank));
    CHECK((rank == Location::absent || rank < view.keys.size));
    CHECK_OK(lower_bound_one(view, column[i], &rank));
    CHECK(rank <= view.keys.size);
  }
  tree_statistics(view.tree);
  return true;
}

TEST_CASE("DamagedTreeTest.FlippedBytesDoNoHarm", "[DamagedTreeTest]") {
  Random random(seed());
  auto backend = Backend::host(1);
  int passed = 0, refused = 0;
  for (auto make : {random_numbers, clusters, words, zeros_and_ones}) {
    for (const TreeOptions& options :
         {TreeOptions{}, TreeOptions{{4, 4, 4, 4}, 4, NodeKind::dense, true},
          TreeOptions{{4, 7, 3}, 2, NodeKind::bitmap, true},
          TreeOptions{{6, 6}, 2, NodeKind::automatic, false}}) {
      OwnedIndex index(sorted_unique(make(random, 400)), true);
      REQUIRE_OK(backend->tree_index().build_tree(index.column(), options, &index.image()));
      OwnedColumn queries(queries_for(random, index.keys(), 70, true), true);
      REQUIRE(search_if_sound(*backend, index, index.image(), queries));
      for (int round = 0; round < 400; ++round) {
        std::vector<std::byte> image = index.image();
        // The header and the level records now and then, and anything else.
        size_t range = random() % 4 ? image.size() : std::min<size_t>(image.size(), 320);
        for (int flips = 1 + static_cast<int>(random() % 3); flips > 0; --flips) {
          image[random() % range] ^= static_cast<std::byte>(1 << random() % 8);
        }
        if (random() % 8 == 0) image.resize(random() % image.size());
        ++(search_if_sound(*backend, index, image, queries) ? passed : refused);
      }
    }
  }
  CHECK(refused > passed);
}

TEST_CASE("DamagedTreeTest.RandomNumbersInPlaceOfAnyNumber", "[DamagedTreeTest]") {
  Random random(seed());
  auto backend = Backend::host(1);
  OwnedIndex index(sorted_unique(words(random, 500)), true);
  TreeOptions options{{5, 5, 5}, 3, NodeKind::bitmap, true};
  REQUIRE_OK(backend->tree_index().build_tree(index.column(), options, &index.image()));
  OwnedColumn queries(queries_for(random, index.keys(), 64, false), true);
  for (size_t at = 0; at + 4 <= index.image().size(); at += 4) {
    std::vector<std::byte> image = index.image();
    auto value = static_cast<uint32_t>(random() >> random() % 40);
    std::memcpy(image.data() + at, &value, 4);
    search_if_sound(*backend, index, image, queries);
  }
}

TEST_CASE("DamagedTreeTest.SaysWhatIsWrong", "[DamagedTreeTest]") {
  auto backend = Backend::host(1);
  OwnedIndex index({"a", "b", "c"}, true);
  REQUIRE_OK(backend->tree_index().build_tree(index.column(), {}, &index.image()));
  std::vector<std::byte>& image = index.image();
  CHECK_OK(check_tree(image, 3));
  CHECK(check_tree(image, 4).code() == StatusCode::corruption);
  CHECK(check_tree({}, 3).code() == StatusCode::corruption);
  CHECK(check_tree({image.data(), 64}, 3).code() == StatusCode::corruption);
  Random random(seed());
  for (size_t size : {1, 64, 128, 1000, 5000}) {
    std::string noise = random_bytes(random, size);
    std::vector<uint64_t> aligned(size / 8 + 1);
    std::memcpy(aligned.data(), noise.data(), size);
    CHECK(check_tree({reinterpret_cast<const std::byte*>(aligned.data()), size}, 3).code() ==
          StatusCode::corruption);
  }
  uint32_t version = tree_version + 1;
  std::memcpy(image.data() + offsetof(TreeHeader, version), &version, sizeof version);
  CHECK(check_tree(image, 3).code() == StatusCode::unsupported_version);
}

}  // namespace
}  // namespace stride::test
