#include "benchmark/datasets/route_tables.h"

#include <algorithm>
#include <map>
#include <random>

#include "benchmark/datasets/text_source.h"
#include "engine/prefixes.h"

namespace stride::benchmark {
namespace {

using Routes = std::map<std::string, std::string, std::less<>>;

OwnedColumn column_of(const std::vector<std::string_view>& rows, uint32_t width) {
  Parallel here(1);
  return make_column(width, rows.size(), &here, [&](uint64_t i) { return as_bytes(rows[i]); });
}

RouteTable table_of(std::string name, uint32_t address_bits, const Routes& routes) {
  std::vector<std::string_view> keys, values;
  for (const auto& [key, value] : routes) {
    keys.push_back(key);
    values.push_back(value);
  }
  return {std::move(name), address_bits, column_of(keys, prefix_key_width(address_bits)),
          column_of(values, 0)};
}

uint32_t family_of(std::string_view text) {
  return text.find(':') == std::string_view::npos ? 32 : 128;
}

std::string place(const std::string& file, size_t line) {
  return file + ":" + std::to_string(line + 1) + ": ";
}

// n addresses of random bits; keep(random, address) may overwrite the first ones.
template <class Keep>
OwnedColumn random_addresses(const RouteTable& table, uint64_t n, uint64_t seed, const Keep& keep) {
  OwnedColumn column;
  column.rows = n;
  column.width = address_bytes(table.address_bits);
  column.data.resize(n * column.width);
  std::mt19937_64 random(seed);
  for (uint64_t i = 0; i < n; ++i) {
    std::byte* address = column.data.data() + i * column.width;
    for (uint32_t at = 0; at < column.width; at += 8) {
      uint64_t bits = random();
      std::memcpy(address + at, &bits, std::min(8u, column.width - at));
    }
    keep(random, address);
  }
  return column;
}

}  // namespace

PackedColumn RouteTable::packed_keys() const {
  PackedColumn packed;
  packed.data = keys.data.data();
  packed.data_bytes = keys.data.size();
  packed.size = keys.rows;
  packed.width = keys.width;
  return packed;
}

Result<std::vector<RouteTable>> read_routes(const std::vector<std::string>& files) {
  Routes ipv4, ipv6;
  for (const std::string& file : files) {
    Result<std::string> text = read_text_file(file);
    if (!text.ok()) return text.status();
    std::vector<std::string_view> lines = split_lines(*text);
    for (size_t i = 0; i < lines.size(); ++i) {
      std::string_view prefix = lines[i].substr(0, lines[i].find('\t'));
      uint32_t bits = family_of(prefix);
      Result<std::string> key = parse_prefix(prefix, bits);
      if (!key.ok()) return Status::invalid(place(file, i) + key.status().message());
      std::string_view value = lines[i].substr(std::min(lines[i].size(), prefix.size() + 1));
      (bits == 32 ? ipv4 : ipv6).insert_or_assign(std::move(*key), std::string(value));
    }
  }
  std::vector<RouteTable> tables;
  if (!ipv4.empty()) tables.push_back(table_of("ipv4", 32, ipv4));
  if (!ipv6.empty()) tables.push_back(table_of("ipv6", 128, ipv6));
  if (tables.empty()) return Status::invalid("--prefixes: no prefixes in the files");
  return tables;
}

OwnedColumn uniform_addresses(const RouteTable& table, uint64_t addresses, uint64_t seed) {
  return random_addresses(table, addresses, seed, [](auto&, std::byte*) {});
}

OwnedColumn table_addresses(const RouteTable& table, uint64_t addresses, uint64_t seed) {
  KeyColumn keys = table.keys.view();
  return random_addresses(table, addresses, seed, [&](auto& random, std::byte* address) {
    Bytes key = keys[random() % keys.size];
    uint32_t length = prefix_length(key, table.address_bits);
    for (uint32_t i = 0; i * 8 < length; ++i) {
      auto mask = static_cast<std::byte>(0xFF00u >> std::min(8u, length - i * 8));
      address[i] = (key[i] & mask) | (address[i] & ~mask);
    }
  });
}

Result<OwnedColumn> file_addresses(const RouteTable& table, const std::string& file,
                                   uint64_t addresses) {
  Result<std::string> text = read_text_file(file);
  if (!text.ok()) return text.status();
  std::vector<std::string> parsed;
  std::vector<std::string_view> lines = split_lines(*text);
  for (size_t i = 0; i < lines.size(); ++i) {
    std::string_view line = lines[i].substr(0, lines[i].find('\t'));
    Result<std::string> address = parse_address(line, family_of(line));
    if (!address.ok()) return Status::invalid(place(file, i) + address.status().message());
    if (family_of(line) == table.address_bits) parsed.push_back(std::move(*address));
  }
  Parallel here(1);
  return make_column(address_bytes(table.address_bits), parsed.empty() ? 0 : addresses, &here,
                     [&](uint64_t i) { return as_bytes(parsed[i % parsed.size()]); });
}

}  // namespace stride::benchmark
