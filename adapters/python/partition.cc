// Which part keys belong to, of a table that lies in several databases.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "adapters/python/errors.h"
#include "adapters/python/keys.h"
#include "adapters/python/rows.h"

namespace stride::python {
namespace {

uint64_t hash_of(Bytes key) { return XXH3_64bits(key.data(), key.size()); }

// The first eight bytes of a key as a number that orders as they do.
uint64_t head_of(Bytes key) {
  uint64_t head = 0;
  if (!key.empty()) std::memcpy(&head, key.data(), std::min<size_t>(key.size(), 8));
  return __builtin_bswap64(head);
}

// By the hash of a key's bytes, or by splitters: part i then has the keys from splitter i - 1 on
// that are below splitter i.
class KeyPartition {
 public:
  KeyPartition(std::shared_ptr<const TableForm> form, uint64_t parts,
               std::optional<std::vector<std::string>> splitters)
      : form_(std::move(form)), parts_(parts), splitters_(std::move(splitters)) {
    for (size_t i = 0; splitters_ && i < splitters_->size(); ++i)
      heads_.push_back(head_of(as_bytes((*splitters_)[i])));
  }

  const TableForm& form() const { return *form_; }
  uint64_t parts() const { return parts_; }

  uint64_t part_of(Bytes key) const {
    if (!splitters_) return (hash_of(key) >> 32) * parts_ >> 32;
    // Few splitters are counted, all of them: no branch of that is ever mispredicted.
    const uint64_t head = head_of(key);
    uint64_t part = 0;
    if (heads_.size() <= 32)
      for (const uint64_t h : heads_) part += h < head;
    else
      part = static_cast<uint64_t>(std::ranges::lower_bound(heads_, head) - heads_.begin());
    while (part < heads_.size() && heads_[part] == head &&
           compare(as_bytes((*splitters_)[part]), key) <= 0)
      ++part;
    return part;
  }

  // The rows of part 0, those of part 1, and so on, each in their order; ends[i]: where part i's
  // end; places[row]: where among them a row is.
  void order(const KeyColumn& keys, std::span<uint64_t> rows, std::span<uint64_t> ends,
             std::span<uint64_t> places) const {
    std::vector<uint32_t> part(keys.size);
    std::vector<uint64_t> next(parts_ + 1, 0);
    for (uint64_t row = 0; row < keys.size; ++row) {
      part[row] = static_cast<uint32_t>(part_of(keys[row]));
      ++next[part[row] + 1];
    }
    for (uint64_t p = 0; p < parts_; ++p) ends[p] = next[p + 1] += next[p];
    for (uint64_t row = 0; row < keys.size; ++row) {
      places[row] = next[part[row]]++;
      rows[places[row]] = row;
    }
  }

 private:
  std::shared_ptr<const TableForm> form_;
  uint64_t parts_;
  std::optional<std::vector<std::string>> splitters_;
  std::vector<uint64_t> heads_;
};

std::string text_of(const nb::bytes& bytes) {
  return {static_cast<const char*>(bytes.data()), bytes.size()};
}

KeyPartition make_partition(nb::handle key, uint64_t parts, nb::handle splitters) {
  auto form = std::make_shared<TableForm>();
  std::vector<Field> fields = fields_of(key, "key");
  if (fields.empty()) fields.push_back({.name = "key", .type = FieldType::bytes});
  form->bare_key = fields.size() == 1;
  form->schema = take(Schema::make({}, std::move(fields)));
  if (parts < 1 || parts > 65536)
    raise("InvalidArgument", std::to_string(parts) + " parts are asked for",
          "there may be 1 to 65536");
  if (splitters.is_none()) return {std::move(form), parts, std::nullopt};
  std::vector<std::string> bounds;
  for (nb::handle splitter : nb::cast<nb::list>(splitters))
    bounds.push_back(text_of(nb::cast<nb::bytes>(splitter)));
  if (bounds.size() + 1 != parts || !std::ranges::is_sorted(bounds))
    raise("InvalidArgument",
          std::to_string(parts) + " parts have " + std::to_string(bounds.size()) +
              " splitters, or these do not ascend",
          "give one fewer than parts, in the order of keys");
  return {std::move(form), parts, std::move(bounds)};
}

nb::tuple order(const KeyPartition& partition, nb::handle given) {
  EncodedKeys encoded;
  const GivenKeys keys = keys_of(partition.form(), given, &encoded);
  Numbers64 rows("rows", keys.keys.size), places("places", keys.keys.size);
  Numbers64 ends("ends", partition.parts());
  run([&]() -> Status {
    partition.order(keys.keys, rows.span, ends.span, places.span);
    return {};
  });
  return nb::make_tuple(rows.array(), ends.array(), places.array());
}

nb::list sample(const KeyPartition& partition, nb::handle given, double share) {
  EncodedKeys encoded;
  const GivenKeys keys = keys_of(partition.form(), given, &encoded);
  constexpr double all = 18446744073709551616.0;  // hashes there are
  const bool everything = share >= 1;
  const uint64_t below = everything ? 0 : static_cast<uint64_t>(std::max(share, 0.0) * all);
  nb::list taken;
  for (uint64_t row = 0; row < keys.keys.size; ++row) {
    check_signals_at(row);
    const Bytes key = keys.keys[row];
    if (everything || hash_of(key) < below)
      taken.append(nb::bytes(as_text(key).data(), key.size()));
  }
  return taken;
}

}  // namespace

void bind_partition(nb::module_& module) {
  nb::class_<KeyPartition>(module, "KeyPartition",
                           "Which of several parts each key of a table belongs to. key: as of "
                           "Database.table(). parts: how "
                           "many there are, 1 to 65536. splitters: None: by the hash of a key, "
                           "part = (hash >> 32) * parts >> 32, "
                           "where the hash is XXH3 (64 bits, seed 0) of the key's bytes as a table "
                           "keeps them; or one bytes "
                           "object fewer than parts, as sample() gives them, ascending: part i has "
                           "the keys from splitter "
                           "i - 1 on that are below splitter i.")
      .def(
          "__init__",
          [](KeyPartition* self, nb::handle key, uint64_t parts, nb::handle splitters) {
            new (self) KeyPartition(make_partition(key, parts, splitters));
          },
          nb::arg("key").none(), nb::arg("parts"), nb::arg("splitters") = nb::none())
      .def_prop_ro("parts", &KeyPartition::parts, "How many parts there are.")
      .def("order", &order, nb::arg("keys"),
           "The rows of part 0, then those of part 1, and so on, each in the order they are given "
           "in; where each part's rows end; and where each row is among the first of these. "
           "keys: a column of keys, or a frame that has their columns.")
      .def("sample", &sample, nb::arg("keys"), nb::arg("share") = 1.0,
           "The bytes of the keys whose hash is in the lowest share of all hashes: of equal keys "
           "all or "
           "none, wherever they are, so that samples together are one of the keys that differ.");
}

}  // namespace stride::python
