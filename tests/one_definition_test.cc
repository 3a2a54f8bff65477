// No two types share a name. For the linker they would be one, and it keeps the functions of
// either: a destructor then runs over the members of the other. Compilers do not tell.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/catch.h"

namespace {

namespace fs = std::filesystem;

using std::string;

// The files that define each type, by its full name.
using Definitions = std::map<string, std::set<string>>;

// Adds the types that `text` defines at the scope of a namespace. Those of an unnamed namespace are
// their file's own and are left out.
void add_types(const string& file, std::istream& text, Definitions* definitions) {
  static const std::regex opens(R"(^(inline )?namespace ([\w:]*) *\{.*$)");
  static const std::regex closes(R"(^\}.*// namespace.*$)");
  static const std::regex type(
      R"(^(class|struct|union|enum class|enum) (alignas\([^)]*\) |STRIDE_\w+ )*)"
      R"((\w+)( final)?( : [^;]*)?( \{.*)?$)");
  std::vector<string> scopes;
  size_t unnamed = 0;
  for (string line; std::getline(text, line);) {
    std::smatch match;
    if (std::regex_match(line, match, opens)) {
      scopes.push_back(match[2]);
      unnamed += match[2].length() == 0;
    } else if (std::regex_match(line, closes)) {
      REQUIRE_MESSAGE(!scopes.empty(), file << " ends a namespace that it did not open");
      unnamed -= scopes.back().empty();
      scopes.pop_back();
    } else if (unnamed == 0 && std::regex_match(line, match, type)) {
      string name;
      for (const string& scope : scopes) name += scope + "::";
      (*definitions)[name + match[3].str()].insert(file);
    }
  }
}

// Every type of two files, as "name: file, file".
std::vector<string> shared_names(const Definitions& definitions) {
  std::vector<string> shared;
  for (const auto& [name, files] : definitions) {
    if (files.size() < 2) continue;
    string line = name + ":";
    for (const string& file : files) line += " " + file;
    shared.push_back(line);
  }
  return shared;
}

TEST_CASE("OneDefinitionTest.NoTwoTypesShareAName", "[OneDefinitionTest]") {
  const char* given = std::getenv("STRIDE_SOURCE_DIR");
  const fs::path root = given != nullptr ? given : STRIDE_SOURCE_DIR;
  if (!fs::exists(root / "CMakeLists.txt")) SKIP("no sources at " << root);
  const std::set<string> extensions = {".h", ".cc", ".cu", ".cuh"};
  Definitions definitions;
  for (const char* room : {"storage", "gpu", "engine", "adapters", "benchmark", "tests"}) {
    for (const auto& entry : fs::recursive_directory_iterator(root / room)) {
      if (!extensions.contains(entry.path().extension().string())) continue;
      std::ifstream text(entry.path());
      add_types(fs::relative(entry.path(), root).generic_string(), text, &definitions);
    }
  }
  CHECK(definitions.size() > 300);
  CHECK(definitions.contains("stride::Snapshot"));
  for (const string& line : shared_names(definitions)) FAIL_CHECK(line);
}

TEST_CASE("OneDefinitionTest.FindsASharedName", "[OneDefinitionTest]") {
  Definitions definitions;
  std::istringstream first(
      "namespace stride {\nclass Forward;\nnamespace {\nstruct Own {\n};\n}  // namespace\n"
      "class STRIDE_API Row final : public Base {\n  struct Inner {};\n};\n}  // namespace "
      "stride\n");
  std::istringstream second(
      "namespace stride::cli {\nclass Row {\n};\n}  // namespace stride::cli\n"
      "namespace stride {\nclass Forward;\nnamespace {\nstruct Own {\n};\n}  // namespace\n"
      "struct alignas(64) Row {\n};\n}  // namespace stride\n");
  add_types("a.h", first, &definitions);
  add_types("b.h", second, &definitions);
  CHECK(shared_names(definitions) == std::vector<string>{"stride::Row: a.h b.h"});
}

}  // namespace
