#include "adapters/cli/text/scan_bounds.h"

#include <CLI/CLI.hpp>

#include "engine/prefixes.h"

namespace stride::cli {
namespace {

ExitStatus encode_bound(std::string_view before, const KeyForm& form,
                        const std::optional<std::string>& text, std::optional<std::string>* bound) {
  if (!text) return {};
  if (!form.columns || form.parts() == 1)
    return encode_argument(before, form, *text, &bound->emplace());
  // The first columns of a key are the beginning of all keys that have them.
  std::string memory;
  const std::vector<std::string_view> parts = split_key(*text, &memory);
  std::string& key = bound->emplace(encoded_key_bound(*form.columns, text->size()), '\0');
  const ptrdiff_t n =
      encode_key_parts(*form.columns, parts, reinterpret_cast<std::byte*>(key.data()));
  if (n < 0) return ExitStatus::usage(std::string(before) + why_no_key_parts(*form.columns, parts));
  key.resize(static_cast<size_t>(n));
  return {};
}

// Only the prefix, and what is inside it.
ExitStatus stay_inside(const std::string& key, uint32_t address_bits, ScanOptions* options) {
  auto inside = scan_inside(as_bytes(key), address_bits);
  if (!inside.ok()) return inside.status();
  options->prefix = inside->prefix;
  if (inside->from && (!options->from || *options->from < *inside->from))
    options->from = inside->from;
  if (inside->to && (!options->to || *inside->to < *options->to)) options->to = inside->to;
  return {};
}

}  // namespace

ExitStatus encode_argument(std::string_view before, const KeyForm& form, const std::string& text,
                           std::string* key) {
  key->resize(encoded_bound(form, text));
  const ptrdiff_t n = encode_key(form, text, reinterpret_cast<std::byte*>(key->data()));
  if (n < 0) {
    std::string message = std::string(before) + why_no_key(form, text);
    // Prefixes and addresses have advice of their own.
    if (form.address_bits == 0)
      message += ": keys are of type " + name_of(form) + " here: give one, or another --key-type";
    return ExitStatus::usage(std::move(message));
  }
  key->resize(static_cast<size_t>(n));
  return {};
}

void add_bounds(CLI::App* command, BoundArguments* a) {
  command->add_option("--from", a->from, "First key")->type_name("KEY");
  command->add_option("--to", a->to, "Key past the last one")->type_name("KEY");
  command
      ->add_option("--prefix", a->prefix,
                   "Only keys that start with it (of type bytes or hex); of a prefix table: this "
                   "prefix and all inside it")
      ->type_name("KEY");
}

ExitStatus parse_bounds(const BoundArguments& arguments, const KeyForm& form,
                        ScanOptions* options) {
  STRIDE_CLI_TRY(encode_bound("--from: ", form, arguments.from, &options->from));
  STRIDE_CLI_TRY(encode_bound("--to: ", form, arguments.to, &options->to));
  bool of_prefixes = form.type == KeyType::prefix;
  const bool of_columns = form.columns && (form.parts() > 1 || width_of(form) == 0);
  if (arguments.prefix && !of_prefixes && !of_columns && form.type != KeyType::bytes &&
      form.type != KeyType::hex)
    return ExitStatus::usage(
        "--prefix is for keys of type bytes and hex, of several columns, and prefixes, not " +
        name_of(form));
  STRIDE_CLI_TRY(encode_bound("--prefix: ", form, arguments.prefix, &options->prefix));
  if (!of_prefixes || !options->prefix) return {};
  return stay_inside(std::string(*options->prefix), form.address_bits, options);
}

}  // namespace stride::cli
