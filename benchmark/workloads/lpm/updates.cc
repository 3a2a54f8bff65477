#include "benchmark/workloads/lpm/updates.h"

#include <random>

#include "engine/prefixes.h"

namespace stride::benchmark {

Updates::Updates(const RouteTable& table, uint64_t changes, uint64_t seed) : table_(table) {
  std::mt19937_64 random(seed);
  KeyColumn keys = table.keys.view();
  std::vector<bool> erased(keys.size);
  for (uint64_t i = 0; i < changes; ++i) {
    uint64_t at = random() % keys.size;
    Change change{std::string(as_text(keys[at])), std::to_string(random() % 100'000), false};
    uint64_t kind = random() % 4;
    if (kind == 0) {
      change.erase = !erased[at];
      erased[at] = !erased[at];
    } else if (kind == 1) {
      lengthen(&change.key, random() % 2 == 1);
    } else {
      erased[at] = false;
    }
    changes_.push_back(std::move(change));
  }
}
Status Updates::commit(Database& database, const Table& table, uint64_t first, uint64_t n,
                       Durability durability) const {
  WriteTransaction transaction = database.begin();
  for (uint64_t i = first; i < first + n; ++i) {
    const Change& change = changes_[i];
    STRIDE_TRY(change.erase ? transaction.erase(table, change.key)
                            : transaction.put(table, change.key, change.value));
  }
  return transaction.commit(durability);
}

std::map<std::string, std::string> Updates::routes(uint64_t n) const {
  std::map<std::string, std::string> routes;
  KeyColumn keys = table_.keys.view(), values = table_.values.view();
  for (uint64_t i = 0; i < keys.size; ++i) {
    routes.emplace_hint(routes.end(), as_text(keys[i]), as_text(values[i]));
  }
  for (uint64_t i = 0; i < n; ++i) {
    if (changes_[i].erase) {
      routes.erase(changes_[i].key);
    } else {
      routes[changes_[i].key] = changes_[i].value;
    }
  }
  return routes;
}

void Updates::lengthen(std::string* key, bool bit) const {
  uint32_t length = prefix_length(as_bytes(*key), table_.address_bits);
  if (length == table_.address_bits) return;
  char& byte = (*key)[length / 8];
  if (bit) byte = static_cast<char>(byte | 0x80 >> length % 8);
  key->back() = static_cast<char>(length + 1);
}

}  // namespace stride::benchmark
