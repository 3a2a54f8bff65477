// Schemas and cells at random.
#pragma once

#include <optional>
#include <random>
#include <string>
#include <vector>

#include "storage/schema.h"

namespace stride::test {

inline constexpr int field_types = static_cast<int>(FieldType::bytes) + 1;

// fixed: all columns have a width.
inline Schema random_schema(std::mt19937_64& random, bool fixed = false) {
  std::vector<Field> fields(1 + random() % 12);
  for (size_t i = 0; i < fields.size(); ++i) {
    Field& field = fields[i];
    field.name = "c" + std::to_string(i) + (random() % 8 ? "" : " \"odd\"\n");
    field.type = static_cast<FieldType>(random() % field_types);
    if (fixed && field.type == FieldType::string) field.type = FieldType::bytes;
    const bool vector = field.type != FieldType::string && field.type != FieldType::uuid;
    if (vector && random() % 4 == 0) field.count = 1 + random() % 5;
    if (fixed && field.type == FieldType::bytes) field.count = 1 + random() % 20;
    field.nullable = random() % 2;
  }
  return *Schema::make(std::move(fields));
}

// A cell's bytes; nothing: null.
using Cell = std::optional<std::string>;

inline Cell random_cell(const Field& field, std::mt19937_64& random) {
  if (field.nullable && random() % 3 == 0) return std::nullopt;
  uint64_t bytes = cell_width(field);
  if (bytes == 0) bytes = random() % 10 ? random() % 12 : random() % 400;
  std::string cell(bytes, '\0');
  for (char& c : cell) c = static_cast<char>(random());
  return cell;
}

}  // namespace stride::test
