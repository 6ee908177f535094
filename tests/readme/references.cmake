# cmake -DROOT=<source folder> -P references.cmake
#
# The reference pages are complete: each environment variable, exit code, CMake option and preset of the sources is in a row of its
# page, and the pages have no others. The page of file formats has each metric and each key of run.json.
cmake_minimum_required(VERSION 3.25)
set(other_patterns *.cmake *CMakeLists.txt)
include("${CMAKE_CURRENT_LIST_DIR}/../style/files.cmake")
list(FILTER files EXCLUDE REGEX "^(tests/readme/.*|(dsl|codegen|runtime)/.*_test\\.cpp)$")

# Appends to `result` the names in the files whose paths match `paths`: the last word of each text that matches `pattern`. A
# bracket [ counts as (.
function(find_names result paths pattern)
  set(names ${${result}})
  foreach(file IN LISTS files)
    if(file MATCHES "${paths}")
      file(STRINGS "${ROOT}/${file}" lines)
      string(REPLACE "[" "(" lines "${lines}")  # brackets are list syntax in CMake
      string(REGEX MATCHALL "${pattern}" found "${lines}")
      list(TRANSFORM found REPLACE "[^A-Za-z0-9_]+$" "")
      list(TRANSFORM found REPLACE "^.*[^A-Za-z0-9_]" "")
      list(APPEND names ${found})
    endif()
  endforeach()
  list(REMOVE_DUPLICATES names)
  set(${result} ${names} PARENT_SCOPE)
endfunction()

# Sets `result` to the texts in backquotes that match `pattern` in the rows of a page's tables.
function(names_of_page result page pattern)
  file(STRINGS "${ROOT}/${page}" rows REGEX "^\\|")
  string(REGEX MATCHALL "`${pattern}`" names "${rows}")
  list(TRANSFORM names REPLACE "`" "")
  set(${result} ${names} PARENT_SCOPE)
endfunction()

# Checks that a page has the given names of the sources. If there are fewer than `fewest`, the search in the sources is broken.
function(expect page what fewest)
  list(LENGTH ARGN count)
  if(count LESS fewest)
    message(SEND_ERROR "the sources have ${count} of these, expected ${fewest} or more: ${what}")
  endif()
  names_of_page(in_page ${page} "[A-Za-z0-9_]+")
  foreach(name IN LISTS ARGN)
    if(NOT name IN_LIST in_page)
      message(SEND_ERROR "no row of ${page} has the ${what} `${name}`")
    endif()
  endforeach()
endfunction()

# Checks that all names of a page that match a pattern are among the given names of the sources.
function(expect_no_others page what pattern)
  names_of_page(in_page ${page} "${pattern}")
  foreach(name IN LISTS in_page)
    if(NOT name IN_LIST ARGN)
      message(SEND_ERROR "${page} has the ${what} `${name}`, which the sources do not have")
    endif()
  endforeach()
endfunction()

set(code "^(dsl|codegen|runtime)/.*\\.[chi][a-z]+$")
set(scripts "^((dsl|codegen|runtime)/.*)?[a-zA-Z_0-9]+(\\.cmake|CMakeLists\\.txt)$")

set(variables)
find_names(variables "${code}" "\"[A-Z][A-Z0-9]*_[A-Z0-9_]+\"")
find_names(variables "^runtime/(launch/environment|trainer/main)\\.cpp$" "\"[A-Z][A-Z]+\"")
find_names(variables "${scripts}" "ENV{[A-Z_]+}")
find_names(variables "^tests/" "getenv\\(\"RANKC_[A-Z_]+\"")
# Not variables: actions of schedules, keys of learning rates, a value of PEFT, a launcher.
list(REMOVE_ITEM variables SEND_F SEND_B RECV_F RECV_B REDUCE_GRAD MIN_LR DECAY_STEPS CAUSAL_LM MPICH)
expect(runtime/environment.md "environment variable" 60 ${variables})
expect_no_others(runtime/environment.md "environment variable" "[A-Z][A-Z0-9_]+" ${variables})

set(codes)
find_names(codes "${code}" "(failure|fail|fail_locked|failed|reported|tell_failure|unusable|_exit|end_process)\\([0-9]+")
find_names(codes "${code}" "checkpoint_code = [0-9]+")
find_names(codes "^codegen/(generator|verify/[a-z_]+|tool/[a-z_]+)\\.cpp$" "  return [0-9]+")
expect(runtime/exit_codes.md "exit code" 8 ${codes})
expect_no_others(runtime/exit_codes.md "exit code" "[0-9]+" ${codes})

set(options)
find_names(options "${scripts}" "ENV{[A-Z_]+}")
find_names(options "^(tests/)?[a-zA-Z_0-9/]*(\\.cmake|CMakeLists\\.txt)$" "option\\(RANKC_[A-Z_]+")
find_names(options "^(tests/)?[a-zA-Z_0-9/]*(\\.cmake|CMakeLists\\.txt)$" "find_(path|library|program)\\([A-Z0-9_]+")
expect(codegen/cmake/README.md "CMake option" 30 ${options})
expect_no_others(codegen/cmake/README.md "CMake option" "(RANKC|NCCL|CUDNN)_[A-Z0-9_]+" ${options})

file(READ "${ROOT}/CMakePresets.json" presets)
string(JSON count LENGTH "${presets}" configurePresets)
math(EXPR last "${count} - 1")
set(names)
foreach(i RANGE ${last})
  string(JSON name GET "${presets}" configurePresets ${i} name)
  list(APPEND names ${name})
endforeach()
expect(codegen/cmake/README.md "preset" 5 ${names})

set(keys)
find_names(keys "^runtime/trainer/(metrics|step_files)\\.cpp$" "({|(line|values.emplace_back)\\()\"[a-z_]+\"")
expect(runtime/file_formats.md "metric" 12 ${keys})
set(keys)
find_names(keys "^runtime/trainer/run_state\\.cpp$" "(root, |(root|root.contains)\\()\"[a-z_]+\"")
expect(runtime/file_formats.md "key of run.json" 15 ${keys})
