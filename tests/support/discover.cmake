# Read by ctest: adds a test for each tag of `program`. Those of many test cases start first; `cost`
# stands for their number where it is set.
set(tags "")
if(EXISTS "${program}")
  # Catch2 2 ends this with the number of tags.
  execute_process(COMMAND "${program}" --list-tags OUTPUT_VARIABLE tags)
  string(REGEX MATCHALL "[0-9]+  \\[[A-Za-z0-9_]+\\]" tags "${tags}")
endif()
foreach(tag IN LISTS tags)
  string(REGEX REPLACE "^([0-9]+)  \\[(.*)\\]$" "\\1" cases "${tag}")
  string(REGEX REPLACE "^([0-9]+)  \\[(.*)\\]$" "\\2" tag "${tag}")
  if(cost)
    set(cases ${cost})
  endif()
  add_test("${name}.${tag}" "${program}" "[${tag}]")
  set_tests_properties("${name}.${tag}" PROPERTIES ${properties} COST ${cases})
endforeach()
if(NOT tags)
  # A program that is not built, or does not start.
  add_test("${name}" "${program}")
endif()
